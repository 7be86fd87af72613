package openai_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
	"github.com/newos4/relay/pkg/autoreply/openai"
	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/sandbox"
)

// files is a directory with one document. It counts how often it is looked at.
type files struct {
	mu    sync.Mutex
	looks int
	text  string
	err   error
}

func (f *files) count() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
}

func (f *files) List(context.Context, string) (sandbox.Listing, error) {
	f.count()
	return sandbox.Listing{Entries: []sandbox.Entry{{Path: "docs/a.md", Size: 5}}}, f.err
}

func (f *files) Read(_ context.Context, path string, _, _ int) (sandbox.Excerpt, error) {
	f.count()
	if path != "docs/a.md" {
		return sandbox.Excerpt{}, sandbox.ErrNotReadable
	}
	return sandbox.Excerpt{Path: path, FirstLine: 1, LastLine: 1, TotalLines: 1, Text: f.text}, nil
}

func (f *files) Search(context.Context, sandbox.Query) (sandbox.Matches, error) {
	f.count()
	return sandbox.Matches{}, nil
}

// fixture is a back end in front of a scripted server.
type fixture struct {
	t       *testing.T
	server  *autoreplytest.Server
	files   *files
	backend *openai.Backend

	mu    sync.Mutex
	waits []time.Duration // before repetitions
}

// newFixture opens a back end that waits for nothing.
func newFixture(t *testing.T, server autoreplytest.Options, change ...func(*openai.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, server: autoreplytest.New(t, server), files: &files{text: "hello"}}
	opts := openai.Options{
		BaseURL: f.server.URL,
		Model:   "scripted",
		Key:     openai.Key(server.Key),
		Files:   f.files,
		HTTP:    f.server.Client(),
		Now:     func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
		Wait: func(ctx context.Context, d time.Duration) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.waits = append(f.waits, d)
			return ctx.Err()
		},
		Jitter: func(d time.Duration) time.Duration { return d },
	}
	for _, c := range change {
		c(&opts)
	}
	backend, err := openai.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	f.backend = backend
	return f
}

// question returns a thread of one message, with a budget that is not reached.
func question(text string) autoreply.Question {
	return autoreply.Question{
		Messages: []chat.Message{{Author: chat.Operator, Text: text}},
		Limit:    4000,
		Budget:   autoreply.Budget{Time: time.Minute, ToolCalls: 100, Bytes: 1 << 20, Tokens: 1 << 20},
	}
}

// answer asks and expects an answer.
func (f *fixture) answer(q autoreply.Question) autoreply.Answer {
	f.t.Helper()
	answer, err := f.backend.Answer(f.t.Context(), q)
	if err != nil {
		f.t.Fatalf("no answer: %v", err)
	}
	return answer
}

// fails asks and expects a failure with a reason.
func (f *fixture) fails(q autoreply.Question, reason autoreply.Reason, retry bool) {
	f.t.Helper()
	_ = f.failure(q, reason, retry)
}

// failure is fails that returns the failure.
func (f *fixture) failure(q autoreply.Question, reason autoreply.Reason, retry bool) *autoreply.Failure {
	f.t.Helper()
	answer, err := f.backend.Answer(f.t.Context(), q)
	failure, ok := errors.AsType[*autoreply.Failure](err)
	if !ok {
		f.t.Fatalf("answer %+v, error %v; want a failure", answer, err)
	}
	if failure.Reason != reason || failure.Retry != retry {
		f.t.Errorf("failure %q (retry %v), want %q (retry %v)", failure, failure.Retry, reason, retry)
	}
	return failure
}
