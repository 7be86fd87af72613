package main

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// limitCases judge the windows of posts (sections 6 and 7).
func limitCases() []testCase {
	return []testCase{
		{
			name:  "limits/thread",
			wants: "The 21st post of a thread within 600 s is 429 with scope thread, until the oldest post leaves the window, sections 6 and 7.",
			judge: judgeThreadWindow,
		},
		{
			name:  "limits/thread-from-many-addresses",
			wants: "The posts of a thread count together, from whatever addresses they come, section 7.",
			judge: judgeThreadFromManyAddresses,
		},
		{
			name:  "limits/ip",
			wants: "The 41st post of an address within 600 s is 429 with scope ip, and leaves no thread behind, sections 6 and 7.",
			judge: judgeAddressWindow,
		},
		{
			name:  "limits/both-thread-longer",
			wants: "With both windows full the scope is the one that waits longer, here the thread, section 6.",
			judge: judgeBothThreadLonger,
		},
		{
			name:  "limits/both-ip-longer",
			wants: "With both windows full the scope is the one that waits longer, here the address, section 6.",
			judge: judgeBothAddressLonger,
		},
		{
			name:  "limits/refused-is-free",
			wants: "A refused post and a poll cost nothing, section 7.",
			judge: judgeRefusedIsFree,
		},
		{
			name:  "limits/hermes-is-free",
			wants: "Replies by hermes are neither limited nor counted, section 7.",
			needs: needRoot | needChat,
			judge: judgeHermesIsFree,
		},
		{
			name:  "limits/new-threads",
			wants: "An address that has made its number of new threads in 24 h gets 429 with scope ip for another, and still posts to the old ones, section 7.",
			needs: needNewThreads,
			judge: judgeNewThreads,
		},
	}
}

// limitation is what a 429 says besides the error.
type limitation struct {
	wait   time.Duration
	scope  string
	limit  int
	window int // s
}

// wantLimited ends the case unless the answer is a 429 that agrees with its
// Retry-After, and checks scope, limit and window.
func (t *trial) wantLimited(a answer, scope string, limit, window int) time.Duration {
	got := t.limitation(a)
	if got.scope != scope || got.limit != limit || got.window != window {
		t.errorf("the answer has scope %q, limit %d, window_s %d instead of %q, %d, %d",
			got.scope, got.limit, got.window, scope, limit, window)
	}
	if most := time.Duration(window) * time.Second; got.wait <= 0 || got.wait > most {
		t.errorf("retry_after_ms is %d, the window %d s", got.wait.Milliseconds(), window)
	}
	seconds := a.header.Get("Retry-After")
	if !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(seconds) {
		t.errorf("Retry-After is %q, not a whole number of seconds", seconds)
	}
	if want := strconv.FormatInt((got.wait.Milliseconds()+999)/1000, 10); seconds != want {
		t.errorf("Retry-After is %q, and retry_after_ms is %d", seconds, got.wait.Milliseconds())
	}
	return got.wait
}

func (t *trial) limitation(a answer) limitation {
	o := t.wantError(a, http.StatusTooManyRequests, "rate_limited")
	ms, waitErr := member[int64](o, "retry_after_ms")
	scope, scopeErr := member[string](o, "scope")
	limit, limitErr := member[int](o, "limit")
	window, windowErr := member[int](o, "window_s")
	if err := errors.Join(waitErr, scopeErr, limitErr, windowErr); err != nil {
		t.fatalf("%s: %d: %v; body %s", a.asked, a.status, err, clip(a.body))
	}
	return limitation{time.Duration(ms) * time.Millisecond, scope, limit, window}
}

// wantWait checks that a wait ends when the oldest post leaves the window. The
// server's clock at the refusal is known from its last receipt and from how long
// ago that was asked for.
func (t *trial) wantWait(wait time.Duration, oldest, last receipt, sinceLast time.Duration) {
	const slack = 250 * time.Millisecond // between a post's count and its epoch
	longest := time.Duration(oldest.Epoch+windowSeconds*1000-last.Epoch) * time.Millisecond
	if wait > longest+slack || wait < longest-sinceLast-slack {
		t.errorf("retry_after_ms is %d, the oldest post leaves in %d to %d",
			wait.Milliseconds(), (longest - sinceLast).Milliseconds(), longest.Milliseconds())
	}
}

// pause lets a wait be told from one that is counted from another post.
func (t *trial) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
	}
}

func judgeThreadWindow(t *trial) {
	token := t.token()
	first := t.post(token, "the first")
	t.pause(time.Second)
	t.postMany(token, threadPosts-2)
	asked := time.Now()
	last := t.post(token, "the twentieth")
	wait := t.wantLimited(t.postBody(token, textBody("one more")), "thread", threadPosts, windowSeconds)
	t.wantWait(wait, first, last, time.Since(asked))
	if n := len(t.poll(token, 0).Messages); n != threadPosts {
		t.errorf("%d messages stand instead of %d", n, threadPosts)
	}
}

func judgeThreadFromManyAddresses(t *trial) {
	token := t.token()
	for range threadPosts {
		t.from = randomIPv6()
		t.post(token, "message")
	}
	t.from = randomIPv6()
	t.wantLimited(t.postBody(token, textBody("one more")), "thread", threadPosts, windowSeconds)
	t.post(t.token(), "another thread")
}

func judgeAddressWindow(t *trial) {
	first := t.postMany(t.token(), threadPosts)[0]
	t.pause(time.Second)
	second, third := t.token(), t.token()
	t.postMany(second, threadPosts-1)
	asked := time.Now()
	last := t.post(second, "the fortieth")
	wait := t.wantLimited(t.postBody(third, textBody("one more")), "ip", ipPosts, windowSeconds)
	t.wantWait(wait, first, last, time.Since(asked))
	t.stayedEmpty(third)
	t.from = randomIPv6()
	t.post(third, "from elsewhere")
}

func judgeBothThreadLonger(t *trial) {
	t.postMany(t.token(), threadPosts)
	token := t.token()
	first := t.postMany(token, threadPosts-1)[0]
	asked := time.Now()
	last := t.post(token, "the fortieth")
	wait := t.wantLimited(t.postBody(token, textBody("one more")), "thread", threadPosts, windowSeconds)
	t.wantWait(wait, first, last, time.Since(asked))
}

func judgeBothAddressLonger(t *trial) {
	token := t.token()
	t.postMany(token, threadPosts)
	t.from = randomIPv6()
	first := t.postMany(t.token(), threadPosts)[0]
	second := t.token()
	t.postMany(second, threadPosts-1)
	asked := time.Now()
	last := t.post(second, "the fortieth")
	wait := t.wantLimited(t.postBody(token, textBody("one more")), "ip", ipPosts, windowSeconds)
	t.wantWait(wait, first, last, time.Since(asked))
}

func judgeRefusedIsFree(t *trial) {
	token := t.token()
	for range threadPosts {
		t.wantError(t.postBody(token, "{}"), http.StatusBadRequest, "bad_request")
		t.wantError(t.postBody(token, textBody(strings.Repeat("x", textLimit+1))), http.StatusRequestEntityTooLarge, "too_long")
		t.poll(token, 0)
	}
	t.postMany(token, threadPosts)
	wait := t.wantLimited(t.postBody(token, textBody("one more")), "thread", threadPosts, windowSeconds)
	for range threadPosts {
		again := t.wantLimited(t.postBody(token, textBody("one more")), "thread", threadPosts, windowSeconds)
		if again > wait {
			t.errorf("the wait grew from %s to %s by asking", wait, again)
		}
		wait = again
	}
	t.postMany(t.token(), ipPosts-threadPosts)
}

func judgeHermesIsFree(t *trial) {
	token := t.token()
	t.post(token, "hello")
	for range threadPosts + 5 {
		t.wantExit(t.chatIn(t.tree(), "reply", threadOf(token), "answer"), codeDone)
	}
	t.postMany(token, threadPosts-1)
	t.wantLimited(t.postBody(token, textBody("one more")), "thread", threadPosts, windowSeconds)
	t.wantExit(t.chatIn(t.tree(), "reply", threadOf(token), "answer"), codeDone)
}

func judgeNewThreads(t *trial) {
	const day = 24 * 60 * 60
	var token string
	for range t.newThreads {
		token = t.token()
		t.post(token, "hello")
	}
	refused := t.token()
	t.wantLimited(t.postBody(refused, textBody("hello")), "ip", t.newThreads, day)
	t.stayedEmpty(refused)
	t.post(token, "still here")
	t.from = randomIPv6()
	t.post(refused, "from elsewhere")
}
