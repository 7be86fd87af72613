package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// canary stands in everything that must stay closed.
const canary = "CANARY-5c19"

// bare pretends that the kernel enforces nothing, so that a test is about the
// reader's own rules alone.
func bare() support {
	return support{LandlockWhy: "pretended", SeccompWhy: "pretended"}
}

// bothWalls runs a test behind both walls, and behind the reader's own rules
// alone.
func bothWalls(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("confined", func(t *testing.T) {
		t.Parallel()
		test(t, Options{})
	})
	t.Run("rules alone", func(t *testing.T) {
		t.Parallel()
		test(t, Options{Mode: BestEffort, probe: bare})
	})
}

// Ensures that whatever is absent, denied, outside, or not a plain file gives one
// and the same answer, and that nothing of it is listed or found.
func TestOneAnswerForAllThatIsClosed(t *testing.T) {
	t.Parallel()
	bothWalls(t, func(t *testing.T, o Options) {
		root := MustRoot(t, map[string]string{
			"open.md": "open", "dir/open.md": "open",
			".env": canary, ".git/config": canary, "dir/.ssh/id_rsa": canary, "prod.env": canary, "PROD.ENV.bak": canary,
			"server.KEY": canary, "Id_Rsa": canary, "app.sqlite3": canary, "my-Passwords.txt": canary, "secrets/a.md": canary,
			"data/thread.json": canary, "relay.yaml": canary, "two.md": canary,
		})
		outside := MustRoot(t, map[string]string{"outside.md": canary})
		at := func(name string) string { return filepath.Join(root, name) }
		must(t, os.Symlink(filepath.Join(outside, "outside.md"), at("leak.md")))
		must(t, os.Symlink(filepath.Join(outside, "absent.md"), at("dangling.md")))
		must(t, os.Symlink(outside, at("leakdir")))
		must(t, os.Symlink("../..", at("up")))
		must(t, os.Symlink("/", at("top")))
		must(t, os.Symlink("/proc/self", at("self")))
		must(t, os.Symlink(".env", at("env.md")))
		must(t, os.Symlink("open.md", at("inside.md")))
		must(t, os.Symlink("dir", at("insidedir")))
		must(t, os.Link(at("two.md"), at("hard.md")))
		must(t, os.Link(filepath.Join(outside, "outside.md"), at("foreign.md")))
		must(t, unix.Mkfifo(at("fifo"), 0o644))
		must(t, unix.Mknod(at("socket"), unix.S_IFSOCK|0o644, 0))
		if os.Getuid() == 0 {
			must(t, unix.Mknod(at("zero"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))))
		}

		o.Roots = []string{root}
		o.Deny = []string{at("data"), at("relay.yaml"), at("absent/data")}
		r := MustStart(t, o)
		for _, path := range []string{
			"docs/absent.md", "docs/absent/absent.md", "absent/a.md", "docs", "docs/dir", "",
			"docs/.env", "docs/.absent", "docs/.git/config", "docs/dir/.ssh/id_rsa", "docs/prod.env", "docs/PROD.ENV.bak",
			"docs/server.KEY", "docs/Id_Rsa", "docs/app.sqlite3", "docs/absent.sqlite3", "docs/my-Passwords.txt", "docs/secrets/a.md",
			"docs/data/thread.json", "docs/DATA/thread.json", "docs/data", "docs/relay.yaml", "docs/Relay.YAML",
			"docs/leak.md", "docs/dangling.md", "docs/leakdir/outside.md", "docs/leakdir/absent.md", "docs/up/docs/open.md",
			"docs/top/etc/passwd", "docs/self/environ", "docs/self/absent", "docs/env.md", "docs/inside.md", "docs/insidedir/open.md",
			"docs/two.md", "docs/hard.md", "docs/foreign.md", "docs/fifo", "docs/socket", "docs/zero", "docs/open.md/x", "docs/open.md/",
			"/etc/passwd", "/proc/self/environ", "/proc/1/environ", "/dev/fd/3", "/dev/zero", "proc/self/environ",
			"/proc/self/root/etc/shadow", "/proc/self/cwd/.env", "docs/../docs/open.md", "docs/dir/../open.md", "../docs/open.md",
			"docs/./open.md", "docs//open.md", "./docs/open.md", "docs/%2e%2e/open.md", "docs/dir/%2e%2e/open.md", "docs/..%2fopen.md",
			`docs\open.md`, `docs\..\open.md`, "docs/open.md\x00", "docs/open.md\x00.png", "docs/\xc0\xae\xc0\xae/open.md", "docs/\xff",
			"docs/．．/open.md", "docs/open.md\n", "DOCS/open.md", " docs/open.md", strings.Repeat("docs/", 2000),
		} {
			if path != "docs/open.md/" {
				if _, err := r.Read(t.Context(), path, 0, 0); !errors.Is(err, ErrNotReadable) || err.Error() != ErrNotReadable.Error() {
					t.Errorf("Read(%q): %v", path, err)
				}
			}
			if path == "" || path == "docs" || path == "docs/dir" {
				continue
			}
			if _, err := r.List(t.Context(), path); !errors.Is(err, ErrNotReadable) || err.Error() != ErrNotReadable.Error() {
				t.Errorf("List(%q): %v", path, err)
			}
		}
		l, err := r.List(t.Context(), "docs")
		if got := strings.Join(paths(l), " "); err != nil || got != "docs/dir docs/open.md" {
			t.Errorf("List: %s, %v", got, err)
		}
		for _, pattern := range []string{"CANARY", "."} {
			m, err := r.Search(t.Context(), Query{Pattern: pattern, Regexp: true})
			if err != nil || strings.Contains(strings.ToUpper(texts(m)), "CANARY") {
				t.Errorf("Search: %+v, %v", m, err)
			}
		}
	})
}

func texts(m Matches) string {
	var b strings.Builder
	for _, match := range m.Matches {
		b.WriteString(match.Path + ":" + match.Text + "\n")
	}
	return b.String()
}

// Ensures that a denied directory stays closed when it gets another name, and a
// denied file when another takes its place.
func TestDenyFollowsNameAndInode(t *testing.T) {
	t.Parallel()
	bothWalls(t, func(t *testing.T, o Options) {
		root := MustRoot(t, map[string]string{"data/a.md": canary, "relay.yaml": canary, "fresh.yaml": canary})
		o.Roots = []string{root}
		o.Deny = []string{filepath.Join(root, "data"), filepath.Join(root, "relay.yaml")}
		r := MustStart(t, o)
		must(t, os.Rename(filepath.Join(root, "data"), filepath.Join(root, "moved")))
		must(t, os.Rename(filepath.Join(root, "relay.yaml"), filepath.Join(root, "old.yaml")))
		must(t, os.Rename(filepath.Join(root, "fresh.yaml"), filepath.Join(root, "relay.yaml")))
		for _, path := range []string{"docs/moved/a.md", "docs/old.yaml", "docs/relay.yaml"} {
			if e, err := r.Read(t.Context(), path, 0, 0); !errors.Is(err, ErrNotReadable) {
				t.Errorf("Read(%q): %+v, %v", path, e, err)
			}
		}
		if l, err := r.List(t.Context(), "docs"); err != nil || len(l.Entries) != 0 {
			t.Errorf("List: %+v, %v", l, err)
		}
		if notes := r.Report().Notes; len(notes) != 2 {
			t.Errorf("the report does not tell of denied paths in a root: %q", notes)
		}
	})
}

// Ensures that no moment exists at which a name that changes between something
// harmless and something closed leads to the latter, or blocks.
func TestSwapWhileReading(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]struct {
		good, bad string // exchanged without pause
		path      string // read meanwhile
	}{
		"directory and link outside": {"dir", "outside", "docs/dir/a.md"},
		"directory and link inside":  {"dir", "inside", "docs/dir/a.md"},
		"directory and closed one":   {"dir", ".closed", "docs/dir/a.md"},
		"directory and FIFO":         {"dir", "fifo", "docs/dir/a.md"},
		"file and link outside":      {"a.md", "leak.md", "docs/a.md"},
		"file and link inside":       {"a.md", "env.md", "docs/a.md"},
		"file and FIFO":              {"a.md", "fifo", "docs/a.md"},
		"file and directory":         {"a.md", "dir", "docs/a.md"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWalls(t, func(t *testing.T, o Options) {
				root := MustRoot(t, map[string]string{"a.md": "good", "dir/a.md": "good", ".closed/b.md": "", ".env": canary, ".hidden/a.md": canary})
				outside := MustRoot(t, map[string]string{"a.md": canary})
				must(t, os.Symlink(outside, filepath.Join(root, "outside")))
				must(t, os.Symlink(".hidden", filepath.Join(root, "inside")))
				must(t, os.Symlink(filepath.Join(outside, "a.md"), filepath.Join(root, "leak.md")))
				must(t, os.Symlink(".env", filepath.Join(root, "env.md")))
				must(t, unix.Mkfifo(filepath.Join(root, "fifo"), 0o644))
				o.Roots = []string{root}
				o.Limits.Requests = 1 << 20
				r := MustStart(t, o)
				child := r.child
				stop := exchangeForever(t, filepath.Join(root, swap.good), filepath.Join(root, swap.bad))
				good := 0
				for range 200 {
					e, err := r.Read(t.Context(), swap.path, 0, 0)
					switch {
					case err == nil && e.Text == "good":
						good++
					case err == nil, !errors.Is(err, ErrNotReadable):
						t.Fatalf("got %+v, %v", e, err)
					}
					m, err := r.Search(t.Context(), Query{Pattern: canary})
					if err != nil || len(m.Matches) > 0 {
						t.Fatalf("found %+v, %v", m, err)
					}
				}
				stop()
				if good == 0 {
					t.Error("the good one was never read, so nothing was tried")
				}
				if r.child != child {
					t.Error("the child was replaced")
				}
			})
		})
	}
}

// exchangeForever swaps two names until stop is called.
func exchangeForever(t *testing.T, a, b string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var err error
	ended := false
	stop = func() {
		if cancel(); !ended {
			err, ended = <-done, true
		}
		must(t, err)
	}
	t.Cleanup(stop)
	return stop
}

// Ensures that directories which cannot be public are refused when they are
// named, and that the error says which and why.
func TestRootsThatAreRefused(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{"a.md": "", "data/sub/a.md": ""})
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink("/proc/self", link))
	for path, want := range map[string]string{
		"/": "as a whole", "/proc": "nothing in /proc", "/proc/self": "nothing in /proc", "/sys/kernel": "nothing in /sys",
		"/dev": "nothing in /dev", "/dev/shm": "nothing in /dev", link: "nothing in /proc", "docs": "not an absolute path", "": "not an absolute path",
		"/absent/docs": "no such file", filepath.Join(root, "a.md"): "not a directory",
		filepath.Join(root, "data"): "lies in the denied", filepath.Join(root, "data/sub"): "lies in the denied",
	} {
		_, err := Start(t.Context(), Options{Roots: []string{path}, Deny: []string{filepath.Join(root, "data")}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("root %q: %v, want %q", path, err, want)
		}
	}
	if _, err := Start(t.Context(), Options{Deny: []string{"data"}}); err == nil {
		t.Error("a relative denied path is accepted")
	}
	odd := filepath.Join(t.TempDir(), "\xff")
	must(t, os.Mkdir(odd, 0o755))
	for _, o := range []Options{{Roots: []string{odd}}, {Deny: []string{odd}}} {
		if _, err := Start(t.Context(), o); !errors.Is(err, errNotUTF8) {
			t.Errorf("a path that is not UTF-8: %v", err)
		}
	}
	if _, err := Start(t.Context(), Options{Roots: make([]string, maxRoots+1)}); err == nil {
		t.Error("too many roots are accepted")
	}
	for _, limits := range []Limits{{FileSize: -1}, {FileSize: maxFileSize + 1}, {ResultBytes: maxResult + 1}, {Memory: 1}, {Requests: -1}, {Time: -1}} {
		if _, err := Start(t.Context(), Options{Limits: limits}); err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	fd, err := unix.Open("/proc/self", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { _ = unix.Close(fd) }()
	if !isKernelFS(fd) || !isKernelFS(-1) {
		t.Error("procfs is taken for a file system of files, wherever it is mounted")
	}
}

// Ensures that a root is what its path led to at the start, for as long as the
// reader lives, and that names are told apart.
func TestRootsAreResolvedOnce(t *testing.T) {
	t.Parallel()
	one, two := MustRoot(t, map[string]string{"a.md": "one"}), MustRoot(t, map[string]string{"a.md": "two"})
	link := filepath.Join(t.TempDir(), "public")
	must(t, os.Symlink(one, link))
	r := MustStart(t, Options{Roots: []string{link, two, one, two}, Limits: Limits{Requests: 1}})
	must(t, os.Remove(link))
	must(t, os.Symlink(two, link))
	for range 3 {
		l, err := r.List(t.Context(), "")
		if got := strings.Join(paths(l), " "); err != nil || got != "public docs" {
			t.Errorf("roots %s, %v", got, err)
		}
		if e, err := r.Read(t.Context(), "public/a.md", 0, 0); err != nil || e.Text != "one" {
			t.Errorf("behind the link: %+v, %v", e, err)
		}
	}
	// Another directory under the resolved path is not what was declared.
	must(t, os.Rename(one, one+"-old"))
	must(t, os.Symlink(two, one))
	if e, err := r.Read(t.Context(), "public/a.md", 0, 0); !errors.Is(err, ErrChild) || !strings.Contains(err.Error(), errReplaced.Error()) {
		t.Errorf("a root that was replaced: %+v, %v", e, err)
	}
}
