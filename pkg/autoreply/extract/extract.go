// Package extract answers without a model: it quotes the passages of the public
// files that fit a question best.
//
// What it promises:
//   - An answer holds one sentence of its own and quotations, each with its
//     file and lines, and nothing else. No word of a message is repeated.
//   - It can show only what the readable roots hold, by way of the confined
//     reader behind [Searcher].
//   - It never has more code points than asked for. Where a quotation was
//     shortened, an ellipsis says so.
//
// That nothing was found is an answer too: a person will see the message.
package extract

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/passage"
)

// maxPassages is how many passages an answer quotes, one when it has to be short.
const maxPassages = 3

// Searcher finds passages, as a [passage.Index] does.
type Searcher interface {
	Search(ctx context.Context, question string, n int) ([]passage.Passage, error)
	Close() error
}

// Backend is an [autoreply.Backend] that quotes.
type Backend struct{ passages Searcher }

// New returns a back end that quotes what passages finds. It closes passages
// when it is closed.
func New(passages Searcher) *Backend { return &Backend{passages: passages} }

// Probe always succeeds: whether there is anything to quote shows with each
// question.
func (b *Backend) Probe(context.Context) error { return nil }

// Answer quotes the passages that fit what was written since the last answer.
// The answer's tools are the files that were quoted. Of the budget only the time
// counts, by the context; the rest bounds models. It fails with
// [autoreply.ReasonTooLong] when the limit has no room for a quotation, and with
// what may pass when the files cannot be searched.
func (b *Backend) Answer(ctx context.Context, q autoreply.Question) (autoreply.Answer, error) {
	question := passage.Question(q.Messages)
	phrases := phrasesFor(question)
	n := maxPassages
	if q.TooLong != "" {
		n = 1
	}
	found, err := b.passages.Search(ctx, question, n)
	if err != nil {
		return autoreply.Answer{}, failure(err)
	}
	if len(found) == 0 {
		return autoreply.Answer{Text: clip(phrases.nothing, q.Limit)}, nil
	}
	quotations := quote(found, q.Limit-utf8.RuneCountInString(phrases.found))
	if len(quotations) == 0 {
		return autoreply.Answer{}, autoreply.Failf(autoreply.ReasonTooLong, false, "%d code points have no room for a quotation", q.Limit)
	}
	answer := autoreply.Answer{Text: phrases.found}
	for _, quotation := range quotations {
		answer.Text += "\n\n" + quotation.text
		answer.Tools = append(answer.Tools, autoreply.ToolUse{Name: "read_file", Target: quotation.path, Outcome: "ok"})
	}
	return answer, nil
}

// Close frees the index.
func (b *Backend) Close() error { return b.passages.Close() }

// failure tells the end of the context from other errors.
func failure(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return autoreply.Failf(autoreply.ReasonTimeout, true, "%w", err)
	}
	return fmt.Errorf("looking for passages: %w", err)
}
