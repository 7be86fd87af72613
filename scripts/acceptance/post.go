package main

import (
	"net/http"
	"strings"
	"time"
)

// postCases judge an accepted post (sections 3 and 4).
func postCases() []testCase {
	return []testCase{
		{
			name:  "post/created",
			wants: "A post is answered by 201 with success, id, epoch, ts and thread, which agree with each other and the clock, section 4.",
			judge: judgeCreated,
		},
		{
			name:  "post/epochs-ascend",
			wants: "Posts in quick succession get strictly increasing epochs and ids of their own, section 4.",
			judge: judgeEpochsAscend,
		},
		{
			name:  "post/kinds",
			wants: "The author is the kind, which is operator unless it is sent, section 3.",
			judge: judgeKinds,
		},
		{
			name:  "post/never-hermes",
			wants: "No member of a body makes hermes the author; unknown members are ignored, section 3.",
			judge: judgeNeverHermes,
		},
		{
			name:  "post/exact-member-names",
			wants: "Only text in exactly this spelling is the text, section 3.",
			judge: judgeExactNames,
		},
		{
			name:  "post/client-sent-thread",
			wants: "A thread that the client sends is ignored, section 3.",
			judge: judgeClientSentThread,
		},
		{
			name:  "post/content-types",
			wants: "Content-Type may be absent or application/json, with parameters and in any case, section 3.",
			judge: judgeContentTypes,
		},
	}
}

func judgeCreated(t *trial) {
	token := t.token()
	before := time.Now()
	r := t.post(token, "hello")
	const skew = 5 * time.Second // of the clock of a server elsewhere
	at := time.UnixMilli(r.Epoch)
	if at.Before(before.Add(-skew)) || at.After(time.Now().Add(skew)) {
		t.errorf("the epoch %d is %s, which is not now", r.Epoch, at.UTC())
	}
	p := t.poll(token, 0)
	want := message{ID: r.ID, Epoch: r.Epoch, TS: r.TS, Author: "operator", Text: "hello"}
	if len(p.Messages) != 1 || p.Messages[0] != want {
		t.errorf("the poll shows %+v instead of %+v", p.Messages, want)
	}
	if !p.Awaiting || p.Truncated {
		t.errorf("awaiting is %t and truncated %t after one post", p.Awaiting, p.Truncated)
	}
}

func judgeEpochsAscend(t *trial) {
	token := t.token()
	seen := map[string]bool{}
	var last int64
	for _, r := range t.postMany(token, threadPosts) {
		if r.Epoch <= last {
			t.errorf("the epoch %d follows %d", r.Epoch, last)
		}
		if seen[r.ID] {
			t.errorf("the id %s was given twice", r.ID)
		}
		last, seen[r.ID] = r.Epoch, true
	}
}

// postMany posts n short texts one after the other.
func (t *trial) postMany(token string, n int) []receipt {
	receipts := make([]receipt, n)
	for i := range receipts {
		receipts[i] = t.post(token, "message")
	}
	return receipts
}

func judgeKinds(t *trial) {
	token := t.token()
	t.receipt(token, t.postBody(token, `{"text":"a"}`))
	t.receipt(token, t.postBody(token, `{"text":"b","kind":"operator"}`))
	t.receipt(token, t.postBody(token, `{"text":"c","kind":"agent"}`))
	t.wantAuthors(token, "operator", "operator", "agent")
}

func judgeNeverHermes(t *trial) {
	token := t.token()
	t.receipt(token, t.postBody(token, `{"text":"a","author":"hermes"}`))
	t.receipt(token, t.postBody(token, `{"text":"b","kind":"agent","Kind":"hermes"}`))
	t.receipt(token, t.postBody(token, `{"text":"c","id":"MSG-1","epoch":1,"ts":"x","role":"hermes"}`))
	t.wantAuthors(token, "operator", "agent", "operator")
}

func (t *trial) wantAuthors(token string, want ...string) {
	var got []string
	for _, m := range t.poll(token, 0).Messages {
		got = append(got, m.Author)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.errorf("the authors are %q instead of %q", got, want)
	}
}

func judgeExactNames(t *trial) {
	token := t.token()
	t.wantError(t.postBody(token, `{"TEXT":"b"}`), http.StatusBadRequest, "bad_request")
	t.receipt(token, t.postBody(token, `{"text":"a","TEXT":"b"}`))
	t.receipt(token, t.postBody(token, `{"Text":"b","text":"a"}`))
	t.wantTexts(token, "a", "a")
}

func (t *trial) wantTexts(token string, want ...string) {
	got := t.poll(token, 0).texts()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.errorf("the texts are %q instead of %q", got, want)
	}
}

func judgeClientSentThread(t *trial) {
	token, other := t.token(), t.token()
	t.receipt(token, t.postBody(token, `{"text":"a","thread":"`+threadOf(other)+`"}`))
	t.wantTexts(token, "a")
	t.wantTexts(other)
}

func judgeContentTypes(t *trial) {
	token := t.token()
	for _, types := range [][]string{
		nil,
		{"application/json"},
		{"application/json; charset=utf-8"},
		{"application/json;charset=UTF-8;v=1"},
		{"Application/JSON"},
	} {
		c := t.postCall(token, strings.NewReader(textBody("hello")))
		c.header = http.Header{"Content-Type": types}
		if types == nil {
			c.header = nil
		}
		a := t.do(c)
		if a.status != http.StatusCreated {
			t.errorf("the Content-Type %q is answered by %d: %s", types, a.status, clip(a.body))
		}
	}
}

// contentCases judge that a text is kept as it was sent (section 3).
func contentCases() []testCase {
	var cases []testCase
	for name, text := range map[string]string{
		"white-space":   "  \t a \r\n\n b \n",
		"markup":        `<b>&amp;"'\/</b>`,
		"composed":      "\u00e9 e\u0301 \ufb01 \u212b",
		"controls":      "a\x00b\x07\x1b[2J\x7f\u0085\u009b",
		"separators":    "a\u2028b\u2029c\u00a0\ufeffd",
		"invisible":     "a\u200bb\u202ec\U000e0041\ufe0f",
		"replacement":   "a\ufffdb",
		"non-character": "a\uffffb\U0010ffff",
		"astral":        "👨\u200d👩\u200d👧\u200d👦 😀",
		"json":          `{"text":"\u0041"}`,
	} {
		cases = append(cases, testCase{
			name:  "post/keeps-" + name,
			wants: "A text is stored as decoded, never trimmed, normalised or replaced, section 3.",
			judge: func(t *trial) {
				token := t.token()
				t.post(token, text)
				t.wantTexts(token, text)
			},
		})
	}
	cases = append(cases, testCase{
		name:  "post/keeps-escapes-decoded",
		wants: "JSON escapes, surrogate pairs among them, are decoded once, section 3.",
		judge: func(t *trial) {
			token := t.token()
			t.receipt(token, t.postBody(token, `{"te\u0078t":"\u0061\ud83d\ude00\\u0041\/"}`))
			t.wantTexts(token, "a😀\\u0041/")
		},
	})
	return sorted(cases)
}
