package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

func contextWithCause(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), d, errLockWait)
}

// fakeNotifier is a kernel that tells what the test lets it tell.
type fakeNotifier struct {
	events chan fsnotify.Event
	errors chan error
	closed chan struct{}
}

func newFakeNotifier() *fakeNotifier {
	return &fakeNotifier{events: make(chan fsnotify.Event), errors: make(chan error), closed: make(chan struct{})}
}

func (n *fakeNotifier) Events() <-chan fsnotify.Event { return n.events }
func (n *fakeNotifier) Errors() <-chan error          { return n.errors }
func (n *fakeNotifier) Close() error                  { close(n.closed); return nil }

// runFeed starts the feed and stops it with the test.
func runFeed(t *testing.T, f *Feed) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// expect collects changes until every one of the threads was told of.
func expect(t *testing.T, f *Feed, within time.Duration, ids ...chat.ThreadID) {
	t.Helper()
	missing := make(map[chat.ThreadID]bool)
	for _, id := range ids {
		missing[id] = true
	}
	timeout := time.After(within)
	for len(missing) > 0 {
		select {
		case changes := <-f.Changes():
			for _, c := range changes {
				delete(missing, c.Thread)
			}
		case <-timeout:
			t.Fatalf("not told within %v of: %v", within, missing)
		}
	}
}

// expectNothing makes sure that no change is pending. It is for bubbles, where
// all that can happen has happened.
func expectNothing(t *testing.T, f *Feed) {
	t.Helper()
	synctest.Wait()
	select {
	case changes := <-f.Changes():
		t.Errorf("told of %v", changes)
	default:
	}
}

// fakeKernel makes fake notifiers, unless it is exhausted.
type fakeKernel struct {
	mu        sync.Mutex
	exhausted error
	opened    []*fakeNotifier
}

// recover ends the kernel's exhaustion.
func (k *fakeKernel) recover() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.exhausted = nil
}

func (k *fakeKernel) open(string) (notifier, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.exhausted != nil {
		return nil, k.exhausted
	}
	k.opened = append(k.opened, newFakeNotifier())
	return k.opened[len(k.opened)-1], nil
}

// rig is a feed over a fake kernel under a fake clock.
type rig struct {
	*testing.T
	store  *Store
	feed   *Feed
	log    *logBuffer
	kernel *fakeKernel
}

// bubble runs a test with a rig. The channels of the kernel must be made in the
// bubble, or the clock would wait for them.
func bubble(t *testing.T, exhausted error, test func(rig)) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, kernel := new(logBuffer), &fakeKernel{exhausted: exhausted}
		opts := testOptions(root)
		opts.Logger = slog.New(slog.NewTextHandler(log, nil))
		s := Open(opts)
		defer func() { _ = s.Close() }()
		mustPost(t, s, testThread, "stands at the start")
		f := s.Feed(0)
		f.open = kernel.open
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { f.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		<-f.Ready()
		expect(t, f, time.Nanosecond, testThread)
		test(rig{t, s, f, log, kernel})
	})
}

// logBuffer is a log that a test reads while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const secondThread = chat.ThreadID("df0790f236013511")

// Ensures that without any word from the kernel the regular scan alone finds a
// change within 30 s (moby/moby#11705), and that a kernel that stays silent is
// no longer relied upon.
func TestFeed_SilentKernel(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r rig) {
		s, f, t := r.store, r.feed, r.T
		mustPost(t, s, secondThread, "x")
		expectNothing(t, f)
		expect(t, f, DefaultRescan+time.Millisecond, secondThread)
		if got := f.Status().Mode; got != FeedWatching {
			t.Errorf("mode %q before the kernel had its time to tell", got)
		}
		time.Sleep(announceTime)
		synctest.Wait()
		if got := f.Status().Mode; got != FeedPolling {
			t.Errorf("mode %q, want polling", got)
		}
		mustPost(t, s, testThread, "y")
		expect(t, f, pollInterval+time.Millisecond, testThread)
		if n := strings.Count(r.log.String(), "polled instead"); n != 1 {
			t.Errorf("%d lines say so:\n%s", n, r.log)
		}
	})
}

// Ensures that an event which comes just after the scan that found its change
// does not cost the kernel its trust.
func TestFeed_LateEventIsNoSilence(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r rig) {
		s, f, t := r.store, r.feed, r.T
		mustPost(t, s, secondThread, "x")
		expect(t, f, DefaultRescan+time.Millisecond, secondThread)
		r.kernel.opened[0].events <- fsnotify.Event{Name: s.filePath(secondThread), Op: fsnotify.Create}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := f.Status().Mode; got != FeedWatching {
			t.Errorf("mode %q, want watching", got)
		}
		expectNothing(t, f)
	})
}

// Ensures that an overflow of the kernel's queue leads to a scan that finds
// every change, and is counted (fsnotify/fsnotify#343).
func TestFeed_Overflow(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r rig) {
		s, f, t := r.store, r.feed, r.T
		var ids []chat.ThreadID
		for i := range 200 {
			ids = append(ids, chat.Token(fmt.Sprint(i)).Thread())
			mustPost(t, s, ids[i], "x")
		}
		expectNothing(t, f)
		r.kernel.opened[0].errors <- fsnotify.ErrEventOverflow
		expect(t, f, time.Nanosecond, ids...)
		if n := f.Status().Overflows; n != 1 {
			t.Errorf("%d overflows counted", n)
		}
	})
}

// Ensures that a kernel which says that it lost notifications keeps its trust,
// also when a regular scan had found the changes just before.
func TestFeed_OverflowIsNoSilence(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r rig) {
		s, f, t := r.store, r.feed, r.T
		mustPost(t, s, secondThread, "x")
		expect(t, f, DefaultRescan+time.Millisecond, secondThread)
		r.kernel.opened[0].errors <- fsnotify.ErrEventOverflow
		time.Sleep(2 * announceTime)
		synctest.Wait()
		if got := f.Status().Mode; got != FeedWatching {
			t.Errorf("mode %q, want watching", got)
		}
	})
}

// Ensures that exhausted kernel limits mean polling with one clear line that
// names the sysctl and not the disk, and watching again once they are raised
// (grafana/agent#6588).
func TestFeed_ExhaustedKernel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err    error
		sysctl string
	}{{unix.ENOSPC, "fs.inotify.max_user_watches"}, {unix.EMFILE, "fs.inotify.max_user_instances"}} {
		t.Run(test.sysctl, func(t *testing.T) {
			t.Parallel()
			bubble(t, os.NewSyscallError("inotify", test.err), func(r rig) {
				s, f, t := r.store, r.feed, r.T
				mustPost(t, s, secondThread, "x")
				expect(t, f, pollInterval+time.Millisecond, secondThread)
				time.Sleep(2 * DefaultRescan)
				synctest.Wait()
				text := r.log.String()
				if strings.Count(text, "polled instead") != 1 || !strings.Contains(text, test.sysctl) || strings.Contains(text, "no space left") {
					t.Errorf("the log says:\n%s", text)
				}
				r.kernel.recover()
				time.Sleep(DefaultRescan + pollInterval)
				synctest.Wait()
				if got := f.Status().Mode; got != FeedWatching {
					t.Errorf("mode %q, want watching again", got)
				}
			})
		})
	}
}

// Ensures that the log tells how often the directory is polled where the regular
// scan comes more often than polling would.
func TestFeed_LogsItsInterval(t *testing.T) {
	t.Parallel()
	log := new(logBuffer)
	opts := testOptions(t.TempDir())
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	s := Open(opts)
	defer func() { _ = s.Close() }()
	mustPost(t, s, testThread, "stands at the start")
	f := s.Feed(time.Second)
	f.open = (&fakeKernel{exhausted: unix.EMFILE}).open
	f.watch()
	f.distrust()
	if n := strings.Count(log.String(), "every=1s"); n != 2 {
		t.Errorf("the log says %d times that it polls every second:\n%s", n, log)
	}
}

// Ensures that an unreadable directory is tried again at the regular times and
// not in a loop.
func TestFeed_ScanFails(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r rig) {
		s, t := r.store, r.T
		if err := os.Rename(s.path, s.path+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * DefaultRescan)
		synctest.Wait()
		if n := strings.Count(r.log.String(), "scanning the threads failed"); n != 1 {
			t.Errorf("%d failures logged in %v", n, 10*DefaultRescan)
		}
	})
}

// Ensures that with the real kernel every replacement of a thread's file is
// told of, whoever writes, the first one and the last one alike
// (fsnotify/fsnotify#503).
func TestFeed_RealKernel(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	f := s.Feed(time.Hour)
	runFeed(t, f)
	<-f.Ready() // there is no directory yet
	mustPost(t, s, testThread, "first")
	expect(t, f, 10*time.Second, testThread)
	other := Open(testOptions(s.opts.Root))
	defer func() { _ = other.Close() }()
	for i := range 5 {
		mustPost(t, other, testThread, fmt.Sprint(i))
		expect(t, f, 10*time.Second, testThread)
	}
	if _, err := s.Reset(t.Context(), testThread); err != nil {
		t.Fatal(err)
	}
	expect(t, f, 10*time.Second, testThread)
	if got := f.Status().Mode; got != FeedWatching {
		t.Errorf("mode %q, want watching", got)
	}
}

// Ensures that a directory that was moved away and made anew is watched again
// by the real kernel, and that what went away is told of.
func TestFeed_DirectoryReplaced(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "x")
	f := s.Feed(time.Hour)
	runFeed(t, f)
	expect(t, f, 10*time.Second, testThread)
	for round := range 3 {
		if err := os.Rename(s.path, filepath.Join(filepath.Dir(s.path), fmt.Sprint("moved", round))); err != nil {
			t.Fatal(err)
		}
		expect(t, f, 10*time.Second, testThread) // removed
		mustPost(t, s, secondThread, "elsewhere")
		expect(t, f, 10*time.Second, secondThread)
		mustPost(t, s, testThread, "again")
		expect(t, f, 10*time.Second, testThread)
	}
}

// Ensures that a reader that is not there holds up nothing and misses no state.
func TestFeed_SlowReader(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	f := s.Feed(0)
	runFeed(t, f)
	<-f.Ready()
	var ids []chat.ThreadID
	for i := range 50 {
		ids = append(ids, chat.Token(fmt.Sprint(i)).Thread())
		mustPost(t, s, ids[i], "x")
		mustPost(t, s, ids[i], "y")
	}
	expect(t, f, 10*time.Second, ids...)
}

// Ensures that the feed asks for another watch when the kernel's channel ends.
func TestFeed_WatcherEnds(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r rig) {
		s, f, t := r.store, r.feed, r.T
		mustPost(t, s, secondThread, "x")
		r.kernel.opened[0].errors <- errors.New("broken")
		expect(t, f, time.Nanosecond, secondThread)
		close(r.kernel.opened[1].events)
		synctest.Wait()
		if n := len(r.kernel.opened); n != 3 {
			t.Errorf("%d watches were opened, want 3", n)
		}
		<-r.kernel.opened[1].closed
	})
}
