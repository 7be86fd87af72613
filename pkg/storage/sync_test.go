package storage

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Ensures that everybody who comes while a sync runs shares the next one, and
// that nobody relies on a sync that began before their rename.
func TestSyncGroup_SharesTheNextRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var syncs atomic.Int32
		g := newSyncGroup(func() error { syncs.Add(1); <-gate; return nil })
		var wg sync.WaitGroup
		var returned atomic.Int32
		join := func() {
			wg.Go(func() {
				if err := g.wait(); err != nil {
					t.Error(err)
				}
				returned.Add(1)
			})
			synctest.Wait()
		}
		join() // starts the first sync
		for range 10 {
			join() // all wait for the second
		}
		if returned.Load() != 0 {
			t.Errorf("%d returned before any sync ended", returned.Load())
		}
		gate <- struct{}{}
		synctest.Wait()
		if returned.Load() != 1 {
			t.Errorf("%d returned with the first sync, want 1", returned.Load())
		}
		gate <- struct{}{}
		wg.Wait()
		if syncs.Load() != 2 || returned.Load() != 11 {
			t.Errorf("%d syncs for %d callers", syncs.Load(), returned.Load())
		}
	})
}

// Ensures that a failed sync fails everybody whom it was to cover, and nobody
// else.
func TestSyncGroup_FailsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		outcome := make(chan error)
		g := newSyncGroup(func() error { return <-outcome })
		results := make(chan error, 4)
		join := func() {
			go func() { results <- g.wait() }()
			synctest.Wait()
		}
		join()
		for range 3 {
			join()
		}
		outcome <- nil
		if err := <-results; err != nil {
			t.Errorf("the first caller: %v", err)
		}
		outcome <- broken
		for range 3 {
			if err := <-results; !errors.Is(err, broken) {
				t.Errorf("a caller of the failed round: %v", err)
			}
		}
		join()
		outcome <- nil
		if err := <-results; err != nil {
			t.Errorf("the caller after it: %v", err)
		}
	})
}

// Ensures that a waiter for a local lock gives up with its context and that the
// map of locks does not grow.
func TestKeyedLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyedLocks()
		unlock, err := k.lock(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := contextWithCause(t, time.Second)
		defer cancel()
		if _, err := k.lock(ctx, 1); !errors.Is(err, errLockWait) {
			t.Errorf("lock = %v", err)
		}
		other, err := k.lock(ctx, 2)
		if err == nil {
			other()
		}
		unlock()
		again, err := k.lock(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		again()
		if len(k.held) != 0 {
			t.Errorf("%d locks are remembered", len(k.held))
		}
	})
}

// Ensures that the directory's sync is a sync of the kernel's, and that a file
// system without one for directories is warned of once and no failure.
func TestSyncDirectory_Unsupported(t *testing.T) {
	t.Parallel()
	log := new(logBuffer)
	s := mustOpen(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	file, err := os.Open(os.DevNull) // the kernel refuses to sync it with EINVAL
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for range 3 {
		if err := s.directorySync()(file); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "cannot sync directories"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log)
	}
}
