package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/metrics"
	"github.com/newos4/relay/pkg/storage"
)

// fakeParts are a storage and a change feed that are as a test wants them.
type fakeParts struct {
	mu       sync.Mutex
	stored   error
	hangs    chan struct{} // every call into the file system waits for it unless it is nil
	watching error
	status   storage.FeedStatus
	disk     storage.FileSystem
	probes   int
}

func (p *fakeParts) Probe() error {
	p.mu.Lock()
	p.probes++
	hangs, err := p.hangs, p.stored
	p.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	return err
}

func (p *fakeParts) FileSystem() (storage.FileSystem, error) {
	p.mu.Lock()
	hangs := p.hangs
	p.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	return p.disk, nil
}

func (p *fakeParts) Ping(context.Context) error { return p.watching }
func (p *fakeParts) Status() storage.FeedStatus { return p.status }
func (p *fakeParts) change(f func(*fakeParts))  { p.mu.Lock(); defer p.mu.Unlock(); f(p) }

// wellParts are in order.
func wellParts() *fakeParts {
	return &fakeParts{
		status: storage.FeedStatus{Mode: storage.FeedWatching, Scanned: time.UnixMilli(1)},
		disk:   storage.FileSystem{Free: 1 << 40, Inodes: 9, FreeInodes: 8},
	}
}

// told collects what a service manager hears.
type told struct {
	mu     sync.Mutex
	states []string
}

func (t *told) notify(state string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states = append(t.states, state)
	return nil
}

func (t *told) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	states := t.states
	t.states = nil
	return states
}

// supervised runs a test in a bubble with a supervisor over the parts.
func supervised(t *testing.T, parts *fakeParts, test func(*testing.T, *told)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		sweeper, err := newSweeper(nil, "@hourly", log, metrics.New(""))
		if err != nil {
			t.Fatal(err)
		}
		sweeper.begin()
		h := newHealth(parts, parts, sweeper)
		listener := new(told)
		s := &supervisor{notify: listener.notify, watchdog: 30 * time.Second, health: h, log: log}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { h.run(ctx) })
		ready := make(chan struct{})
		running.Go(func() { s.run(ctx, ready, "127.0.0.1:1") })
		synctest.Wait()
		if states := listener.take(); len(states) != 0 {
			t.Errorf("tells %q before it is ready", states)
		}
		close(ready)
		synctest.Wait()
		test(t, listener)
		cancel()
		running.Wait()
	})
}

// Ensures that the watchdog is fed well before its time is over while all is
// well, and also while the storage answers with an error: starting anew gives a
// full disk no room.
func TestSupervisor_FeedsTheWatchdog(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]error{"well": nil, "a full disk": unix.ENOSPC, "read-only": unix.EROFS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := wellParts()
			parts.stored = stored
			supervised(t, parts, func(t *testing.T, listener *told) {
				if states := listener.take(); len(states) != 2 || states[0] != "READY=1\nSTATUS=serving on 127.0.0.1:1" || states[1] != "WATCHDOG=1" {
					t.Errorf("tells %q when it is ready", states)
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if n := len(listener.take()); n != 3 {
					t.Errorf("fed %d times in one watchdog time, want 3", n)
				}
			})
		})
	}
}

// Ensures that the watchdog is not fed while the storage or the watcher hangs,
// that probes do not pile up meanwhile, and that it is fed again afterwards.
func TestSupervisor_HangingPartsStarveTheWatchdog(t *testing.T) {
	t.Parallel()
	t.Run("storage", func(t *testing.T) {
		t.Parallel()
		parts := wellParts()
		supervised(t, parts, func(t *testing.T, listener *told) {
			listener.take()
			hangs := make(chan struct{})
			var before, after int
			parts.change(func(p *fakeParts) { p.hangs, before = hangs, p.probes })
			time.Sleep(time.Minute)
			synctest.Wait()
			if states := listener.take(); len(states) != 0 {
				t.Errorf("tells %q", states)
			}
			parts.change(func(p *fakeParts) { after = p.probes })
			if n := after - before; n != 1 {
				t.Errorf("%d probes hang, want 1", n)
			}
			parts.change(func(p *fakeParts) { p.hangs = nil })
			close(hangs)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if states := listener.take(); !slices.Contains(states, "WATCHDOG=1") {
				t.Error("is not fed once the storage answers again")
			}
		})
	})
	t.Run("watcher", func(t *testing.T) {
		t.Parallel()
		parts := wellParts()
		parts.watching = context.DeadlineExceeded
		supervised(t, parts, func(t *testing.T, listener *told) {
			time.Sleep(time.Minute)
			synctest.Wait()
			if states := listener.take(); len(states) != 1 || !strings.HasPrefix(states[0], "READY=1") {
				t.Errorf("tells %q", states)
			}
		})
	})
}

// Ensures that once it was said that the daemon stops, nothing that began before
// calls it ready again, while the watchdog is still fed.
func TestSupervisor_StoppingIsFinal(t *testing.T) {
	t.Parallel()
	supervised(t, wellParts(), func(t *testing.T, listener *told) {
		listener.take()
		s := &supervisor{notify: listener.notify, log: slog.New(slog.DiscardHandler)}
		reloaded := s.reloading()
		s.stopping()
		reloaded("serving")
		s.tell("WATCHDOG=1")
		states := listener.take()
		if len(states) != 3 || !strings.HasPrefix(states[0], "RELOADING=1") || states[1] != "STOPPING=1\nSTATUS=stopping" || states[2] != "WATCHDOG=1" {
			t.Errorf("tells %q", states)
		}
	})
}

// Ensures that all who ask for the state of a slow storage share one probe that
// began after they had asked, and that none takes the result of an older one.
func TestHealth_ProbesAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := wellParts()
		hangs := make(chan struct{})
		parts.hangs = hangs
		h := newHealth(parts, parts, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var running, asking sync.WaitGroup
		running.Go(func() { h.run(ctx) })
		var first, failed error
		asking.Go(func() { first = h.look(ctx).stored })
		synctest.Wait()
		var later [100]error
		for i := range later {
			asking.Go(func() { later[i] = h.look(ctx).stored })
		}
		synctest.Wait()
		parts.change(func(p *fakeParts) { p.hangs, p.stored = nil, unix.EROFS })
		close(hangs)
		asking.Wait()
		for _, err := range later {
			if !errors.Is(err, unix.EROFS) {
				failed = err
			}
		}
		if first != nil || failed != nil || parts.probes != 2 {
			t.Errorf("the first is told %v, others %v, after %d probes, want 2", first, failed, parts.probes)
		}
		cancel()
		running.Wait()
	})
}

// Ensures that a checkup names every part that is not in order, and no other.
func TestHealth_Checkup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fakeParts, *sweeper)
		part   string
		want   string
	}{
		"well":            {func(*fakeParts, *sweeper) {}, "", ""},
		"storage refuses": {func(p *fakeParts, _ *sweeper) { p.stored = unix.EROFS }, "storage", "read-only"},
		"watcher hangs":   {func(p *fakeParts, _ *sweeper) { p.watching = errors.New("caught") }, "watcher", "caught"},
		"never scanned":   {func(p *fakeParts, _ *sweeper) { p.status.Scanned = time.Time{} }, "watcher", "could not be scanned"},
		"disk full":       {func(p *fakeParts, _ *sweeper) { p.disk.Free = minFreeBytes - 1 }, "disk", "less than 32 MiB"},
		"inodes used up":  {func(p *fakeParts, _ *sweeper) { p.disk.FreeInodes = 0 }, "disk", "inodes"},
		"sweep failed":    {func(_ *fakeParts, s *sweeper) { s.end(time.Now(), errors.New("one thread")) }, "sweep", "one thread"},
		"sweep overdue":   {func(_ *fakeParts, s *sweeper) { s.end(time.Now().Add(-3*time.Hour), nil) }, "sweep", "no sweep has ended"},
		"first one late":  {func(_ *fakeParts, s *sweeper) { s.began = time.Now().Add(-3 * time.Hour) }, "sweep", "no sweep has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				parts := wellParts()
				sweeper, err := newSweeper(nil, "@hourly", slog.New(slog.DiscardHandler), metrics.New(""))
				if err != nil {
					t.Fatal(err)
				}
				sweeper.begin()
				test.change(parts, sweeper)
				h := newHealth(parts, parts, sweeper)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { h.run(ctx) })
				result := h.check(t.Context())
				cancel()
				running.Wait()
				if result.Ready != (test.part == "") || len(result.Checks) != 4 {
					t.Errorf("checkup = %+v", result)
				}
				for name, part := range result.Checks {
					if part.OK != (name != test.part) || !strings.Contains(part.Error, test.want) && name == test.part {
						t.Errorf("%s = %+v", name, part)
					}
				}
			})
		})
	}
}

// Ensures that a clock which is set, forth or back, neither keeps sweeps from
// coming as the schedule says from then on, nor has any called overdue.
func TestSweeper_ClockIsSet(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for name, step := range map[string]time.Duration{"back": -year, "forth": year, "back a little": -90 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				store := storage.Open(storage.Options{Root: root, Space: "newos4", Bounds: storage.Bounds{Threads: 1, Page: 1}})
				s, err := newSweeper(store, "@hourly", slog.New(slog.DiscardHandler), metrics.New(""))
				if err != nil {
					t.Fatal(err)
				}
				var set atomic.Int64
				s.now = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { s.run(ctx) })
				time.Sleep(10 * time.Minute)
				set.Store(int64(step))
				for range 5 {
					time.Sleep(time.Hour + 2*time.Minute)
					synctest.Wait()
					if _, err := s.check(); err != nil {
						t.Error(err)
					}
					s.mu.Lock()
					ago := s.wallClock().Sub(s.last.Round(0))
					s.mu.Unlock()
					if ago < 0 || ago > time.Hour {
						t.Errorf("the last sweep was %s ago", ago)
					}
				}
				cancel()
				running.Wait()
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Ensures that a schedule whose day never comes leaves nothing overdue.
func TestSweeper_ScheduleThatNeverComes(t *testing.T) {
	t.Parallel()
	s, err := newSweeper(nil, "0 0 30 2 *", slog.New(slog.DiscardHandler), metrics.New(""))
	if err != nil {
		t.Fatal(err)
	}
	s.end(time.UnixMilli(1), nil)
	if _, err := s.check(); err != nil {
		t.Error(err)
	}
}

// Ensures that an entry of the journal shows its attributes in the message and
// hands each on as well.
func TestJournal_MessageShowsTheAttributes(t *testing.T) {
	t.Parallel()
	kept := new(keeper)
	log := slog.New(journalHandler{Handler: kept}).With("part", "agent")
	log.Info("a thread awaits hermes", "thread", "0123", "reason", "two words")
	if want := `a thread awaits hermes part=agent thread=0123 reason="two words"`; kept.record.Message != want {
		t.Errorf("message = %q, want %q", kept.record.Message, want)
	}
	if kept.record.NumAttrs() != 2 || len(kept.given) != 1 {
		t.Errorf("hands on %d attributes and %d given ones", kept.record.NumAttrs(), len(kept.given))
	}
}

// Ensures that a field has the name by which relayd-operation(7) asks for it.
func TestJournal_FieldsOfTheManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../man/relayd-operation.7")
	if err != nil {
		t.Fatal(err)
	}
	if field := journalField(nil, slog.String("thread", "60e05bd1b195af2f")); !strings.Contains(string(manual), "journalctl -u relayd "+field.Key+"="+field.Value.String()+"\n") {
		t.Errorf("the manual does not ask for %s", field)
	}
}

// Ensures that a log which nobody would keep is an error at the start.
func TestJournal_Missing(t *testing.T) {
	t.Parallel()
	if _, err := newJournalHandler(filepath.Join(t.TempDir(), "socket"), slog.LevelInfo); err == nil || !strings.Contains(err.Error(), "log.format is journal, and there is no journal: ") {
		t.Error(err)
	}
}

// keeper keeps the last record.
type keeper struct {
	slog.Handler
	record slog.Record
	given  []slog.Attr
}

func (k *keeper) Enabled(context.Context, slog.Level) bool      { return true }
func (k *keeper) Handle(_ context.Context, r slog.Record) error { k.record = r; return nil }
func (k *keeper) WithAttrs(attrs []slog.Attr) slog.Handler      { k.given = attrs; return k }
