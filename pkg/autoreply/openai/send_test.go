package openai_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
	"github.com/newos4/relay/pkg/autoreply/openai"
)

// Ensures that a request is repeated exactly when the connection failed or the
// server was busy, and that a failure says whether there is sense in asking
// later.
func TestSend_Statuses(t *testing.T) {
	t.Parallel()
	busy, broken, refused := autoreply.ReasonUnavailable, autoreply.ReasonUnavailable, autoreply.ReasonRefused
	for name, test := range map[string]struct {
		turn     autoreplytest.Turn
		repeated bool
		reason   autoreply.Reason
		retry    bool
	}{
		"400":               {autoreplytest.Turn{Status: 400}, false, refused, false},
		"401":               {autoreplytest.Turn{Status: 401}, false, refused, false},
		"402":               {autoreplytest.Turn{Status: 402}, false, refused, true},
		"403":               {autoreplytest.Turn{Status: 403}, false, refused, false},
		"404":               {autoreplytest.Turn{Status: 404}, false, refused, false},
		"408":               {autoreplytest.Turn{Status: 408}, true, busy, true},
		"409":               {autoreplytest.Turn{Status: 409}, false, refused, false},
		"413":               {autoreplytest.Turn{Status: 413}, false, refused, false},
		"429":               {autoreplytest.Turn{Status: 429}, true, busy, true},
		"500":               {autoreplytest.Turn{Status: 500}, false, broken, true},
		"502":               {autoreplytest.Turn{Status: 502}, true, busy, true},
		"503":               {autoreplytest.Turn{Status: 503, Body: "loading model"}, true, busy, true},
		"504":               {autoreplytest.Turn{Status: 504}, true, busy, true},
		"no connection":     {autoreplytest.Turn{Drop: true}, true, busy, true},
		"half a response":   {autoreplytest.Turn{Text: "hello", Cut: true}, true, busy, true},
		"error with 200":    {autoreplytest.Turn{Body: `{"error":{"message":"x"}}`}, false, broken, true},
		"text error, 200":   {autoreplytest.Turn{Body: `{"error":"x","choices":[{"message":{"content":"x"}}]}`}, false, broken, true},
		"429 with 200":      {autoreplytest.Turn{Body: `{"error":{"code":429,"message":"x"}}`}, true, busy, true},
		"429 text with 200": {autoreplytest.Turn{Body: `{"error":{"code":"429"}}`}, true, busy, true},
		"403 with 200":      {autoreplytest.Turn{Body: `{"error":{"code":403,"metadata":{}}}`}, false, refused, false},
		"200 with 200":      {autoreplytest.Turn{Body: `{"error":{"code":200}}`}, false, broken, true},
		"error in a choice": {autoreplytest.Turn{Body: `{"choices":[{"error":{"code":502},"message":{"content":"x"}}]}`}, true, busy, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, autoreplytest.Options{})
			if test.repeated {
				f.server.Script("", test.turn, test.turn, autoreplytest.Turn{Text: "fine"})
				if got := f.answer(question("hello")).Text; got != "fine" {
					t.Errorf("answer %q", got)
				}
			}
			f.server.Script("", test.turn, test.turn, test.turn, test.turn)
			f.waits = nil
			f.fails(question("hello"), test.reason, test.retry)
			want := 0
			if test.repeated {
				want = openai.DefaultRetries
			}
			if len(f.waits) != want {
				t.Errorf("repeated %d times, want %d", len(f.waits), want)
			}
		})
	}
}

// Ensures that repetitions back off, wait as long as the server asks if that is
// bearable, and otherwise leave it to the caller.
func TestSend_Waits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after string
		waits []time.Duration
		told  time.Duration
	}{
		"back-off": {"", []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, 0},
		"seconds":  {"7", []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}, 7 * time.Second},
		"little":   {"1", []time.Duration{time.Second, time.Second, 2 * time.Second}, time.Second},
		"date": {
			"Thu, 01 Jan 2026 00:00:09 GMT",
			[]time.Duration{9 * time.Second, 9 * time.Second, 9 * time.Second}, 9 * time.Second,
		},
		"past date":  {"Thu, 01 Jan 2020 00:00:09 GMT", []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, 0},
		"too long":   {"120", nil, 2 * time.Minute},
		"for ever":   {"99999999", nil, time.Hour},
		"far future": {"Thu, 01 Jan 2099 00:00:09 GMT", nil, time.Hour},
		"negative":   {"-5", []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, 0},
		"nonsense":   {"soon", []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, autoreplytest.Options{})
			turn := autoreplytest.Turn{Status: 429, Header: http.Header{"Retry-After": {test.after}}}
			f.server.Script("", turn, turn, turn, turn)
			failure := f.failure(question("hello"), autoreply.ReasonUnavailable, true)
			if diff := cmp.Diff(test.waits, f.waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			if failure.After != test.told {
				t.Errorf("After is %v, want %v", failure.After, test.told)
			}
		})
	}
}

// Ensures that a back end without repetitions makes none, and that tokens of
// earlier rounds are in the failure of a later one.
func TestSend_NoRetries(t *testing.T) {
	t.Parallel()
	f := newFixture(t, autoreplytest.Options{}, func(o *openai.Options) { o.Retries = -1 })
	f.server.Script("",
		autoreplytest.Turn{Calls: []autoreplytest.Call{{Name: "list_files"}}, Tokens: 123}, autoreplytest.Turn{Status: 503})
	if failure := f.failure(question("hello"), autoreply.ReasonUnavailable, true); failure.Tokens != 123 {
		t.Errorf("%d tokens, want 123", failure.Tokens)
	}
	f.server.Script("",
		autoreplytest.Turn{Calls: []autoreplytest.Call{{Name: "list_files"}}}, autoreplytest.Turn{Status: 503})
	if answer, err := f.backend.Answer(t.Context(), question("hello")); err == nil || len(answer.Tools) != 1 {
		t.Errorf("with the failure come %+v, want what was looked at", answer)
	}
	if len(f.waits) > 0 {
		t.Errorf("repeated %d times", len(f.waits))
	}
}

// Ensures that a server which does not answer in time is given up, without a
// repetition, and that the caller can give up at any moment.
func TestSend_Timeout(t *testing.T) {
	t.Parallel()
	slow := newFixture(t, autoreplytest.Options{}, func(o *openai.Options) { o.RequestTimeout = 200 * time.Millisecond })
	slow.server.Script("", autoreplytest.Turn{Gate: autoreplytest.NewGate()})
	failure := slow.failure(question("hello"), autoreply.ReasonTimeout, true)
	if failure.Tokens <= 0 {
		t.Error("the tokens of a request that was given up are not counted")
	}
	if !errors.Is(failure, context.DeadlineExceeded) || len(slow.waits) > 0 {
		t.Errorf("failure %v after %d repetitions", failure, len(slow.waits))
	}

	f := newFixture(t, autoreplytest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-f.server.Gate("here").Arrived()
		cancel()
	}()
	if _, err := f.backend.Answer(ctx, question("WAIT here")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// Ensures that when time runs out before a repetition, the failure is what the
// server said.
func TestSend_WaitEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, autoreplytest.Options{}, func(o *openai.Options) {
		o.Wait = func(context.Context, time.Duration) error { return context.DeadlineExceeded }
	})
	f.server.Script("", autoreplytest.Turn{Status: 503, Header: http.Header{"Retry-After": {"10"}}})
	if got := f.failure(question("hello"), autoreply.ReasonUnavailable, true).After; got != 10*time.Second {
		t.Errorf("After is %v", got)
	}
}

// Ensures that redirects are not followed, so that neither key nor prompt goes
// where it was not meant to.
func TestSend_Redirect(t *testing.T) {
	t.Parallel()
	elsewhere := autoreplytest.New(t, autoreplytest.Options{})
	for _, status := range []int{301, 302, 303, 307, 308} {
		f := newFixture(t, autoreplytest.Options{Key: "sk-test"})
		f.server.Script("", autoreplytest.Turn{Status: status, Body: "moved",
			Header: http.Header{"Location": {elsewhere.URL + "/chat/completions"}}})
		f.fails(question("hello"), autoreply.ReasonRefused, false)
	}
	if n := len(elsewhere.Requests()); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// Ensures that neither the key, nor a prompt, nor what a server says gets into
// an error, which ends up in the log.
func TestSend_ErrorsHoldNoText(t *testing.T) {
	t.Parallel()
	f := newFixture(t, autoreplytest.Options{Key: "sk-test"})
	const echo = `{"error":{"message":"key sk-test, prompt private words","type":"private words","code":"key-sk-test","param":"private"}}`
	for _, turn := range []autoreplytest.Turn{
		{Status: 400, Body: echo}, {Body: echo}, {Status: 401, Body: echo}, {Body: "private words sk-test"},
		{Message: `{"refusal":"private words"}`}, {Text: "private words", Finish: "length"},
	} {
		f.server.Script("", turn)
		_, err := f.backend.Answer(t.Context(), question("private words"))
		if err == nil || strings.Contains(err.Error(), "private") || strings.Contains(err.Error(), "sk-test") {
			t.Errorf("error %v", err)
		}
	}
	f.server.Script("", autoreplytest.Turn{Status: 400, Body: `{"error":{"code":"context_length_exceeded"}}`})
	if err := f.failure(question("x"), autoreply.ReasonRefused, false); !strings.Contains(err.Error(), "context_length_exceeded") {
		t.Errorf("the code is not in %v", err)
	}
}
