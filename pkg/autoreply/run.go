package autoreply

import (
	"context"
	"errors"
	"runtime/debug"
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
	message  string // that was the newest when it started
	settings Settings
}

// result is how a run ended.
type result struct {
	thread  chat.ThreadID
	backend Backend
	message string // what was to be answered
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
	res := result{thread: r.thread, message: r.message, backend: r.settings.Backend}
	err := r.tryAnswer(ctx, &res)
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

// tryAnswer answers, and makes a failure of a panic: what strangers wrote must
// not end the program. The panic's value may hold some of it and is not told.
func (r run) tryAnswer(ctx context.Context, res *result) (err error) {
	defer func() {
		if recover() != nil {
			r.agent.log.Error("a run of the agent panicked", "thread", string(r.thread), "stack", string(debug.Stack()))
			err = Failf(ReasonInternal, false, "the program has a fault, which the log tells of")
		}
	}()
	return r.answer(ctx, res)
}

// answer asks the back end and appends what it says under the condition that
// the message is still the newest.
func (r run) answer(ctx context.Context, res *result) error {
	thread, err := r.agent.store.Thread(r.thread)
	if err != nil {
		return Failf(ReasonInternal, true, "reading the thread: %w", err)
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
		// Shortening needs no files, and those that were shown count for both.
		q.TooLong, q.Budget.ToolCalls, q.Budget.Bytes = whole.Text, 0, 0
		if q.Budget.Tokens = settings.Budget.Tokens - whole.Tokens; q.Budget.Tokens <= 0 {
			return whole, Failf(ReasonBudget, false, "the answer is too long and no tokens are left to shorten it")
		}
	}
	return whole, Failf(ReasonTooLong, false, "the answer was over %d code points, twice", q.Limit)
}
