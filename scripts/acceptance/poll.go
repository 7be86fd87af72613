package main

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"time"
)

// pollCases judge a poll of a thread that fits into one page (section 5).
func pollCases() []testCase {
	return []testCase{
		{
			name:  "poll/unknown-thread",
			wants: "An unknown thread is 200 with no messages, not awaiting, and the cursor as sent, section 5.",
			judge: judgeUnknownThread,
		},
		{
			name:  "poll/messages-never-null",
			wants: "With no messages, messages is an empty array, section 5.",
			judge: func(t *trial) {
				if a := t.do(t.pollCall(t.token(), "")); !bytes.Contains(a.body, []byte("[")) {
					t.errorf("the body has no array: %s", clip(a.body))
				}
			},
		},
		{
			name:  "poll/creates-nothing",
			wants: "A poll never creates a file, section 5.",
			needs: needRoot,
			judge: judgePollCreatesNothing,
		},
		{
			name:  "poll/since-is-exclusive",
			wants: "A poll since an epoch shows the messages behind it, not the one that has it, section 5.",
			judge: judgeSinceIsExclusive,
		},
		{
			name:  "poll/cursor-never-back",
			wants: "With nothing new the cursor is the since that was sent, even one in the future, section 5.",
			judge: judgeCursorNeverBack,
		},
		{
			name:  "poll/awaiting-operator-and-agent",
			wants: "A thread whose last message is not by hermes awaits, with nothing new in the page too, section 5.",
			judge: judgeAwaiting,
		},
		{
			name:  "poll/head",
			wants: "HEAD is answered like GET, without the body, section 6.",
			judge: judgeHead,
		},
		{
			name:  "poll/other-parameters",
			wants: "A parameter that the contract does not know changes nothing, section 5.",
			judge: func(t *trial) {
				token := t.token()
				t.post(token, "hello")
				a := t.do(t.pollCall(token, "thread="+threadOf(randomToken())+"&_=1"))
				t.wantStatus(a, http.StatusOK)
				if p := t.page(a.asked, a.body, threadOf(token), 0); len(p.Messages) != 1 {
					t.errorf("%d messages instead of 1", len(p.Messages))
				}
			},
		},
	}
}

func judgeUnknownThread(t *trial) {
	token := t.token()
	for _, since := range []int64{0, 1, 1792778400123, math.MaxInt64} {
		p := t.poll(token, since)
		if len(p.Messages) != 0 || p.Awaiting || p.Truncated {
			t.errorf("since %d: %d messages, awaiting %t, truncated %t", since, len(p.Messages), p.Awaiting, p.Truncated)
		}
	}
}

func judgePollCreatesNothing(t *trial) {
	before := t.listing()
	for i := range 50 {
		t.poll(randomToken(), int64(i))
	}
	t.sameListing(before)
}

func judgeSinceIsExclusive(t *trial) {
	token := t.token()
	receipts := t.postMany(token, 3)
	for i, r := range receipts {
		if got, want := len(t.poll(token, r.Epoch).Messages), 2-i; got != want {
			t.errorf("since message %d: %d messages instead of %d", i+1, got, want)
		}
		if got, want := len(t.poll(token, r.Epoch-1).Messages), 3-i; got != want {
			t.errorf("since right before message %d: %d messages instead of %d", i+1, got, want)
		}
	}
}

func judgeCursorNeverBack(t *trial) {
	token := t.token()
	last := t.post(token, "hello").Epoch
	for _, since := range []int64{last, last + 1, last + time.Hour.Milliseconds(), math.MaxInt64} {
		if p := t.poll(token, since); len(p.Messages) != 0 || p.Truncated {
			t.errorf("since %d: %d messages, truncated %t", since, len(p.Messages), p.Truncated)
		}
	}
}

func judgeAwaiting(t *trial) {
	for _, kind := range []string{"operator", "agent"} {
		token := t.token()
		r := t.receipt(token, t.postBody(token, `{"text":"a","kind":"`+kind+`"}`))
		for _, since := range []int64{0, r.Epoch - 1, r.Epoch, r.Epoch + 1} {
			if !t.poll(token, since).Awaiting {
				t.errorf("since %d the thread does not await behind a message by %s", since, kind)
			}
		}
	}
}

func judgeHead(t *trial) {
	token := t.token()
	t.post(token, "hello")
	c := t.pollCall(token, "")
	get := t.do(c)
	c.method = http.MethodHead
	head := t.do(c)
	t.wantStatus(head, http.StatusOK)
	if length := head.header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(get.body)) {
		t.errorf("HEAD has Content-Length %s, GET has %d bytes", length, len(get.body))
	}
	c.path = t.pollPath() + "?since=-1"
	t.wantStatus(t.do(c), http.StatusBadRequest)
}

// sinceCases judge the forms of since (section 5).
func sinceCases() []testCase {
	var cases []testCase
	for name, query := range map[string]string{
		"negative":        "since=-1",
		"fraction":        "since=1.5",
		"whole-fraction":  "since=1.0",
		"exponent":        "since=1e3",
		"empty":           "since=",
		"bare":            "since",
		"blank":           "since=%20",
		"leading-blank":   "since=%201",
		"trailing-blank":  "since=1%20",
		"line-break":      "since=1%0A",
		"word":            "since=now",
		"null":            "since=null",
		"hexadecimal":     "since=0x10",
		"underscore":      "since=1_000",
		"comma":           "since=1,000",
		"nul-byte":        "since=1%00",
		"other-digits":    "since=%D9%A1",
		"timestamp":       "since=2026-10-23T18:40:00%2B00:00",
		"beyond-int64":    "since=9223372036854775808",
		"far-beyond":      "since=99999999999999999999999999",
		"repeated":        "since=1&since=2",
		"repeated-same":   "since=1&since=1",
		"repeated-apart":  "since=1&x=2&since=",
		"bad-escape":      "since=%zz",
		"semicolon":       "since=1;x=2",
		"array":           "since[]=1&since=x",
		"escaped-name":    "%73ince=-1",
		"utf8-minus-sign": "since=%E2%88%921",
	} {
		cases = append(cases, testCase{
			name:  "since/refuses-" + name,
			wants: "A since that is not one integer from 0 to the largest int64 is 400 bad_request, section 5.",
			judge: func(t *trial) {
				t.wantError(t.do(t.pollCall(t.token(), query)), http.StatusBadRequest, "bad_request")
			},
		})
	}
	cases = append(cases, testCase{
		name:  "since/accepts-zero",
		wants: "A since of 0 is the same as none, section 5.",
		judge: judgeSinceZero,
	}, testCase{
		name:  "since/accepts-largest",
		wants: "The largest int64 is a since like any other, section 5.",
		judge: func(t *trial) {
			token := t.token()
			t.post(token, "hello")
			if p := t.poll(token, math.MaxInt64); len(p.Messages) != 0 {
				t.errorf("%d messages since the end of time", len(p.Messages))
			}
		},
	})
	return sorted(cases)
}

func judgeSinceZero(t *trial) {
	token := t.token()
	t.postMany(token, 2)
	without := t.do(t.pollCall(token, ""))
	zero := t.do(t.pollCall(token, "since=0"))
	if !bytes.Equal(without.body, zero.body) {
		t.errorf("since=0 shows %s, none shows %s", clip(zero.body), clip(without.body))
	}
}
