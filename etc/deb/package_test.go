// Package deb_test makes the Debian package as a user does and lives with it.
package deb_test

import (
	"compress/gzip"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Ensures that a tagged commit becomes a package of that version, and that two
// builds of it in different places are equal to the byte; and, with such
// packages, what the tests below say. It is not parallel, so that the others find
// everything compiled that it had to compile.
func TestPackage(t *testing.T) {
	nfpm := tools(t)
	origin := tagged(t)
	here, there := clone(t, origin), clone(t, origin)
	deb := mustMakeDeb(t, here, nfpm)
	again := mustMakeDeb(t, there, nfpm)
	for _, file := range []string{"bin/chat", "bin/relayd", "bin/" + filepath.Base(deb)} {
		if mustRead(t, here+"/"+file) != mustRead(t, there+"/"+file) {
			t.Errorf("%s differs from one build to the next", file)
		}
	}
	if version := field(t, again, "Version"); version != "0.1.0-1" {
		t.Errorf("the version of %s is %s", released, version)
	}
	for _, program := range []string{"chat", "relayd"} {
		if said := mustRun(t, here, "bin/"+program, "--version"); !strings.HasPrefix(said, program+" "+released+" ") {
			t.Errorf("%s says that it is %s", program, said)
		}
	}
	if status := mustRun(t, here, "git", "status", "--porcelain"); status != "" {
		t.Errorf("the build leaves in git:\n%s", status)
	}
	t.Run("contents", func(t *testing.T) {
		t.Parallel()
		checkContents(t, deb)
	})
	t.Run("extras of another machine's programs", func(t *testing.T) {
		t.Parallel()
		checkForeignExtras(t, here)
	})
	next := newerDeb(t, there, nfpm)
	t.Run("life", func(t *testing.T) {
		t.Parallel()
		checkLife(t, deb, next)
	})
}

// newerDeb makes a package of a later commit with changes that are not committed,
// one of them in the configuration.
func newerDeb(t *testing.T, dir, nfpm string) string {
	t.Helper()
	appendTo(t, dir+"/etc/relayd.yaml", "# A line of the next version.")
	commit(t, dir)
	appendTo(t, dir+"/README.md", "A line that nobody committed.")
	deb := mustMakeDeb(t, dir, nfpm)
	version := field(t, deb, "Version")
	if !regexp.MustCompile(`^0\.1\.1~0\.20261130120000\.[0-9a-f]{12}\+dirty-1$`).MatchString(version) {
		t.Errorf("the version of a commit behind %s, with changes, is %s", released, version)
	}
	return deb
}

// Ensures that dpkg sorts versions as Go does.
func TestVersion_SortsAsModules(t *testing.T) {
	t.Parallel()
	ascending := []string{
		"v0.0.0-20261130213427-7125b053267c", "v0.1.0-rc.1", "v0.1.0-rc.1.0.20261201000000-7125b053267c", "v0.1.0-rc.2",
		"v0.1.0", "v0.1.1-0.20261201000000-7125b053267c", "v0.1.1-0.20261201000000-7125b053267c+dirty",
		"v0.1.1-0.20261202000000-0125b053267c", "v0.1.1-rc.1", "v0.1.1", "v0.1.1+dirty", "v0.1.2", "v0.10.0", "v1.0.0",
	}
	before := "0"
	for _, version := range ascending {
		mapped := strings.TrimSpace(mustRun(t, ".", "./version", version)) + "-1"
		if output, err := run(t.Context(), ".", "dpkg", "--compare-versions", before, "lt", mapped); err != nil || output != "" {
			t.Errorf("%s, of %s, is not later than %s: %v %s", mapped, version, before, err, output)
		}
		before = mapped
	}
}

// checkContents ensures that every file belongs to root and may be changed by
// root alone, stands where Debian looks for it, and is what it should be.
func checkContents(t *testing.T, deb string) {
	line := regexp.MustCompile(`^([-dlrwxsStT]{10}) (\S+) +\d+ \S+ \S+ \./(\S*)$`)
	for entry := range strings.Lines(mustRun(t, ".", "dpkg-deb", "--contents", deb)) {
		m := line.FindStringSubmatch(strings.TrimSuffix(entry, "\n"))
		if m == nil {
			t.Errorf("an unexpected entry: %s", entry)
			continue
		}
		want := "-rw-r--r--"
		if strings.HasSuffix(m[3], "/") {
			want = "drwxr-xr-x"
		} else if strings.HasPrefix(m[3], "usr/bin/") {
			want = "-rwxr-xr-x"
		}
		if m[1] != want || m[2] != "root/root" {
			t.Errorf("%s has %s of %s, want %s of root/root", m[3], m[1], m[2], want)
		}
	}
	root := t.TempDir()
	mustRun(t, ".", "dpkg-deb", "--raw-extract", deb, root)
	for _, path := range []string{
		"etc/cron.d/relayd", "etc/relayd/relayd.yaml",
		"usr/bin/chat", "usr/bin/relayd",
		"usr/share/doc/newos4-relay/changelog.Debian.gz", "usr/share/doc/newos4-relay/copyright",
		"usr/share/doc/newos4-relay/README.Debian", "usr/share/doc/newos4-relay/examples/relayd.yaml",
		"usr/share/man/man1/chat.1.gz", "usr/share/man/man5/relayd.yaml.5.gz",
		"usr/share/man/man7/newos4-chat.7.gz", "usr/share/man/man8/relayd.8.gz",
		"usr/share/bash-completion/completions/chat", "usr/share/bash-completion/completions/relayd",
		"usr/share/zsh/vendor-completions/_chat", "usr/share/zsh/vendor-completions/_relayd",
		"usr/share/fish/vendor_completions.d/chat.fish", "usr/share/fish/vendor_completions.d/relayd.fish",
	} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Size() == 0 {
			t.Errorf("the package lacks %s: %v", path, err)
		}
	}
	checkAllOf(t, "etc/systemd", root+"/usr/lib/systemd/system")
	checkAllOf(t, "etc/sysusers.d", root+"/usr/lib/sysusers.d")
	checkAllOf(t, "etc/tmpfiles.d", root+"/usr/lib/tmpfiles.d")
	checkAllOf(t, "etc/nginx", root+"/usr/share/doc/newos4-relay/examples/nginx")
	checkAllOf(t, "etc/hermes", root+"/usr/share/relayd/hermes")
	if got := mustRead(t, root+"/DEBIAN/conffiles"); got != "/etc/cron.d/relayd\n/etc/relayd/relayd.yaml\n" {
		t.Errorf("the configuration that dpkg looks after is\n%s", got)
	}
	for _, program := range []string{"chat", "relayd"} {
		checkStatic(t, root+"/usr/bin/"+program)
		checkCompletion(t, root, program)
	}
	checkManual(t, root+"/usr/share/man")
	checkCopyright(t, mustRead(t, root+"/usr/share/doc/newos4-relay/copyright"))
}

// checkAllOf ensures that the package holds all files below a directory of the
// sources as they are, but for what tests them.
func checkAllOf(t *testing.T, sources, packed string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(repository, sources), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // not every checkout has all of them
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(path, ".go"):
			return nil
		}
		below, err := filepath.Rel(filepath.Join(repository, sources), path)
		if err != nil {
			return err
		}
		if got := mustRead(t, filepath.Join(packed, below)); got != mustRead(t, path) {
			t.Errorf("%s is packed as\n%s", path, got)
		}
		return nil
	})
	if err != nil {
		t.Errorf("looking for what must be packed: %v", err)
	}
}

// checkStatic ensures that a program needs no other file.
func checkStatic(t *testing.T, path string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s wants a dynamic linker", path)
		}
	}
}

// checkCompletion ensures that the shells take the completions of a program.
func checkCompletion(t *testing.T, root, program string) {
	t.Helper()
	mustRun(t, root, "bash", "-n", "usr/share/bash-completion/completions/"+program)
	mustRun(t, root, "zsh", "-n", "usr/share/zsh/vendor-completions/_"+program)
	mustRun(t, root, "fish", "--no-execute", "usr/share/fish/vendor_completions.d/"+program+".fish")
}

// checkManual ensures that the pages are all there, whole, below a directory.
func checkManual(t *testing.T, dir string) {
	t.Helper()
	pages, err := filepath.Glob(repository + "/man/*.[1-8]")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		section := page[len(page)-1:]
		file, err := os.Open(dir + "/man" + section + "/" + filepath.Base(page) + ".gz")
		if err != nil {
			t.Error(err)
			continue
		}
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpacked)
		if err != nil || string(text) != mustRead(t, page) {
			t.Errorf("%s is not the page that was packed: %v", file.Name(), err)
		}
		if name := unpacked.Name; name != "" || !unpacked.ModTime.IsZero() {
			t.Errorf("%s tells of its making: %q, %s", file.Name(), name, unpacked.ModTime)
		}
		_ = file.Close()
	}
}

// checkCopyright ensures that our licence and those of all that is linked are
// there.
func checkCopyright(t *testing.T, text string) {
	t.Helper()
	for _, want := range []string{"The relay authors", "The Go Authors", "github.com/spf13/cobra v", "Apache License", "modernc.org/sqlite v"} {
		if !strings.Contains(text, want) {
			t.Errorf("the copyright file lacks %q", want)
		}
	}
}

// checkForeignExtras ensures that programs for another machine get the same
// completions as those for this one.
func checkForeignExtras(t *testing.T, dir string) {
	foreign := t.TempDir()
	for _, program := range []string{"chat", "relayd"} {
		// An ELF header of a machine that does not exist.
		mustWrite(t, foreign+"/"+program, "\x7fELF\x02\x01\x01")
		if err := exec.CommandContext(t.Context(), foreign+"/"+program).Run(); err == nil {
			t.Fatalf("the foreign %s runs", program)
		}
	}
	mustRun(t, dir, "scripts/extras", foreign, foreign+"/extras")
	mustRun(t, dir, "diff", "-r", "bin/extras", foreign+"/extras")
}
