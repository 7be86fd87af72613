package sandbox

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Ensures that whatever a child answers that an honest one could not have is
// refused, and that the next request is served by an honest one.
func TestChildIsDistrusted(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{"a.md": "hello"})
	read := func(r *Reader) error {
		_, err := r.Read(context.Background(), "docs/a.md", 0, 0)
		return err
	}
	list := func(r *Reader) error {
		_, err := r.List(context.Background(), "docs")
		return err
	}
	for asking, told := range map[string]map[string]string{"read": lies(), "list": listLies()} {
		ask := map[string]func(*Reader) error{"read": read, "list": list}[asking]
		for _, name := range slices.Sorted(maps.Keys(told)) {
			t.Run(asking+" "+name, func(t *testing.T) {
				t.Parallel()
				r := MustStart(t, Options{Roots: []string{root}, childArg: lieArg + name})
				liar := r.child
				if err := ask(r); !errors.Is(err, ErrChild) {
					t.Errorf("the lie was answered with %v", err)
				}
				r.childArg = childArg
				if err := ask(r); err != nil {
					t.Errorf("the honest child: %v", err)
				}
				<-liar.exited
			})
		}
	}
}

// Ensures that a child that is not confined, by its own account, serves nobody.
func TestChildMustBeConfined(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Options{childArg: lieArg + "broken"}); !errors.Is(err, ErrNotConfined) || !strings.Contains(err.Error(), promiseExec) {
		t.Errorf("a broken promise: %v", err)
	}
	_, err := Start(t.Context(), Options{childArg: lieArg + "failed"})
	if !errors.Is(err, ErrChild) || !strings.Contains(err.Error(), "no ⟦U+001B⟧[2Jluck") {
		t.Errorf("a child that fails to confine itself: %v", err)
	}
	// The test binary takes this for a flag of its own, and prints a usage.
	if _, err := Start(t.Context(), Options{childArg: "-no-such-flag"}); !errors.Is(err, ErrChild) {
		t.Errorf("a binary without the hook: %v", err)
	}
}

// Ensures that a child which does not answer is killed when the caller's patience
// is over, or its own time, and replaced.
func TestSilentChild(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{"a.md": "hello"})
	start := func(t *testing.T) *Reader {
		return MustStart(t, Options{Roots: []string{root}, childArg: lieArg + "hang", Limits: Limits{Time: time.Millisecond}})
	}
	check := func(t *testing.T, r *Reader, ctx context.Context, want error) {
		child := r.child
		if _, err := r.Read(ctx, "docs/a.md", 0, 0); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		<-child.exited
		r.childArg = childArg
		if e, err := r.Read(t.Context(), "docs/a.md", 0, 0); err != nil || e.Text != "hello" {
			t.Errorf("the next child: %+v, %v", e, err)
		}
	}
	t.Run("its own time", func(t *testing.T) {
		t.Parallel()
		check(t, start(t), t.Context(), ErrTimeout)
	})
	t.Run("the caller's deadline", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		check(t, r, ctx, context.DeadlineExceeded)
	})
	t.Run("the caller gives up", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		check(t, r, ctx, context.Canceled)
	})
	t.Run("waiting for a turn", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.turn <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.List(ctx, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		r.release()
	})
	t.Run("a start that is called off", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Start(ctx, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// Ensures that closing ends a request under way and leaves no child behind.
func TestClose(t *testing.T) {
	t.Parallel()
	r, err := Start(t.Context(), Options{childArg: lieArg + "hang"})
	must(t, err)
	child := r.child
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := r.List(context.Background(), "")
			done <- err
		}()
	}
	for range 2 {
		must(t, r.Close())
	}
	for range 2 {
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("a request under way: %v", err)
		}
	}
	select {
	case <-child.exited:
	default:
		t.Error("the child is still there")
	}
	if _, err := r.List(t.Context(), ""); !errors.Is(err, ErrClosed) {
		t.Errorf("a request after the end: %v", err)
	}
}

// Ensures that a child that was killed from outside is replaced before anyone
// notices, and that one serves only so many requests.
func TestReplacement(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{"a.md": "hello"})
	r := MustStart(t, Options{Roots: []string{root}, Limits: Limits{Requests: 3}})
	seen := make(map[int]int)
	for range 9 {
		_, err := r.Read(t.Context(), "docs/absent.md", 0, 0)
		if !errors.Is(err, ErrNotReadable) {
			t.Fatal(err)
		}
		if r.child != nil {
			seen[r.child.cmd.Process.Pid]++
		}
	}
	if len(seen) != 3 {
		t.Errorf("9 requests were served by %d children, want 3", len(seen))
	}
	_, err := r.List(t.Context(), "")
	must(t, err)
	must(t, r.child.cmd.Process.Kill())
	<-r.child.exited
	if e, err := r.Read(t.Context(), "docs/a.md", 0, 0); err != nil || e.Text != "hello" {
		t.Errorf("after the child's death: %+v, %v", e, err)
	}
}

// Ensures, as seen from outside, that every thread of the child is confined, that
// its limits are set, and that it has nothing of its parent's.
func TestChildFromOutside(t *testing.T) {
	t.Parallel()
	// What is leaked to children in general is not to this one.
	leaked, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0)
	must(t, err)
	defer func() { _ = unix.Close(leaked) }()
	r := MustStart(t, Options{Roots: []string{MustRoot(t, nil)}})
	pid := r.child.cmd.Process.Pid
	all := threads(t, pid)
	if len(all) < spareThreads {
		t.Errorf("%d threads, want at least %d", len(all), spareThreads)
	}
	for _, thread := range all {
		s := status(t, pid, thread)
		for field, want := range map[string]string{
			"NoNewPrivs": "1", "Seccomp": "2",
			"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000",
		} {
			if s[field] != want {
				t.Errorf("thread %s: %s is %s, want %s", thread, field, s[field], want)
			}
		}
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	limits, err := os.ReadFile(filepath.Join(proc, "limits"))
	must(t, err)
	for name, want := range map[string]string{
		"Max file size": "0 0", "Max core file size": "0 0", "Max processes": "0 0", "Max locked memory": "0 0", "Max open files": "65 65",
		"Max msgqueue size": "0 0", "Max cpu time": "106 106",
	} {
		if got := limitOf(string(limits), name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	if want := filepath.Base(os.Args[0]) + "\x00" + childArg + "\x00"; err != nil || string(cmdline) != want {
		t.Errorf("arguments %q, %v, want %q", cmdline, err, want)
	}
	environ, err := os.ReadFile(filepath.Join(proc, "environ"))
	if os.Getuid() != 0 {
		if err == nil {
			t.Error("another process of the same user can look into the child")
		}
		return
	}
	if err != nil || len(environ) > 0 {
		t.Errorf("environment %q, %v", environ, err)
	}
	checkDescriptors(t, proc)
}

// limitOf returns the soft and the hard limit of a name.
func limitOf(limits, name string) string {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			fields := strings.Fields(rest)
			return fields[0] + " " + fields[1]
		}
	}
	return ""
}

// checkDescriptors accepts the two pipes, nothing for standard error, the root
// twice at most, and what the runtime opens for itself.
func checkDescriptors(t *testing.T, proc string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(proc, "fd"))
	must(t, err)
	for _, entry := range entries {
		to, err := os.Readlink(filepath.Join(proc, "fd", entry.Name()))
		must(t, err)
		isOwn := strings.HasPrefix(to, "anon_inode:[event") || strings.HasPrefix(to, "/sys/fs/cgroup/") || strings.HasSuffix(to, "/docs")
		switch fd := entry.Name(); fd {
		case "0", "1":
			isOwn = strings.HasPrefix(to, "pipe:")
		case "2":
			isOwn = to == "/dev/null"
		}
		if !isOwn {
			t.Errorf("descriptor %s is %s", entry.Name(), to)
		}
	}
	if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err != nil || cwd != "/" {
		t.Errorf("the working directory is %s, %v", cwd, err)
	}
}

// Ensures that the child dies with its parent, even if it is in no state to
// notice, and even if it is not asked anything.
func TestChildDiesWithParent(t *testing.T) {
	t.Parallel()
	child, kill := startOwner(t)
	pidfd, err := unix.PidfdOpen(child, 0)
	must(t, err)
	defer func() { _ = unix.Close(pidfd) }()
	must(t, unix.Kill(child, unix.SIGSTOP))
	kill()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 30_000)
	if err != nil || n != 1 {
		t.Errorf("the child outlives its parent: %d, %v", n, err)
	}
}

// Ensures that the child leaves signals to the whole service to its parent,
// which may want an answer still.
func TestChildIgnoresServiceSignals(t *testing.T) {
	t.Parallel()
	r := MustStart(t, Options{})
	child := r.child
	for _, signal := range []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		must(t, child.cmd.Process.Signal(signal))
	}
	if _, err := r.List(t.Context(), ""); err != nil || r.child != child {
		t.Errorf("the child went away: %v", err)
	}
}

// Ensures that a child that someone starts by hand does not take a terminal or a
// file for its parent.
func TestChildWantsPipes(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	state, text := runByHand(t, childArg, out)
	if state != "exit status 1" || !strings.Contains(text, "is not a pipe") {
		t.Errorf("%s, and it wrote %q", state, text)
	}
}

// Ensures that no file grows by what the child writes, were it to have one.
func TestChildCannotGrowFiles(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	state, text := runByHand(t, writerArg, out)
	if text != "" || state == "exit status 0" {
		t.Errorf("%s, and it wrote %q", state, text)
	}
}

// Ensures that a child that wants more memory than it may have ends, and takes
// nothing with it.
func TestChildCannotEatMemory(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{"a.md": "hello"})
	r := MustStart(t, Options{Roots: []string{root}, childArg: eaterArg, Limits: Limits{Memory: minMemory}})
	if l, err := r.List(t.Context(), ""); !errors.Is(err, ErrChild) {
		t.Errorf("got %+v, %v", l, err)
	}
	r.childArg = childArg
	if _, err := r.Read(t.Context(), "docs/a.md", 0, 0); err != nil {
		t.Error(err)
	}
}
