package extract_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/extract"
	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/chat"
)

// found is a searcher that finds the same whatever it is asked, and remembers
// what that was.
type found struct {
	passages []passage.Passage
	err      error
	question string
	closed   bool
}

func (f *found) Search(_ context.Context, question string, n int) ([]passage.Passage, error) {
	f.question = question
	return f.passages[:min(n, len(f.passages))], f.err
}

func (f *found) Close() error {
	f.closed = true
	return nil
}

func threePassages() []passage.Passage {
	return []passage.Passage{
		{Path: "docs/a.md", First: 3, Last: 5, Text: "## Listening\n\nOn **127.0.0.1**."},
		{Path: "docs/b.md", First: 1, Last: 1, Text: "One line."},
		{Path: "docs/\x1bc.md", First: 7, Last: 8, Text: "Two\nlines."},
		{Path: "docs/d.md", First: 1, Last: 1, Text: "Not quoted."},
	}
}

func ask(limit int, texts ...string) autoreply.Question {
	q := autoreply.Question{Limit: limit}
	for _, text := range texts {
		q.Messages = append(q.Messages, chat.Message{Author: chat.Operator, Text: text})
	}
	return q
}

// Ensures that an answer is one sentence and the quotations, to the byte.
func TestAnswer(t *testing.T) {
	t.Parallel()
	got, err := extract.New(&found{passages: threePassages()}).Answer(t.Context(), ask(4000, "Where does it listen?"))
	if err != nil {
		t.Fatal(err)
	}
	want := autoreply.Answer{
		Text: `This is an automatic reply. The following is quoted from the documentation:

docs/a.md:3-5
> ## Listening
> 
> On **127.0.0.1**.

docs/b.md:1-1
> One line.

docs/⟦U+001B⟧c.md:7-8
> Two
> lines.`,
		Tools: []autoreply.ToolUse{
			{Name: "read_file", Target: "docs/a.md", Outcome: "ok"},
			{Name: "read_file", Target: "docs/b.md", Outcome: "ok"},
			{Name: "read_file", Target: "docs/\x1bc.md", Outcome: "ok"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Ensures that the sentence is in the language of the question, whether
// something was found or not.
func TestAnswer_Language(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"怎么配置？":                                   "自动回复",
		"relayd 的 agent.sandbox 怎么设置？":            "自动回复",
		"Where is it?":                            "automatic reply",
		"What does the word 你好 mean in the docs?": "automatic reply",
		"設定はどこですか":                                "automatic reply",
		"😀":                                       "automatic reply",
	} {
		for _, passages := range [][]passage.Passage{nil, threePassages()} {
			got, err := extract.New(&found{passages: passages}).Answer(t.Context(), ask(4000, question))
			first, _, _ := strings.Cut(got.Text, "\n")
			if err != nil || !strings.Contains(first, want) {
				t.Errorf("%q was answered %q, %v", question, first, err)
			}
			if got.Tools != nil != (passages != nil) {
				t.Errorf("%q: tools are %v", question, got.Tools)
			}
		}
	}
}

// Ensures that what was written since the last answer is looked for, the newest
// first, and nothing older.
func TestAnswer_Question(t *testing.T) {
	t.Parallel()
	q := ask(4000, "old", "answered", "first", "second")
	q.Messages[1].Author = chat.Hermes
	q.Messages[3].Author = chat.Agent
	var searcher found
	if _, err := extract.New(&searcher).Answer(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if want := "second\nfirst\n"; searcher.question != want {
		t.Errorf("looked for %q, want %q", searcher.question, want)
	}
}

// Ensures that an answer never is over its limit, is not cut without saying so,
// and claims no line that it does not show.
func TestAnswer_Limit(t *testing.T) {
	t.Parallel()
	passages := []passage.Passage{
		{Path: "docs/a.md", First: 98, Last: 101, Text: "界界界界\n" + strings.Repeat("long ", 100) + "\nshort\nend"},
		{Path: strings.Repeat("long/", 20) + "b.md", First: 1, Last: 1, Text: strings.Repeat("x", 300)},
	}
	for limit := range 1200 {
		got, err := extract.New(&found{passages: passages}).Answer(t.Context(), ask(limit, "Where?"))
		if failure, ok := errors.AsType[*autoreply.Failure](err); ok {
			if failure.Reason != autoreply.ReasonTooLong || failure.Retry || limit > 200 {
				t.Fatalf("limit %d: %v", limit, err)
			}
			continue
		}
		if n := utf8.RuneCountInString(got.Text); err != nil || n > limit {
			t.Fatalf("limit %d: %d code points, %v", limit, n, err)
		}
		first, second, both := strings.Cut(got.Text, "\n\n"+passages[1].Path)
		if all := strings.Contains(first, ":98-101"); all != strings.HasSuffix(first, "> end") || all == strings.Contains(first, "…") {
			t.Fatalf("limit %d: %s", limit, first)
		}
		if strings.Contains(first, ":98-98") && strings.Contains(first, "> short") {
			t.Fatalf("limit %d: %s", limit, first)
		}
		if both && strings.HasSuffix(second, "…") == (strings.Count(second, "x") == 300) {
			t.Fatalf("limit %d: %s", limit, second)
		}
	}
	for limit := range 200 {
		got, err := extract.New(&found{}).Answer(t.Context(), ask(limit, "Where?"))
		if n := utf8.RuneCountInString(got.Text); err != nil || n > max(limit, 1) {
			t.Errorf("limit %d: %q, %v", limit, got.Text, err)
		}
	}
}

// Ensures that an answer that was too long is followed by a shorter one.
func TestAnswer_TooLong(t *testing.T) {
	t.Parallel()
	q := ask(4000, "Where?")
	q.TooLong = "much"
	got, err := extract.New(&found{passages: threePassages()}).Answer(t.Context(), q)
	if err != nil || len(got.Tools) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

// Ensures that files that cannot be searched are a failure, not an answer that
// nothing was found.
func TestAnswer_Fails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := extract.New(&found{err: broken}).Answer(t.Context(), ask(4000, "?")); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	_, err := extract.New(&found{err: context.DeadlineExceeded}).Answer(t.Context(), ask(4000, "?"))
	if failure, ok := errors.AsType[*autoreply.Failure](err); !ok || failure.Reason != autoreply.ReasonTimeout || !failure.Retry {
		t.Errorf("got %v", err)
	}
}

// Ensures that it is usable from the start and closes what it was given.
func TestClose(t *testing.T) {
	t.Parallel()
	var searcher found
	b := extract.New(&searcher)
	if err := errors.Join(b.Probe(t.Context()), b.Close()); err != nil || !searcher.closed {
		t.Errorf("closed is %v, %v", searcher.closed, err)
	}
}
