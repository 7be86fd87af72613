package sandbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Ensures that a child that has been taken over can do nothing but read beneath
// its roots: whatever it tries is refused, and nothing outside it has changed.
func TestTakenOverChild(t *testing.T) {
	t.Parallel()
	log := takeOver(t, requireKernel(t))
	if tried := len(log); tried < 1000 {
		t.Errorf("%d calls were tried", tried)
	}
	t.Logf("%d calls, %d of them by name", len(log), countNamed(log))
	for _, a := range log {
		if !refusedAs(a, unix.EACCES, unix.EPERM) {
			t.Errorf("%s: %v", a.Name, describe(a))
		}
	}
}

// Ensures that the filter alone keeps the promises it is named for, as it must
// on a kernel without Landlock, and that reading outside is not among them.
func TestTakenOverChildWithoutLandlock(t *testing.T) {
	t.Parallel()
	s := requireKernel(t)
	s.LandlockABI, s.LandlockWhy = 0, "pretended"
	for _, a := range takeOver(t, s) {
		if a.Name == "read: file outside" && a.Errno != 0 {
			t.Errorf("%s: %v, so the test shows nothing about Landlock", a.Name, describe(a))
		}
		if !strings.HasPrefix(a.Name, "read:") && !refusedAs(a, unix.EPERM, unix.EPERM) {
			t.Errorf("%s: %v", a.Name, describe(a))
		}
	}
}

// Ensures that Landlock alone keeps its promises.
func TestTakenOverChildWithoutFilter(t *testing.T) {
	t.Parallel()
	s := requireKernel(t)
	s.Seccomp, s.SeccompWhy = false, "pretended"
	skip := map[string]bool{"connect by seccomp alone: socket file": true}
	if s.LandlockABI < 4 {
		skip["connect: TCP"] = true
	}
	for _, a := range takeOver(t, s) {
		scoped := strings.HasPrefix(a.Name, "signal:") || a.Name == "connect: abstract socket"
		if skip[a.Name] || scoped && s.LandlockABI < 6 {
			continue
		}
		if !refusedAs(a, unix.EACCES, unix.EACCES) {
			t.Errorf("%s: %v", a.Name, describe(a))
		}
	}
}

// Ensures that the attacks would work if nothing were in their way: otherwise
// their failure says nothing.
func TestTakenOverChildWithoutConfinement(t *testing.T) {
	t.Parallel()
	log := takeOver(t, bare())
	for _, name := range []string{
		"read: file outside", "read: directory outside", "read: openat ../ from the root", "read: through a link in the root", "read: /etc/passwd",
		"write: open O_WRONLY in the root", "write: open O_RDONLY|O_TRUNC outside", "write: create in the root", "write: /dev/null",
		"write: unlinkat outside", "write: symlinkat outside", "write: mkdirat outside", "write: O_TMPFILE in the root",
		"connect: TCP", "connect: abstract socket", "connect by seccomp alone: socket file", "signal: kill the parent",
	} {
		i := slices.IndexFunc(log, func(a attempt) bool { return a.Name == name })
		if i < 0 || log[i].Errno != 0 {
			t.Errorf("%s does not work without confinement", name)
		}
	}
}

// refusedAs reports whether an attempt ended as it must. Reading outside is
// refused with read, all else with other; some calls have further errors of
// their own, none of which is a success.
func refusedAs(a attempt, read, other unix.Errno) bool {
	kind, _, _ := strings.Cut(a.Name, ":")
	got := unix.Errno(a.Errno)
	switch kind {
	case "allowed":
		return got == 0
	case "filter", "process", "signal", "trace":
		return got == unix.EPERM || kind == "trace" && got == unix.EACCES
	case "memory":
		return got == unix.ENOMEM
	case "descriptors":
		return got == unix.EMFILE
	case "refused":
		return got == unix.EBADF
	case "read":
		// Some paths do not exist everywhere, or are links.
		return got == read || got == unix.ENOENT || got == unix.ELOOP
	case "exec":
		return got == other || a.Name == "exec: execve " && got == unix.ENOENT
	default: // write, connect
		return got == other || got == unix.EPERM || got == unix.EXDEV && strings.Contains(a.Name, "linkat")
	}
}

func describe(a attempt) string {
	if a.Errno == 0 {
		return "it worked"
	}
	return unix.ErrnoName(unix.Errno(a.Errno))
}

func countNamed(log []attempt) int {
	n := 0
	for _, a := range log {
		if !strings.HasPrefix(a.Name, "filter: number ") {
			n++
		}
	}
	return n
}

// requireKernel returns what the kernel supports, and fails the test where that
// is not enough for Strict. It does not skip: a machine on which the
// confinement cannot be tried is not one on which it was tested.
func requireKernel(t *testing.T) support {
	t.Helper()
	s := probeKernel()
	if missing := newReport(s).Missing(); len(missing) > 0 {
		t.Fatalf("this kernel cannot confine: %v", &UnsupportedError{Missing: missing})
	}
	return s
}

// takeOver lets an attacker loose in a child that is confined by s, and checks
// that the world outside it is as before.
func takeOver(t *testing.T, s support) []attempt {
	t.Helper()
	root := attackTarget(t)
	plan := target{
		Root: root, Outside: filepath.Join(filepath.Dir(root), "outside"), Parent: os.Getpid(),
		Landlock: s.LandlockABI > 0, Filter: s.Seccomp,
	}
	listeners := listen(t, &plan)
	before := snapshot(t, filepath.Dir(root))

	r, err := newReader(Options{Roots: []string{root}, Mode: BestEffort, Limits: Limits{Memory: minMemory}, probe: func() support { return s }})
	must(t, err)
	r.childArg = attackArg
	t.Cleanup(func() { must(t, r.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r.child, err = r.start(ctx)
	must(t, err)
	var log []attempt
	must(t, r.child.exchange(ctx, plan, &log))

	if !plan.Landlock && !plan.Filter {
		return log
	}
	if after := snapshot(t, filepath.Dir(root)); !maps.Equal(before, after) {
		t.Errorf("files changed from %v to %v", before, after)
	}
	for _, l := range listeners {
		must(t, l.(interface{ SetDeadline(t time.Time) error }).SetDeadline(time.Now().Add(-time.Second)))
		if conn, err := l.Accept(); err == nil && plan.Filter {
			t.Errorf("%s was connected to", conn.LocalAddr().Network())
		}
	}
	return log
}

// attackTarget makes a root and, next to it, a directory of the same shape.
func attackTarget(t *testing.T) string {
	t.Helper()
	root := MustRoot(t, map[string]string{"a.md": "hello", "dir/.keep": "", "tool": "#!/bin/sh\n", "../outside/a.md": canary, "../outside/dir/.keep": ""})
	must(t, os.Remove(filepath.Join(root, "dir/.keep")))
	must(t, os.Remove(filepath.Join(root, "../outside/dir/.keep")))
	must(t, os.Chmod(filepath.Join(root, "tool"), 0o755))
	must(t, os.Symlink("../outside", filepath.Join(root, "leak")))
	return root
}

// listen opens what an attacker would connect to.
func listen(t *testing.T, plan *target) []net.Listener {
	t.Helper()
	plan.Unix = filepath.Join(t.TempDir(), "s")
	plan.Abstract = fmt.Sprintf("sandbox-test-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(plan.Root)))
	plan.Abstract += fmt.Sprint(time.Now().UnixNano())
	var listeners []net.Listener
	for _, at := range [][2]string{{"tcp4", "127.0.0.1:0"}, {"unix", plan.Unix}, {"unix", "@" + plan.Abstract}} {
		l, err := new(net.ListenConfig).Listen(t.Context(), at[0], at[1])
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		listeners = append(listeners, l)
	}
	plan.TCPPort = listeners[0].Addr().(*net.TCPAddr).Port
	return listeners
}

// snapshot describes all that can change about the files beneath dir.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		stat := info.Sys().(*syscall.Stat_t)
		files[path] = fmt.Sprintf("%v %d %d:%d links %d inode %d changed %v %x", info.Mode(), info.Size(), stat.Uid, stat.Gid,
			stat.Nlink, stat.Ino, stat.Ctim, sha256.Sum256(text))
		return nil
	}))
	return files
}
