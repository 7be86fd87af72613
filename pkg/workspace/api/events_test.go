package api_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/account"
)

// fill gives the user events until there are n of them.
func (c *client) fill(n int) {
	c.Helper()
	agent := c.agent("Ann")
	for i := 0; len(c.allEvents(0)) < n; i++ {
		for range max(1, (n-len(c.allEvents(0)))/2) {
			c.patch("/agents/"+agent, obj{"instructions": fmt.Sprint(i)}).want(http.StatusOK)
		}
	}
}

// Ensures that the log is read in pages of 250, ascending, without gap or
// repetition for its owner, whose neighbour's events lie between.
func TestScenario25_EventPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, other := f.as("ann"), f.as("bob")
	other.agent("x")
	c.fill(600)
	other.agent("y")
	after, last := int64(0), int64(0)
	for _, size := range []int{250, 250, 100, 0} {
		page := c.get(fmt.Sprintf("/events?after=%d", after)).want(http.StatusOK)
		if got := len(page.list("events")); got != size {
			t.Fatalf("a page has %d events, want %d", got, size)
		}
		for i := range size {
			seq := page.num("events", fmt.Sprint(i), "seq")
			if seq <= last {
				t.Fatalf("event %d comes after %d", seq, last)
			}
			last = seq
		}
		if after = page.num("cursor"); after != last {
			t.Errorf("the cursor is %d behind %d", after, last)
		}
	}
	for _, query := range []string{"", "?after=", "?after=x", "?after=-5", "?after=1.5"} {
		if got := len(c.get("/events" + query).want(http.StatusOK).list("events")); got != 250 {
			t.Errorf("%q gives %d events", query, got)
		}
	}
	if page := c.get("/events?after=999999999").want(http.StatusOK); page.num("cursor") < last || page.num("cursor") == 999999999 {
		t.Errorf("after the end: %s", page.body)
	}
}

// Ensures that a write that fails leaves no event and moves no cursor.
func TestScenario26_FailedWriteLeavesNoEvent(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	first, second := c.agent("a"), c.agent("b")
	before := c.cursor()
	c.patch("/agents/"+second, obj{"name": "A"}).want(http.StatusConflict)
	c.post("/agents", obj{"name": "a", "profile": "default"}).want(http.StatusConflict)
	c.post("/conversations", obj{"name": "x", "memberIds": []string{first, uuid()}, "administratorId": first}).want(http.StatusNotFound)
	if c.cursor() != before || len(c.allEvents(before)) != 0 {
		t.Error("a failed write left an event")
	}
}

// Ensures that waiting is over at once when there is something, after the time
// when there is nothing, and that odd times are none.
func TestEvents_Wait(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	c.agent("a")
	if page := c.get("/events?wait=25").want(http.StatusOK); len(page.list("events")) == 0 {
		t.Errorf("the answer is %s", page.body)
	}
	cursor := c.cursor()
	for _, wait := range []string{"0", "-1", "x", "", "NaN", "0.01"} {
		page := c.get(fmt.Sprintf("/events?after=%d&wait=%s", cursor, wait)).want(http.StatusOK)
		if len(page.list("events")) != 0 || page.num("cursor") != cursor {
			t.Errorf("%q: the answer is %s", wait, page.body)
		}
	}
}

// waiting starts requests that wait for events, and returns once the server holds
// all of them. Each answer is handed over with the time at which it came.
func (f *fixture) waiting(n int, c *client, cursor int64, got func(answer, time.Time)) (finish func()) {
	f.Helper()
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			r := c.request(http.MethodGet, fmt.Sprintf("/events?after=%d&wait=25", cursor), nil)
			a, came, err := c.timed(r)
			if err != nil {
				f.Error(err)
				return
			}
			got(a, came)
		})
	}
	f.untilHeld(n)
	return running.Wait
}

// untilHeld returns once the server answers that many reads of events.
func (f *fixture) untilHeld(n int) {
	f.Helper()
	for f.held.Load() < int64(n) {
		runtime.Gosched()
	}
}

// Ensures that a hundred clients that wait learn of an event within 50 ms of its
// commit, and cost nothing while they wait. A machine that is busy with other
// things gets five tries.
func TestEvents_HundredWaiters(t *testing.T) {
	const waiters, bound = 100, 50 * time.Millisecond * slack
	f := newFixture(t)
	c := f.as("ann")
	owner, agent := string(f.idOf("ann")), c.agent("a")
	var delay, idle time.Duration
	for range 5 {
		delay, idle = c.wakeAll(waiters, owner, agent)
		t.Logf("the last of %d waiters knew %v after the commit; 100 ms of waiting took %v of processor time", waiters, delay, idle)
		if delay <= bound && idle <= 20*time.Millisecond*slack {
			return
		}
	}
	t.Errorf("the last of %d waiters knew after %v, and 100 ms of waiting took %v of processor time", waiters, delay, idle)
}

// wakeAll lets requests wait, and returns how long after a commit the last one was
// answered, and how much processor time 100 ms of waiting took.
func (c *client) wakeAll(waiters int, owner, agent string) (delay, idle time.Duration) {
	c.Helper()
	var mu sync.Mutex
	var latest time.Time
	finish := c.waiting(waiters, c, c.cursor(), func(a answer, came time.Time) {
		if a.status != http.StatusOK || len(a.list("events")) == 0 {
			c.Errorf("the answer is %d %s", a.status, a.body)
		}
		mu.Lock()
		defer mu.Unlock()
		if came.After(latest) {
			latest = came
		}
	})
	idle = cpuTime(c)
	<-time.After(100 * time.Millisecond) // a stretch in which nothing is to happen
	idle = cpuTime(c) - idle
	c.rename(owner, agent)
	committed := time.Now()
	finish()
	return latest.Sub(committed), idle
}

// cpuTime returns how long the process has computed.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Ensures that a server that stops answers those who wait, with nothing.
func TestEvents_StopEndsWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	c.agent("a")
	cursor := c.cursor()
	finish := f.waiting(2, c, cursor, func(a answer, _ time.Time) {
		if a.status != http.StatusOK || len(a.list("events")) != 0 || a.num("cursor") != cursor {
			t.Errorf("the answer is %d %s", a.status, a.body)
		}
	})
	f.api.Stop()
	finish()
}

// Ensures that a user whose account was disabled while the request waited learns
// of nothing.
func TestEvents_DisabledWhileWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("bob")
	agent := c.agent("a")
	cursor := c.cursor()
	finish := f.waiting(1, c, cursor, func(a answer, _ time.Time) { a.want(http.StatusUnauthorized, "authentication_required") })
	users, err := f.accounts.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var bob account.User
	for _, u := range users {
		if u.Username == "bob" {
			bob = u
		}
	}
	off := false
	if _, err := f.accounts.EditUser(context.Background(), bob.ID, account.Edit{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	f.rename(bob.ID, agent)
	finish()
}

// Ensures that a client that leaves while it waits leaves nothing behind.
func TestEvents_ClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	ctx, cancel := context.WithCancel(t.Context())
	r := c.request(http.MethodGet, "/events?wait=25", nil).WithContext(ctx)
	left := make(chan error)
	go func() {
		response, err := c.http.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		left <- err
	}()
	f.untilHeld(1)
	cancel()
	if err := <-left; err == nil {
		t.Error("the client got an answer")
	}
	for f.held.Load() > 0 {
		runtime.Gosched()
	}
}
