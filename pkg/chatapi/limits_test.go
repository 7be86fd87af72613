package chatapi_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
)

// wantLimited checks a 429 with all that it has to say (section 6).
func (a answer) wantLimited(t *testing.T, scope string, limit int, window, wait time.Duration) {
	t.Helper()
	a.want(t, http.StatusTooManyRequests, "rate_limited")
	if a.Code != http.StatusTooManyRequests {
		return
	}
	for name, want := range map[string]any{
		"scope": scope, "limit": float64(limit), "window_s": window.Seconds(), "retry_after_ms": float64(wait.Milliseconds()),
	} {
		if a.json[name] != want {
			t.Errorf("%s = %v, want %v", name, a.json[name], want)
		}
	}
	seconds := int((wait + time.Second - 1) / time.Second)
	if got := a.Header().Get("Retry-After"); got != strconv.Itoa(seconds) {
		t.Errorf("Retry-After = %q, want %d", got, seconds)
	}
}

// Ensures that the thread's window refuses the 21st post, tells exactly when
// there is room, costs nothing for what it refuses, and opens on time
// (sections 6 and 7).
func TestLimits_Thread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 20 {
		f.postFrom(1, "x", fmt.Sprintf("192.0.2.%d:1", i)).want(t, http.StatusCreated, "")
		f.clock.advance(time.Second)
	}
	f.clock.advance(500 * time.Millisecond)
	for range 100 {
		f.postFrom(1, "x", "198.51.100.1:1").wantLimited(t, "thread", 20, 600*time.Second, 579500*time.Millisecond)
	}
	f.clock.advance(579500*time.Millisecond - time.Millisecond)
	f.postFrom(1, "x", "198.51.100.1:1").wantLimited(t, "thread", 20, 600*time.Second, time.Millisecond)
	f.clock.advance(time.Millisecond)
	f.postFrom(1, "x", "198.51.100.1:1").want(t, http.StatusCreated, "")
}

// Ensures that the address's window counts over threads, that hermes and polls
// count for nobody, and that another address is not held up.
func TestLimits_IP(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 40 {
		f.post(i%4, "x").want(t, http.StatusCreated, "")
		f.poll(i%4, "").want(t, http.StatusOK, "")
		if _, err := f.store.Append(t.Context(), threadOf(0), storage.Post{Author: chat.Hermes, Text: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	f.post(9, "x").wantLimited(t, "ip", 40, 600*time.Second, 600*time.Second)
	f.postFrom(9, "x", "192.0.2.2:1").want(t, http.StatusCreated, "")
}

// Ensures that with both windows full the one that waits longer is told.
func TestLimits_LongerWaitIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.windows[0].Limit, s.windows[1].Limit = 1, 1 })
	f.postFrom(1, "x", "192.0.2.7:1").want(t, http.StatusCreated, "")
	f.clock.advance(10 * time.Second)
	f.postFrom(2, "x", "192.0.2.8:1").want(t, http.StatusCreated, "")
	f.postFrom(1, "x", "192.0.2.8:1").wantLimited(t, "ip", 1, 600*time.Second, 600*time.Second)
	f.postFrom(2, "x", "192.0.2.7:1").wantLimited(t, "thread", 1, 600*time.Second, 600*time.Second)
}

// Ensures that one address cannot take every thread that the server keeps, and
// that posts to threads that stand do not count as new ones (section 7).
func TestLimits_NewThreadsPerIP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.windows[1].Limit = 10000 })
	for i := range 100 {
		f.post(i, "x").want(t, http.StatusCreated, "")
		f.post(i, "y").want(t, http.StatusCreated, "")
	}
	f.post(100, "x").wantLimited(t, "ip", 100, 24*time.Hour, 24*time.Hour)
	f.post(5, "an old thread goes on").want(t, http.StatusCreated, "")
	f.postFrom(100, "x", "192.0.2.2:1").want(t, http.StatusCreated, "")
	f.clock.advance(24 * time.Hour)
	f.post(101, "x").want(t, http.StatusCreated, "")
}

// Ensures that a post that is refused behind the windows costs nothing in them.
func TestLimits_RefusedPostCostsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.storage.Threads = 1 })
	f.post(1, "x").want(t, http.StatusCreated, "")
	for range 200 {
		f.post(2, "x").want(t, http.StatusInsufficientStorage, "thread_limit")
	}
	for range 19 {
		f.post(1, "x").want(t, http.StatusCreated, "")
	}
	if n := f.limiter.Keys(chatapi.WindowThread); n != 1 {
		t.Errorf("%d threads are remembered, want 1", n)
	}
}

// Ensures that concurrent posts never get more than the limit together, and
// that all that were accepted stand exactly once.
func TestLimits_HoldUnderConcurrency(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var mu sync.Mutex
	codes := make(map[int]int)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			a := f.postFrom(1, fmt.Sprint(i), fmt.Sprintf("192.0.2.%d:1", i))
			mu.Lock()
			defer mu.Unlock()
			codes[a.Code]++
		})
	}
	wg.Wait()
	if codes[http.StatusCreated] != 20 || codes[http.StatusTooManyRequests] != 40 {
		t.Errorf("codes = %v", codes)
	}
	thread, err := f.store.Thread(threadOf(1))
	if err != nil || thread.Len() != 20 {
		t.Errorf("%d messages, %v", thread.Len(), err)
	}
}

// Ensures that posts which race to be the first of a thread count as one new
// thread, and that distinct threads never exceed the limit together.
func TestLimits_RacingFirstPosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.windows[2].Limit = 2 })
	for n := range 2 {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { f.post(n, "x").want(t, http.StatusCreated, "") })
		}
		wg.Wait()
	}
	f.post(9, "x").wantLimited(t, "ip", 2, 24*time.Hour, 24*time.Hour)
}

// Ensures that a restart lifts no limit: a thread's window is rebuilt from what
// it holds, and epochs from the future do not lock it for ever (section 7).
func TestLimits_SurviveARestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 20 {
		f.post(1, "x").want(t, http.StatusCreated, "")
		f.clock.advance(time.Second)
	}
	f.restart()
	f.post(1, "x").wantLimited(t, "thread", 20, 600*time.Second, 580*time.Second)
	f.clock.advance(-24 * time.Hour)
	f.restart()
	f.post(1, "x").wantLimited(t, "thread", 20, 600*time.Second, 600*time.Second)
	f.clock.advance(600 * time.Second)
	f.post(1, "x").want(t, http.StatusCreated, "")
}

// restart gives the API an empty limiter, as a new process would.
func (f *fixture) restart() {
	f.limiter = ratelimit.New(f.clock.now, 1000, f.settings.windows...)
	f.api = chatapi.New(f.settings.api, f.store, f.limiter)
}

// Ensures whom a post counts for: the peer, or behind a trusted proxy the
// right-most address that is not trusted; a forged header changes nothing
// (section 7; migadu/alps#18, zulip/zulip#21544).
func TestLimits_ClientAddress(t *testing.T) {
	t.Parallel()
	const proxy, outside = "127.0.0.1:99", "203.0.113.5:99"
	for name, test := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"direct":                   {outside, nil, "203.0.113.5"},
		"forged by an outsider":    {outside, []string{"1.2.3.4"}, "203.0.113.5"},
		"through the proxy":        {proxy, []string{"198.51.100.7"}, "198.51.100.7"},
		"forged before the proxy":  {proxy, []string{"1.2.3.4, 198.51.100.7"}, "198.51.100.7"},
		"two headers":              {proxy, []string{"1.2.3.4", "198.51.100.7"}, "198.51.100.7"},
		"two proxies":              {proxy, []string{"1.2.3.4, 198.51.100.7, 127.0.0.9"}, "198.51.100.7"},
		"with port":                {proxy, []string{"198.51.100.7:4711"}, "198.51.100.7"},
		"garbage on the right":     {proxy, []string{"198.51.100.7, unknown"}, "127.0.0.1"},
		"empty":                    {proxy, []string{""}, "127.0.0.1"},
		"IPv6":                     {"[2001:db8:1:2:3::4]:1", nil, "2001:db8:1:2::/64"},
		"IPv6 in brackets":         {proxy, []string{"[2001:db8:1:2:3::4]:80"}, "2001:db8:1:2::/64"},
		"IPv6 with zone":           {"[fe80::1%eth0]:1", nil, "fe80::/64"},
		"IPv4 in IPv6":             {"[::ffff:203.0.113.5]:1", nil, "203.0.113.5"},
		"proxy as IPv4 in IPv6":    {"[::ffff:127.0.0.1]:1", []string{"198.51.100.7"}, "198.51.100.7"},
		"nothing but trusted hops": {proxy, []string{"127.0.0.2"}, "127.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := good(`{"text":"x"}`)
			r.peer, r.forwarded = test.peer, test.forwarded
			r.header = map[string]string{"X-Real-IP": "9.9.9.9", "Forwarded": "for=8.8.8.8"}
			f.do(r).want(t, http.StatusCreated, "")
			if !f.limiter.Known(chatapi.WindowIP, test.want) || f.limiter.Keys(chatapi.WindowIP) != 1 {
				t.Errorf("did not count for %s; log: %s", test.want, f.log)
			}
		})
	}
}

// Ensures that addresses of one IPv6 network count as one client, and those of
// another do not.
func TestLimits_IPv6Network(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 40 {
		f.postFrom(i/4, "x", fmt.Sprintf("[2001:db8:1:2::%x]:1", i+1)).want(t, http.StatusCreated, "")
	}
	f.postFrom(99, "x", "[2001:db8:1:2:ffff::1]:1").wantLimited(t, "ip", 40, 600*time.Second, 600*time.Second)
	f.postFrom(99, "x", "[2001:db8:1:3::1]:1").want(t, http.StatusCreated, "")
}

// Ensures that the log warns once most of the threads are taken.
func TestLimits_WarnsOfThreads(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.storage.Threads, s.api.Limits.Threads = 10, 10 })
	for i := range 8 {
		if got := f.warnings(); got != 0 {
			t.Errorf("%d warnings at %d threads", got, i)
		}
		f.post(i, "x").want(t, http.StatusCreated, "")
	}
	if got := f.warnings(); got != 1 {
		t.Errorf("%d warnings at 80 %%, want 1:\n%s", got, f.log)
	}
}
