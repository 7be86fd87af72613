package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Ensures that a message is acknowledged only after write, sync, rename and
// sync of the directory, in that order (tailscale/tailscale#538,
// npm/write-file-atomic#64).
func TestAppend_SyncsInOrder(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "first")
	var steps []string
	s.step = func(step string) error { steps = append(steps, step); return nil }
	mustPost(t, s, testThread, "second")
	want := []string{"create", "write", "set mode", "sync file", "rename", "sync directory"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// Ensures that whoever finds a directory that another process is just making
// syncs its parent, too, before anything in it is acknowledged.
func TestAppend_SyncsDirectoriesThatAnotherMakes(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	var steps []string
	s.step = func(step string) error {
		steps = append(steps, step)
		return os.MkdirAll(s.path, 0o770)
	}
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for range 4 { // spaces, newos4, data, chat
		want = append(want, "make directory", "sync directory")
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// Ensures that removing, shortening, resetting and starting a thread are as
// durable as appending: in each, what must be on disk first is synced first.
func TestChanges_SyncInOrder(t *testing.T) {
	t.Parallel()
	write := []string{"create", "write", "set mode", "sync file", "rename"}
	synced := append(slices.Clone(write), "sync directory")
	far := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*Store) error
		want   []string
	}{
		"start": {
			func(s *Store) error {
				_, err := s.Append(t.Context(), "df0790f236013511", Post{Author: chat.Operator, Text: "x", Create: true})
				return err
			},
			synced,
		},
		"remove": {
			func(s *Store) error {
				s.opts.Now = func() time.Time { return far }
				_, err := s.Sweep(t.Context(), SweepOptions{})
				return err
			},
			slices.Concat(synced, []string{"remove", "sync directory"}),
		},
		"shorten": {
			func(s *Store) error {
				s.limits.Load().Retention.Messages = 1
				_, err := s.Sweep(t.Context(), SweepOptions{})
				return err
			},
			synced,
		},
		"reset": {
			func(s *Store) error { _, err := s.Reset(t.Context(), testThread); return err },
			slices.Concat(synced, []string{"make directory", "sync directory", "move aside", "sync directory", "sync directory"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t)
			mustPost(t, s, testThread, "one")
			mustPost(t, s, testThread, "two")
			var steps []string
			s.step = func(step string) error { steps = append(steps, step); return nil }
			if err := test.change(s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// Ensures that a failure at any step acknowledges nothing, leaves the old
// thread readable and no temporary file, and does not stand in the way of the
// next message.
func TestAppend_FailsCleanlyAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"create", "write", "set mode", "sync file", "rename", "sync directory"} {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t)
			mustPost(t, s, testThread, "old")
			s.step = func(step string) error {
				if step == failing {
					return unix.ENOSPC
				}
				return nil
			}
			_, err := s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "new"})
			if chat.CodeOf(err) != chat.CodeStorage || !errors.Is(err, unix.ENOSPC) {
				t.Errorf("Append = %v, want storage: no space", err)
			}
			got := texts(t, s, testThread)
			isOld := slices.Equal(got, []string{"old"})
			isWhole := failing == "sync directory" && slices.Equal(got, []string{"old", "new"})
			if !isOld && !isWhole {
				t.Errorf("texts = %v", got)
			}
			if names, _ := regularNames(s.path, isTempName); len(names) > 0 {
				t.Errorf("left behind: %v", names)
			}
			s.step = func(string) error { return nil }
			mustPost(t, s, testThread, "next")
			if after := texts(t, s, testThread); after[len(after)-1] != "next" {
				t.Errorf("texts = %v", after)
			}
		})
	}
}

// Ensures the conditions of a post: a reply starts no thread, and is refused
// when something newer stands.
func TestAppend_Conditions(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	if _, err := s.Append(t.Context(), testThread, Post{Author: chat.Hermes, Text: "x"}); chat.CodeOf(err) != chat.CodeNotFound {
		t.Errorf("a reply to nothing: %v", err)
	}
	if ids, err := s.Threads(); err != nil || len(ids) != 0 {
		t.Errorf("threads = %v, %v", ids, err)
	}
	first := mustPost(t, s, testThread, "one")
	mustPost(t, s, testThread, "two")
	_, err := s.Append(t.Context(), testThread, Post{Author: chat.Hermes, Text: "x", IfLast: first.Message.ID})
	if chat.CodeOf(err) != chat.CodeConflict {
		t.Errorf("a reply to what is not the last: %v", err)
	}
	last := mustPost(t, s, testThread, "three")
	if _, err := s.Append(t.Context(), testThread, Post{Author: chat.Hermes, Text: "x", IfLast: last.Message.ID}); err != nil {
		t.Errorf("a reply to the last: %v", err)
	}
	if diff := cmp.Diff([]string{"one", "two", "three", "x"}, texts(t, s, testThread)); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

// Ensures that the receipt, the file and the poll agree, and that text is kept
// byte for byte.
func TestAppend_StoresWhatItSays(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	text := "  \x00\x1b[2J é e\u0301 \ufffd 👨‍👩‍👧‍👦\n"
	receipt := mustPost(t, s, testThread, text)
	if !receipt.Created || receipt.Threads != 1 || receipt.Message.Epoch != clock.t.UnixMilli() || receipt.Message.TS() != "2026-10-23T18:00:00+00:00" {
		t.Errorf("receipt = %+v", receipt)
	}
	page, err := s.Poll(testThread, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]chat.Message{receipt.Message}, page.Messages()); diff != "" {
		t.Errorf("poll (-receipt +poll):\n%s", diff)
	}
	if page.Messages()[0].Text != text {
		t.Errorf("text = %q", page.Messages()[0].Text)
	}
}

// Ensures that epochs increase, and so do the times of the file, when the clock
// stands still or runs back (nats-io/nats-streaming-server#233).
func TestAppend_ClockStandsStill(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	var last int64
	var before identity
	for i := range 120 {
		if i == 60 {
			clock.t = clock.t.Add(-time.Hour)
		}
		receipt := mustPost(t, s, testThread, "x")
		if receipt.Message.Epoch <= last {
			t.Fatalf("epoch %d after %d", receipt.Message.Epoch, last)
		}
		last = receipt.Message.Epoch
		var st unix.Stat_t
		if err := unix.Lstat(s.filePath(testThread), &st); err != nil {
			t.Fatal(err)
		}
		if now := identityOf(&st); now.mtime <= before.mtime {
			t.Fatalf("file time %d after %d", now.mtime, before.mtime)
		} else {
			before = now
		}
	}
}

// Ensures that message ids are unique inside a thread even if the random source
// repeats itself.
func TestAppend_IDsAreUnique(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	random := &repeating{}
	s := mustOpen(t, func(o *Options) { o.Now, o.Random = clock.now, random })
	seen := make(map[string]bool)
	for range 20 {
		id := mustPost(t, s, testThread, "x").Message.ID
		if seen[id] {
			t.Fatalf("%s was given twice", id)
		}
		seen[id] = true
	}
}

// repeating yields every byte four times, so that ids collide.
type repeating struct{ n int }

func (r *repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.n / 4 / len(p))
		r.n++
	}
	return len(p), nil
}

// Ensures that goroutines and processes that write to one thread at once lose
// and double nothing and keep each writer's order
// (BaseIntelligence/bounty-challenge#19685).
func TestAppend_ManyProcessesOneThread(t *testing.T) {
	t.Parallel()
	const processes, goroutines, each = 4, 4, 40
	s := mustOpen(t)
	var children []*child
	for p := range processes {
		children = append(children, startChild(t, "append", childJob{Root: s.opts.Root, Thread: testThread, Text: fmt.Sprint("process ", p), Count: each}))
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				if _, err := s.Append(context.Background(), testThread, Post{Author: chat.Agent, Text: fmt.Sprintf("goroutine %d %d", g, i), Create: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, c := range children {
		if _, err := c.finish(); err != nil {
			t.Error(err)
		}
	}
	got := texts(t, s, testThread)
	if len(got) != (processes+goroutines)*each {
		t.Errorf("%d messages, want %d", len(got), (processes+goroutines)*each)
	}
	next := make(map[string]int)
	for _, text := range got {
		i := strings.LastIndexByte(text, ' ')
		if want := fmt.Sprint(next[text[:i]]); text[i+1:] != want {
			t.Fatalf("%q, want number %s of its writer", text, want)
		}
		next[text[:i]]++
	}
}

// Ensures that racing creators in several processes never exceed the limit of
// threads, and reach it exactly (section 4).
func TestAppend_ThreadLimitHoldsAcrossProcesses(t *testing.T) {
	t.Parallel()
	const limit = 50
	s := mustOpen(t, func(o *Options) { o.Threads = limit })
	var children []*child
	for p := range 4 {
		children = append(children, startChild(t, "create", childJob{Root: s.opts.Root, Text: fmt.Sprint(p, "-"), Count: 40, Threads: limit}))
	}
	created := 0
	for _, c := range children {
		lines, err := c.finish()
		if err != nil {
			t.Error(err)
		}
		created += len(lines)
	}
	if ids, err := s.Threads(); err != nil || len(ids) != limit || created != limit {
		t.Errorf("%d threads, %d created, want %d (%v)", len(ids), created, limit, err)
	}
	if _, err := s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "x", Create: true}); chat.CodeOf(err) != chat.CodeThreadLimit {
		t.Errorf("one more thread: %v", err)
	}
}

// Ensures that files and directories carry the mode that every writer of the
// group needs, whatever the umask (mdwn/mtrack#361).
func TestAppend_ModesIgnoreTheUmask(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if _, err := startChild(t, "append", childJob{Root: root, Thread: testThread, Text: "x", Count: 2, Umask: 0o077}).finish(); err != nil {
		t.Fatal(err)
	}
	s := Open(testOptions(root))
	for path, want := range map[string]os.FileMode{
		filepath.Join(root, "spaces"):               os.ModeDir | os.ModeSetgid | 0o770,
		s.path:                                      os.ModeDir | os.ModeSetgid | 0o770,
		s.filePath(testThread):                      0o660,
		filepath.Join(s.path, lockName):             0o660,
		filepath.Join(root, "spaces/newos4/data"):   os.ModeDir | os.ModeSetgid | 0o770,
		filepath.Join(root, "spaces", s.opts.Space): os.ModeDir | os.ModeSetgid | 0o770,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := info.Mode(); got != want {
			t.Errorf("%s has mode %v, want %v", path, got, want)
		}
	}
}

// Ensures that threads and the lock have the group of their directory even where
// the directory does not hand it down
// (https://github.com/mdwn/mtrack/issues/361).
func TestAppend_GroupOfTheDirectory(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.path, lockName)); err != nil {
		t.Fatal(err)
	}
	gid := otherGroup(t)
	if err := os.Chown(s.path, -1, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.path, 0o770); err != nil {
		t.Fatal(err)
	}
	mustPost(t, s, testThread, "x")
	for _, path := range []string{s.filePath(testThread), filepath.Join(s.path, lockName)} {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil || int(st.Gid) != gid || st.Mode&0o777 != fileMode {
			t.Errorf("%s has group %d and mode %o, want %d and %o (%v)", path, st.Gid, st.Mode&0o777, gid, fileMode, err)
		}
	}
}

// otherGroup returns a group that this process may give files to and that is not
// its own, or its own for a user who is in no other.
func otherGroup(t *testing.T) int {
	t.Helper()
	if os.Geteuid() == 0 {
		return os.Getegid() + 4711
	}
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, gid := range groups {
		if gid != os.Getegid() {
			return gid
		}
	}
	return os.Getegid()
}

// Ensures that a writer waits for another process's lock only so long, says
// what it waited for, and goes on when the holder dies.
func TestAppend_WaitsForALockedThread(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "old")
	holder := startChild(t, "hold", childJob{Root: s.opts.Root, Thread: testThread})
	if !holder.stdout.Scan() {
		t.Fatal("the child did not take the lock")
	}
	s.opts.LockWait = 50 * time.Millisecond
	_, err := s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "x"})
	if chat.CodeOf(err) != chat.CodeStorage || !errors.Is(err, errLockWait) {
		t.Errorf("Append = %v, want a lock that is held", err)
	}
	s.opts.LockWait = defaultLockWait
	other := chat.ThreadID("df0790f236013511")
	mustPost(t, s, other, "another thread is not held up")
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = holder.finish()
	mustPost(t, s, testThread, "the lock ended with its process")
}

// Ensures that the locks which all threads share are waited for only so long as
// well, and that nothing is made or removed without them.
func TestAppend_WaitsForTheSharedLocks(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "old")
	s.opts.LockWait = 50 * time.Millisecond
	other := Open(testOptions(s.opts.Root))
	defer func() { _ = other.Close() }()
	dir, err := other.writableDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{creationByte, marksByte} {
		unlock, err := other.lockByte(t.Context(), dir, offset)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
	}
	if _, err := s.Append(t.Context(), "df0790f236013511", Post{Author: chat.Operator, Text: "x", Create: true}); !errors.Is(err, errLockWait) {
		t.Errorf("a new thread: %v, want a lock that is held", err)
	}
	if _, err := s.Reset(t.Context(), testThread); !errors.Is(err, errLockWait) {
		t.Errorf("a reset: %v, want a lock that is held", err)
	}
	if ids, err := s.Threads(); err != nil || !slices.Equal(ids, []chat.ThreadID{testThread}) {
		t.Errorf("threads = %v, %v", ids, err)
	}
}

// Ensures that a panic in mid-write leaves no thread locked, for this process or
// another.
func TestAppend_PanicLetsGoOfTheLock(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "old")
	s.step = func(string) error { panic("a fault in mid-write") }
	func() {
		defer func() { _ = recover() }()
		_, _ = s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "x"})
		t.Error("no panic")
	}()
	s.step = func(string) error { return nil }
	mustPost(t, s, testThread, "from this store")
	other := Open(s.opts)
	defer func() { _ = other.Close() }()
	mustPost(t, other, testThread, "from another")
}

// Ensures that a thread directory that was moved away or replaced is noticed,
// and that the old one keeps what it had.
func TestAppend_DirectoryMovedAway(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "old")
	moved := s.path + ".moved"
	if err := os.Rename(s.path, moved); err != nil {
		t.Fatal(err)
	}
	if page, err := s.Poll(testThread, 0); err != nil || !page.Empty() {
		t.Errorf("poll without a directory: %+v, %v", page, err)
	}
	if !mustPost(t, s, testThread, "new").Created {
		t.Error("the thread was not made anew")
	}
	if got := texts(t, s, testThread); !slices.Equal(got, []string{"new"}) {
		t.Errorf("texts = %v", got)
	}
	if data, err := os.ReadFile(filepath.Join(moved, fileName(testThread))); err != nil || !strings.Contains(string(data), `"old"`) {
		t.Errorf("the moved thread is %q, %v", data, err)
	}
}

// Ensures that a writer who waited for a lock while the directory was replaced
// writes to the new one.
func TestAppend_DirectoryMovedAwayWhileWaiting(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "old")
	unlock, err := s.local.lock(t.Context(), threadByte(testThread))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "new", Create: true}); err != nil {
			t.Error(err)
		}
	})
	waiting := func() bool {
		s.local.mu.Lock()
		defer s.local.mu.Unlock()
		return s.local.held[threadByte(testThread)].users == 2
	}
	for !waiting() {
		runtime.Gosched()
	}
	if err := os.Rename(s.path, s.path+".moved"); err != nil {
		t.Fatal(err)
	}
	unlock()
	wg.Wait()
	if got := texts(t, s, testThread); !slices.Equal(got, []string{"new"}) {
		t.Errorf("texts = %v", got)
	}
}

// Ensures that a lock file that somebody removed does not split the writers
// into two camps.
func TestAppend_LockFileRemoved(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "one")
	if err := os.Remove(filepath.Join(s.path, lockName)); err != nil {
		t.Fatal(err)
	}
	mustPost(t, s, testThread, "two")
	held, err := s.lockThread(t.Context(), testThread, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer held.unlock()
	other := Open(testOptions(s.opts.Root))
	defer func() { _ = other.Close() }()
	if _, err := other.lockThread(t.Context(), testThread, 10*time.Millisecond); !errors.Is(err, errLockWait) {
		t.Errorf("two stores hold the lock: %v", err)
	}
}

// Ensures that a thread at the end of time takes no message that would make its
// file corrupt (https://github.com/dstackai/dstack/issues/1727).
func TestAppend_AtTheEndOfTime(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, func(o *Options) {
		o.Now = func() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC) }
	})
	mustPost(t, s, testThread, "the last")
	if _, err := s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "x"}); chat.CodeOf(err) != chat.CodeStorage {
		t.Errorf("Append = %v, want an error of the storage", err)
	}
	if got := texts(t, s, testThread); !slices.Equal(got, []string{"the last"}) {
		t.Errorf("the thread holds %q", got)
	}
}
