package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Ensures that a probe passes where messages can be stored and leaves nothing
// behind, and that it fails with what the system says at each of its steps.
func TestProbe(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	if err := s.Probe(); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"create", "write", "sync file"} {
		s.step = func(step string) error {
			if step == at {
				return unix.ENOSPC
			}
			return nil
		}
		if err := s.Probe(); !errors.Is(err, unix.ENOSPC) || chat.CodeOf(err) != chat.CodeStorage {
			t.Errorf("a full disk at %q: %v", at, err)
		}
	}
	entries, err := os.ReadDir(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			t.Errorf("the probe left %s behind", e.Name())
		}
	}
}

// Ensures that a probe passes although a sweep has taken its file away before it
// could.
func TestProbe_SweptMeanwhile(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	swept := 0
	s.step = func(step string) error {
		files, err := filepath.Glob(filepath.Join(s.path, "."+probeName+".*"))
		for _, file := range files {
			if step == "sync file" {
				swept++
				err = os.Remove(file)
			}
		}
		return err
	}
	if err := s.Probe(); err != nil || swept != 1 {
		t.Errorf("%v, %d files swept", err, swept)
	}
}

// Ensures that every sync of an append is told: the file's and the directory's.
func TestSynced_TellsOfEachSync(t *testing.T) {
	t.Parallel()
	var told atomic.Int64
	s := mustOpen(t, func(o *Options) { o.Synced = func(time.Duration) { told.Add(1) } })
	mustPost(t, s, testThread, "first")
	before := told.Load()
	mustPost(t, s, testThread, "second")
	if n := told.Load() - before; n != 2 {
		t.Errorf("an append told of %d syncs, want 2", n)
	}
}

// Ensures that new bounds hold from the next call on, also for a thread that is
// in memory already.
func TestConfigure_HoldsAtOnce(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	for _, text := range []string{"1", "2", "3"} {
		mustPost(t, s, testThread, text)
	}
	poll := func() int {
		t.Helper()
		page, err := s.Poll(testThread, 1)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Messages())
	}
	bounds := *s.limits.Load()
	bounds.Page = 2
	s.Configure(bounds)
	if n := poll(); n != 2 {
		t.Errorf("a page of 2 holds %d", n)
	}
	bounds.Page, bounds.Threads, bounds.Retention.Messages = 50, 1, 2
	s.Configure(bounds)
	mustPost(t, s, testThread, "4")
	if n := poll(); n != 2 {
		t.Errorf("%d messages are kept, want 2", n)
	}
	_, err := s.Append(t.Context(), chat.ThreadID("ffffffffffffffff"), Post{Author: chat.Operator, Text: "x", Create: true})
	if chat.CodeOf(err) != chat.CodeThreadLimit {
		t.Errorf("a second thread: %v", err)
	}
}

// Ensures that a feed answers a ping while it runs and that nobody waits for ever
// for one that is caught in the file system.
func TestFeed_Ping(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r rig) {
		if err := r.feed.Ping(r.Context()); err != nil {
			t.Error(err)
		}
		caught := make(chan struct{})
		r.feed.open = func(string) (notifier, error) { <-caught; return newFakeNotifier(), nil }
		r.kernel.opened[0].errors <- errors.New("start anew")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := r.feed.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a feed that is caught: %v", err)
		}
		close(caught)
		if err := r.feed.Ping(r.Context()); err != nil {
			t.Error(err)
		}
	})
}
