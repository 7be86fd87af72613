package deb_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is the root of the sources under test.
const repository = "../.."

// released is the tag of the first version that the tests build.
const released = "v0.1.0"

// run runs a program in a directory and returns what it printed on both outputs.
func run(ctx context.Context, dir string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	// Neither the make that runs these tests nor its jobs are any business of the
	// one that is tested. Git takes names and dates from no one.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VERSION", "SOURCE_DATE_EPOCH"}, name)
	}),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
		"GIT_AUTHOR_NAME=relay", "GIT_AUTHOR_EMAIL=relay@newos4.example", "GIT_AUTHOR_DATE=2026-11-30T12:00:00Z",
		"GIT_COMMITTER_NAME=relay", "GIT_COMMITTER_EMAIL=relay@newos4.example", "GIT_COMMITTER_DATE=2026-11-30T12:00:00Z",
	)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}

// mustRun is run for what has to succeed.
func mustRun(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	output, err := run(t.Context(), dir, argv...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, output)
	}
	return output
}

// sources copies the sources, without what git or a build made of them.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	made := []string{".git", "bin", "var", ".tools", "dist", "node_modules"}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(made, d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		below, err := filepath.Rel(repository, path)
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return copyFile(path, filepath.Join(dir, below))
	})
	if err != nil {
		t.Fatalf("copying the sources: %v", err)
	}
	return dir
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// tagged returns a repository with the sources as the version [released].
func tagged(t *testing.T) string {
	t.Helper()
	dir := sources(t)
	mustRun(t, dir, "git", "init", "--quiet")
	commit(t, dir)
	mustRun(t, dir, "git", "tag", released)
	return dir
}

func commit(t *testing.T, dir string) {
	t.Helper()
	mustRun(t, dir, "git", "add", "--all")
	mustRun(t, dir, "git", "commit", "--quiet", "--message", "sources")
}

// clone returns a clone of a repository in a directory of its own.
func clone(t *testing.T, origin string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "relay")
	mustRun(t, filepath.Dir(dir), "git", "clone", "--quiet", origin, dir)
	return dir
}

// tools returns the directory of the tools that the Makefile pins, with nfpm.
func tools(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(repository + "/.tools/bin")
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, repository, "make", dir+"/nfpm")
	return dir
}

// mustMakeDeb makes the package of a tree and returns its path.
func mustMakeDeb(t *testing.T, dir, tools string, variables ...string) string {
	t.Helper()
	mustRun(t, dir, append([]string{"make", "deb", "TOOLS=" + tools}, variables...)...)
	made, err := filepath.Glob(dir + "/bin/*.deb")
	if err != nil || len(made) != 1 {
		t.Fatalf("make deb leaves %q, %v, want one package", made, err)
	}
	return made[0]
}

// field returns a field of a package.
func field(t *testing.T, deb, name string) string {
	t.Helper()
	return strings.TrimSpace(mustRun(t, ".", "dpkg-deb", "--field", deb, name))
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// appendTo adds a line to a file.
func appendTo(t *testing.T, path, line string) {
	t.Helper()
	mustWrite(t, path, mustRead(t, path)+line+"\n")
}
