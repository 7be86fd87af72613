package ratelimit_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/ratelimit"
)

// clock is a clock that the test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }
func newClock() *clock                   { return &clock{time.Date(2026, 10, 23, 18, 0, 0, 0, time.UTC)} }

func thread(limit int) ratelimit.Window {
	return ratelimit.Window{Name: "thread", Limit: limit, Span: 600 * time.Second}
}

func ip(limit int) ratelimit.Window {
	return ratelimit.Window{Name: "ip", Limit: limit, Span: 600 * time.Second}
}

func claims() []ratelimit.Claim {
	return []ratelimit.Claim{{Window: "thread", Key: "t"}, {Window: "ip", Key: "i"}}
}

// Ensures that the window slides: each event makes room exactly when it leaves.
func TestLimiter_SlidesExactly(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, thread(3), ip(100))
	for range 3 {
		if _, full := l.Reserve(claims()...); full != nil {
			t.Fatalf("refused: %+v", full)
		}
		c.advance(time.Second)
	}
	_, full := l.Reserve(claims()...)
	if full == nil || full.Window.Name != "thread" || full.Wait != 597*time.Second {
		t.Fatalf("refusal = %+v, want thread in 597 s", full)
	}
	c.advance(full.Wait - time.Millisecond)
	if _, full := l.Reserve(claims()...); full == nil || full.Wait != time.Millisecond {
		t.Errorf("a millisecond early: %+v", full)
	}
	c.advance(time.Millisecond)
	if _, full := l.Reserve(claims()...); full != nil {
		t.Errorf("on time: %+v", full)
	}
	if _, full := l.Reserve(claims()...); full == nil || full.Wait != time.Second {
		t.Errorf("the next one: %+v, want 1 s", full)
	}
}

// Ensures that a refused claim and one that is taken back cost nothing, in any
// window.
func TestLimiter_RefusedCostsNothing(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, thread(1), ip(2))
	first, _ := l.Reserve(claims()...)
	for range 50 {
		if _, full := l.Reserve(claims()...); full == nil {
			t.Fatal("not refused")
		}
	}
	other := []ratelimit.Claim{{Window: "thread", Key: "u"}, {Window: "ip", Key: "i"}}
	second, full := l.Reserve(other...)
	if full != nil {
		t.Fatalf("the refused claims counted for the address: %+v", full)
	}
	second.Cancel()
	first.Cancel()
	first.Cancel() // takes nothing back twice
	if _, full := l.Reserve(claims()...); full != nil {
		t.Errorf("the cancelled claim still counts: %+v", full)
	}
	(*ratelimit.Reservation)(nil).Cancel()
}

// Ensures that with several full windows the longest wait is told (section 7).
func TestLimiter_TellsTheLongestWait(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, thread(1), ip(1))
	l.Reserve(ratelimit.Claim{Window: "thread", Key: "t"})
	c.advance(10 * time.Second)
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	if _, full := l.Reserve(claims()...); full == nil || full.Window.Name != "ip" || full.Wait != 600*time.Second {
		t.Errorf("refusal = %+v, want ip in 600 s", full)
	}
}

// Ensures that many goroutines never get more than the limit together.
func TestLimiter_HoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, thread(20), ip(40))
	var granted sync.Map
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if _, full := l.Reserve(claims()...); full == nil {
				granted.Store(i, true)
			}
		})
	}
	wg.Wait()
	n := 0
	granted.Range(func(any, any) bool { n++; return true })
	if n != 20 {
		t.Errorf("%d granted, want 20", n)
	}
}

// Ensures that memory is bounded however many keys come, and that the keys that
// were quiet longest are forgotten first.
func TestLimiter_BoundsKeys(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 100, ip(1))
	for i := range 10000 {
		l.Reserve(ratelimit.Claim{Window: "ip", Key: fmt.Sprint(i)})
	}
	if n := l.Keys("ip"); n != 100 {
		t.Errorf("%d keys, want 100", n)
	}
	if _, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: "9999"}); full == nil {
		t.Error("the newest key was forgotten")
	}
	c.advance(601 * time.Second)
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "new"})
	if n := l.Keys("ip"); n != 1 {
		t.Errorf("%d keys after the window, want 1", n)
	}
}

// Ensures that an event keeps its key from being forgotten before keys that were
// quiet for longer.
func TestLimiter_ForgetsTheQuietestKey(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 2, ip(2))
	for _, key := range []string{"busy", "quiet", "busy", "new"} {
		l.Reserve(ratelimit.Claim{Window: "ip", Key: key})
		c.advance(time.Second)
	}
	if !l.Known("ip", "busy") || l.Known("ip", "quiet") {
		t.Errorf("busy is known: %v, quiet is known: %v", l.Known("ip", "busy"), l.Known("ip", "quiet"))
	}
}

// Ensures that taking back an older claim leaves the younger one counting.
func TestLimiter_CancelsTheRightEvent(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, ip(2))
	older, _ := l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	c.advance(100 * time.Second)
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	older.Cancel()
	l.Configure(ip(1))
	if _, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"}); full == nil || full.Wait != 600*time.Second {
		t.Errorf("refusal = %+v, want 600 s", full)
	}
}

// Ensures that with more events than a lowered limit the wait is until so many
// have left that there is room.
func TestLimiter_WaitsForRoomUnderALoweredLimit(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, ip(3))
	for range 3 {
		l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
		c.advance(10 * time.Second)
	}
	l.Configure(ip(1))
	if _, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"}); full == nil || full.Wait != 590*time.Second {
		t.Errorf("refusal = %+v, want 590 s", full)
	}
}

// Ensures that a restart lifts no limit: a snapshot counts as before.
func TestLimiter_SnapshotRestore(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, ip(2))
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	c.advance(100 * time.Second)
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	c.advance(550 * time.Second) // the first has left
	restarted := ratelimit.New(c.now, 10, ip(2))
	snapshot := l.Snapshot("ip")
	snapshot["unknown window"] = map[string][]time.Time{"x": {c.t}}
	restarted.Restore(snapshot)
	restarted.Restore(snapshot) // counts nothing twice
	if _, full := restarted.Reserve(ratelimit.Claim{Window: "ip", Key: "i"}); full != nil {
		t.Errorf("one of two, refused: %+v", full)
	}
	if _, full := restarted.Reserve(ratelimit.Claim{Window: "ip", Key: "i"}); full == nil || full.Wait != 50*time.Second {
		t.Errorf("refusal = %+v, want 50 s", full)
	}
}

// Ensures that the history of one key, told after that of another, moves none of
// the other's events, whichever comes first.
func TestLimiter_SeedLeavesOtherKeysAlone(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, ip(1))
	ages := map[string]time.Duration{"a": 100 * time.Second, "b": 500 * time.Second, "c": 300 * time.Second}
	for _, key := range []string{"a", "b", "c"} {
		l.Seed("ip", key, []time.Time{c.t.Add(-ages[key])})
	}
	for key, age := range ages {
		_, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: key})
		if want := 600*time.Second - age; full == nil || full.Wait != want {
			t.Errorf("%s: refusal = %+v, want %v", key, full, want)
		}
	}
}

// Ensures that events from a clock that was ahead count from now on, and no
// wait is ever longer than the window.
func TestLimiter_ClockStepsBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, ip(1))
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	c.advance(-24 * time.Hour)
	if _, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"}); full == nil || full.Wait != 600*time.Second {
		t.Errorf("refusal = %+v, want 600 s", full)
	}
	l.Seed("ip", "j", []time.Time{c.t.Add(400 * 24 * time.Hour)})
	c.advance(600 * time.Second)
	for _, key := range []string{"i", "j"} {
		if _, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: key}); full != nil {
			t.Errorf("%s after the window: %+v", key, full)
		}
	}
}

// Ensures that a limit of 0 switches a window off, and that new limits count
// what has already happened.
func TestLimiter_Configure(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := ratelimit.New(c.now, 10, ip(0))
	for range 1000 {
		if _, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"}); full != nil {
			t.Fatalf("refused: %+v", full)
		}
	}
	l.Configure(ip(2))
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"})
	l.Configure(ip(1))
	if _, full := l.Reserve(ratelimit.Claim{Window: "ip", Key: "i"}); full == nil {
		t.Error("the lowered limit does not count")
	}
}
