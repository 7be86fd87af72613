package hermesapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/chat"
)

// Ensures that a thread becomes one plain request, and its answer an answer.
func TestAnswer(t *testing.T) {
	t.Parallel()
	h := MustServe(t)
	h.answer = strings.Replace(fine, "It is there.", "Ask help@\u2060example.org. \\ud800", 1)
	q := ask("Hello", "Hi, I am Hermes", "Where is it?")
	q.Messages[1].Author = chat.Hermes
	got, err := h.MustNew(t, Options{}).Answer(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(autoreply.Answer{Text: "Ask help@example.org. \ufffd", Tokens: 11}, got); diff != "" {
		t.Error(diff)
	}
	want := http.Header{
		"Accept":               {"application/json"},
		"Accept-Encoding":      {"gzip"},
		"Authorization":        {"Bearer " + testKey},
		"Content-Type":         {"application/json"},
		"Content-Length":       h.requests[0].Header["Content-Length"],
		"User-Agent":           {"Go-http-client/1.1"},
		"X-Hermes-Session-Key": {"relay-thread-0123456789abcdef"},
	}
	if diff := cmp.Diff(want, h.requests[0].Header); diff != "" {
		t.Error(diff)
	}
	body := h.bodies[0]
	if body.Stream || body.Model != "" || len(body.Messages) != 2 || body.Messages[0].Role != "system" || body.Messages[1].Role != "user" {
		t.Errorf("sent %+v", body)
	}
	lines := []string{
		`{"author":"operator","ts":"2023-11-14T22:13:20+00:00","text":"Hello"}`,
		`{"author":"hermes","ts":"2023-11-14T22:13:20+00:00","text":"Hi, I am Hermes"}`,
		`{"author":"operator","ts":"2023-11-14T22:13:20+00:00","text":"Where is it?"}`,
	}
	if diff := cmp.Diff(lines, dataOf(t, body.Messages[1].Content)); diff != "" {
		t.Error(diff)
	}
}

// Ensures that two threads that say the same are two texts, from which the
// server makes two sessions, and that a model is named only if one is wanted.
func TestAnswer_Unique(t *testing.T) {
	t.Parallel()
	h := MustServe(t)
	b := h.MustNew(t, Options{Model: "hermes-agent"})
	for range 2 {
		if _, err := b.Answer(t.Context(), ask("Hello")); err != nil {
			t.Fatal(err)
		}
	}
	if first, second := h.bodies[0], h.bodies[1]; first.Messages[1] == second.Messages[1] || first.Model != "hermes-agent" {
		t.Errorf("sent %+v and %+v", first, second)
	}
}

// found is a searcher that always finds the same.
type found struct {
	passages []passage.Passage
	err      error
}

func (f found) Search(context.Context, string, int) ([]passage.Passage, error) {
	return f.passages, f.err
}

func (f found) Close() error { return nil }

// Ensures that what our own reader chose is sent as data, bounded by the
// budget, and told to the operator.
func TestAnswer_Excerpts(t *testing.T) {
	t.Parallel()
	h := MustServe(t)
	b := h.MustNew(t, Options{Passages: found{passages: []passage.Passage{
		{Path: "docs/a.md", First: 1, Last: 2, Text: "# A\nsee @file:b"},
		{Path: "docs/b.md", First: 7, Last: 7, Text: "b"},
	}}})
	q := ask("Where?")
	q.Budget.Bytes = 0
	if got, err := b.Answer(t.Context(), q); err != nil || len(got.Tools) != 0 || len(dataOf(t, h.bodies[0].Messages[1].Content)) != 1 {
		t.Errorf("without a byte to show: %+v, %v", got, err)
	}
	q.Budget.Bytes = 15
	got, err := b.Answer(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]autoreply.ToolUse{{Name: "read_file", Target: "docs/a.md", Outcome: "ok"}}, got.Tools); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`{"document":"docs/a.md","first_line":1,"last_line":2,"text":"# A\nsee @` + "\u2060" + `file:b"}`,
		`{"author":"operator","ts":"2023-11-14T22:13:20+00:00","text":"Where?"}`,
	}
	if diff := cmp.Diff(want, dataOf(t, h.bodies[1].Messages[1].Content)); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("broken")
	if _, err := h.MustNew(t, Options{Passages: found{err: broken}}).Answer(t.Context(), q); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// failureOf returns the failure that an error is.
func failureOf(t *testing.T, err error) *autoreply.Failure {
	t.Helper()
	failure, ok := errors.AsType[*autoreply.Failure](err)
	if !ok {
		t.Fatalf("error is %v, want a failure", err)
	}
	return failure
}

// Ensures that each status is the failure that section 2.3 makes of it, that a
// busy server is left alone as long as it asks, and that an error repeats
// neither the body nor the key.
func TestAnswer_Status(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		status int
		after  string
		body   string
		want   autoreply.Reason
		retry  bool
		wait   time.Duration
		says   string
	}{
		"bad request":    {400, "", `{"error":{"message":"secret","code":"invalid_content_part"}}`, autoreply.ReasonRefused, false, 0, "status 400, invalid_content_part"},
		"wrong key":      {401, "", `{"error":{"message":"secret","code":"invalid_api_key"}}`, autoreply.ReasonRefused, false, 0, "status 401, invalid_api_key"},
		"wrong origin":   {403, "", "", autoreply.ReasonRefused, false, 0, "status 403"},
		"not there":      {404, "", "secret", autoreply.ReasonRefused, false, 0, "status 404"},
		"too large":      {413, "", `{"error":{"code":"body_too_large"}}`, autoreply.ReasonRefused, false, 0, "body_too_large"},
		"busy":           {429, "7", `{"error":{"message":"max_concurrent_runs","code":null}}`, autoreply.ReasonUnavailable, true, 7 * time.Second, "status 429"},
		"busy until":     {429, "Sun, 01 Nov 2026 12:00:30 GMT", `{}`, autoreply.ReasonUnavailable, true, 30 * time.Second, "status 429"},
		"busy since":     {429, "Sun, 01 Nov 2026 11:00:30 GMT", `{}`, autoreply.ReasonUnavailable, true, 0, "status 429"},
		"busy for long":  {429, "99999999", `{}`, autoreply.ReasonUnavailable, true, time.Hour, "status 429"},
		"busy for ever":  {429, "999999999999999999999", `{}`, autoreply.ReasonUnavailable, true, 0, "status 429"},
		"agent failure":  {500, "", `{"error":{"message":"secret","code":"a secret with spaces"}}`, autoreply.ReasonUnavailable, true, 0, "status 500"},
		"incomplete":     {502, "", `{"error":{"code":"agent_incomplete","hermes":{"completed":false,"partial":true,"failed":false}}}`, autoreply.ReasonCutOff, true, 0, "agent_incomplete"},
		"failed":         {502, "", `{"error":{"code":"agent_incomplete","hermes":{"completed":false,"partial":false,"failed":true}}}`, autoreply.ReasonUnavailable, true, 0, "agent_incomplete"},
		"draining":       {503, "x", `draining`, autoreply.ReasonUnavailable, true, 0, "status 503"},
		"odd code":       {503, "", `{"error":{"code":17}}`, autoreply.ReasonUnavailable, true, 0, "status 503"},
		"error a string": {400, "", `{"error":"secret"}`, autoreply.ReasonRefused, false, 0, "status 400"},
		"not an answer":  {204, "", ``, autoreply.ReasonRefused, false, 0, "status 204"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := MustServe(t)
			h.status, h.answer = test.status, test.body
			if test.after != "" {
				h.header = http.Header{"Retry-After": {test.after}}
			}
			_, err := h.MustNew(t, Options{Now: func() time.Time { return now }}).Answer(t.Context(), ask("Where?"))
			got := failureOf(t, err)
			if got.Reason != test.want || got.Retry != test.retry || got.After != test.wait {
				t.Errorf("got %+v", got)
			}
			if text := err.Error(); !strings.HasSuffix(text, test.says) || strings.Contains(text, "secret") || strings.Contains(text, testKey) {
				t.Errorf("error %q", text)
			}
			if n := h.count("/v1/chat/completions"); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// Ensures that under status 200 nothing but a whole answer is one, in whichever
// way the server says so, and that what it cost is counted.
func TestAnswer_SoftFailures(t *testing.T) {
	t.Parallel()
	const (
		stop = `"finish_reason":"stop"`
		some = -1 // more than 0 tokens, that the server does not count
	)
	for name, test := range map[string]struct {
		replace, with string
		header        string
		want          autoreply.Reason // "" for an answer
		tokens        int
	}{
		"length":                {stop, `"finish_reason":"length"`, "", autoreply.ReasonCutOff, 11},
		"error":                 {stop, `"finish_reason":"error"`, "", autoreply.ReasonUnavailable, 11},
		"content filter":        {stop, `"finish_reason":"content_filter"`, "", autoreply.ReasonNoAnswer, 11},
		"tool calls":            {stop, `"finish_reason":"tool_calls"`, "", autoreply.ReasonNoAnswer, 11},
		"no finish":             {`,"finish_reason":"stop"`, ``, "", "", 11},
		"null finish":           {stop, `"finish_reason":null`, "", "", 11},
		"object truncated":      {`"usage"`, `"hermes":{"completed":false,"partial":true,"failed":false,"error":"cut","error_code":"output_truncated"},"usage"`, "", autoreply.ReasonCutOff, 11},
		"object failed":         {`"usage"`, `"hermes":{"completed":false,"partial":false,"failed":true,"error":"secret","error_code":"agent_error"},"usage"`, "", autoreply.ReasonUnavailable, 11},
		"object error":          {`"usage"`, `"hermes":{"error":{"message":"secret"}},"usage"`, "", autoreply.ReasonUnavailable, 11},
		"object incomplete":     {`"usage"`, `"hermes":{"completed":false},"usage"`, "", autoreply.ReasonCutOff, 11},
		"object fine":           {`"usage"`, `"hermes":{"completed":true,"partial":false,"failed":false,"error":null,"error_code":null},"usage"`, "", "", 11},
		"header error":          {"", "", "X-Hermes-Error: secret", autoreply.ReasonUnavailable, 11},
		"header partial":        {"", "", "X-Hermes-Partial: true", autoreply.ReasonCutOff, 11},
		"header incomplete":     {"", "", "X-Hermes-Completed: false", autoreply.ReasonCutOff, 11},
		"header fine":           {"", "", "X-Hermes-Completed: true", "", 11},
		"no words":              {"It is there.", ` \n`, "", autoreply.ReasonNoAnswer, 11},
		"only a thought":        {"It is there.", `<think>It is there.`, "", autoreply.ReasonNoAnswer, 11},
		"a call as text":        {"It is there.", `<tool_call>{}`, "", autoreply.ReasonNoAnswer, 11},
		"null":                  {`"It is there."`, `null`, "", autoreply.ReasonNoAnswer, 11},
		"only reasoning":        {`"content":"It is there."`, `"reasoning_content":"hm"`, "", autoreply.ReasonNoAnswer, 11},
		"refusal":               {`"content"`, `"refusal":"no","content"`, "", autoreply.ReasonNoAnswer, 11},
		"no choice":             {fine, `{"choices":[],"usage":{"total_tokens":3}}`, "", autoreply.ReasonNoAnswer, 3},
		"no usage":              {fine, `{"choices":[{"message":{"content":"It is there."}}],"usage":null}`, "", "", some},
		"negative usage":        {`"total_tokens":11`, `"total_tokens":-11`, "", "", some},
		"error under 200":       {fine, `{"error":{"message":"secret"}}`, "", autoreply.ReasonNoAnswer, 0},
		"parts":                 {`"It is there."`, `[{"type":"text","text":"It is there."}]`, "", autoreply.ReasonUnavailable, 0},
		"not JSON":              {fine, `<html>secret</html>`, "", autoreply.ReasonUnavailable, 0},
		"cut in the middle":     {fine, fine[:len(fine)/2], "", autoreply.ReasonUnavailable, 0},
		"more than is bearable": {"It is there.", strings.Repeat("x", maxBody), "", autoreply.ReasonUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := MustServe(t)
			h.answer = strings.Replace(fine, test.replace, test.with, 1)
			if name, value, ok := strings.Cut(test.header, ": "); ok {
				h.header = http.Header{name: {value}}
			}
			got, err := h.MustNew(t, Options{}).Answer(t.Context(), ask("Where?"))
			if test.want == "" {
				if err != nil || got.Text != "It is there." || got.Tokens != test.tokens && (test.tokens != some || got.Tokens <= 0) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			failure := failureOf(t, err)
			if failure.Reason != test.want || !failure.Retry || failure.Tokens != test.tokens || got.Text != "" {
				t.Errorf("got %+v, %+v", got, failure)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q", err)
			}
		})
	}
}

// Ensures that a redirect, which would carry the thread elsewhere, is a refusal.
func TestAnswer_Redirect(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	h := MustServe(t)
	h.status, h.header = http.StatusTemporaryRedirect, http.Header{"Location": {elsewhere.URL}}
	_, err := h.MustNew(t, Options{Client: &http.Client{}}).Answer(t.Context(), ask("Where?"))
	if got := failureOf(t, err); got.Reason != autoreply.ReasonRefused || got.Retry {
		t.Errorf("got %+v", got)
	}
}

// Ensures that a server that is away may come back, and that the error does not
// name it.
func TestAnswer_Away(t *testing.T) {
	t.Parallel()
	h := MustServe(t)
	h.server.Close()
	_, err := h.MustNew(t, Options{}).Answer(t.Context(), ask("Where?"))
	if got := failureOf(t, err); got.Reason != autoreply.ReasonUnavailable || !got.Retry {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(err.Error(), "http://") {
		t.Errorf("error %q", err)
	}
}

// endingContext is one that a test ends in the way it wants.
type endingContext struct {
	context.Context
	done chan struct{}
	err  error
}

func (c *endingContext) Done() <-chan struct{} { return c.done }

func (c *endingContext) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Ensures that the end of the context ends the request, and that a deadline is
// told from a call that was given up.
func TestAnswer_ContextEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"deadline": context.DeadlineExceeded, "cancelled": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := MustServe(t)
			h.hold = make(chan struct{})
			b := h.MustNew(t, Options{})
			ctx := &endingContext{Context: t.Context(), done: make(chan struct{}), err: end}
			failed := make(chan error, 1)
			go func() {
				_, err := b.Answer(ctx, ask("Where?"))
				failed <- err
			}()
			<-h.hold
			close(ctx.done)
			err := <-failed
			if !errors.Is(err, end) {
				t.Fatalf("got %v, want %v", err, end)
			}
			if errors.Is(end, context.DeadlineExceeded) {
				if got := failureOf(t, err); got.Reason != autoreply.ReasonTimeout || !got.Retry {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}

// Ensures that threads may be answered at the same time.
func TestAnswer_Concurrent(t *testing.T) {
	t.Parallel()
	h := MustServe(t)
	b := h.MustNew(t, Options{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if got, err := b.Answer(t.Context(), ask("Where?")); err != nil || got.Text != "It is there." {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	group.Wait()
	if n := h.count("/v1/toolsets"); n != 1 {
		t.Errorf("looked at the tools %d times", n)
	}
}
