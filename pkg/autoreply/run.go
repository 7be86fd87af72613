package autoreply

import (
	"context"
	"errors"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// Causes for which a run is given up.
var (
	errSuperseded = errors.New("the thread has changed")
	errStopping   = errors.New("the agent stops")
)

// run answers one thread once. It works beside the agent's goroutine and
// touches nothing that belongs to it.
type run struct {
	agent    *Agent
	thread   chat.ThreadID
	settings Settings
}

// result is how a run ended.
type result struct {
	thread  chat.ThreadID
	backend Backend
	message string // what was to be answered, "" for nothing
	outcome outcome
	failure *Failure // nil unless the run failed
	tools   int
	tokens  int
	took    time.Duration
}

type outcome string

const (
	answered   outcome = "answered"
	superseded outcome = "superseded"
	failed     outcome = "failed"
)

// name is the outcome as it is counted.
func (r result) name() string {
	if r.failure != nil {
		return string(failed) + ": " + string(r.failure.Reason)
	}
	return string(r.outcome)
}

// do runs to the end. A given-up run is superseded: what the thread needs next
// is decided by looking at it.
func (r run) do(ctx context.Context) result {
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, r.settings.Budget.Time, context.DeadlineExceeded)
	defer cancel()
	res := result{thread: r.thread, backend: r.settings.Backend}
	err := r.answer(ctx, &res)
	res.took = time.Since(started)
	if err != nil && isGivenUp(ctx) {
		err = errSuperseded // whatever it says, it was cut short
	}
	switch {
	case err == nil:
		res.outcome = answered
	case errors.Is(err, errSuperseded):
		res.outcome = superseded
	default:
		res.outcome, res.failure = failed, failureOf(err)
	}
	return res
}

// isGivenUp reports whether the run was ended from outside, and not by its time.
func isGivenUp(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// answer asks the back end and appends what it says under the condition that
// the message is still the newest.
func (r run) answer(ctx context.Context, res *result) error {
	thread, err := r.agent.store.Thread(r.thread)
	if err != nil {
		return Failf(ReasonInternal, false, "reading the thread: %w", err)
	}
	if !thread.Awaiting() {
		return errSuperseded
	}
	last, _ := thread.Last()
	res.message = last.ID
	answer, err := draft(ctx, r.settings, Question{
		Thread: r.thread, Messages: thread.Messages(), Limit: r.settings.Limit, Budget: r.settings.Budget,
	}, r.agent.step)
	res.tools, res.tokens = len(answer.Tools), answer.Tokens
	if err != nil {
		return err
	}
	r.agent.step("append")
	_, err = r.agent.store.Append(ctx, r.thread, storage.Post{Author: chat.Hermes, Text: answer.Text, IfLast: last.ID})
	r.agent.step("appended")
	if code := chat.CodeOf(err); err != nil && (code == chat.CodeConflict || code == chat.CodeNotFound) {
		return errSuperseded
	}
	if err != nil {
		return Failf(ReasonInternal, true, "storing the answer: %w", err)
	}
	return nil
}

// draft returns an answer that may leave, with all that was done for it, also
// when it fails. One that is too long is sent back once for shortening; it is
// never cut. step is told of each moment at which a crash would matter.
func draft(ctx context.Context, settings Settings, q Question, step func(string)) (Answer, error) {
	var whole Answer
	for range 2 {
		step("ask")
		answer, err := settings.Backend.Answer(ctx, q)
		step("drafted")
		whole.Tools = append(whole.Tools, answer.Tools...)
		whole.Tokens += answer.Tokens
		if err != nil {
			whole.Tokens += failureOf(err).Tokens
			return whole, err
		}
		if whole.Text, err = settings.Outgoing.Clean(answer.Text); err != nil {
			return whole, err
		}
		if chat.CheckText(whole.Text, q.Limit) == nil {
			return whole, nil
		}
		q.TooLong = whole.Text
		if q.Budget.Tokens = settings.Budget.Tokens - whole.Tokens; q.Budget.Tokens <= 0 {
			return whole, Failf(ReasonBudget, false, "the answer is too long and no tokens are left to shorten it")
		}
	}
	return whole, Failf(ReasonTooLong, false, "the answer was over %d code points, twice", q.Limit)
}
