package autoreply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// Backend writes answers. It has no other power: it gets the words of a thread
// and returns words. Its methods may be called concurrently.
type Backend interface {
	// Probe reports whether the back end can be used at all, and why not. It is
	// called before the first answer and costs little.
	Probe(ctx context.Context) error
	// Answer returns an answer to the thread in the question. Its error is a
	// [*Failure] when the back end knows what went wrong; any other error counts
	// as a failure that may pass.
	Answer(ctx context.Context, q Question) (Answer, error)
	// Close gives up what the back end holds.
	Close() error
}

// Question is a thread that awaits an answer.
type Question struct {
	Thread chat.ThreadID
	// Messages are the thread's messages, oldest first; the last one is not by
	// Hermes. Their text is what strangers wrote, to the byte.
	Messages []chat.Message
	// Limit is how many code points the answer may have.
	Limit int
	// TooLong, unless empty, is the answer that was over the limit and is to be
	// shortened.
	TooLong string
	// Budget bounds what the answer may cost.
	Budget Budget
}

// Budget bounds one answer. A back end that reaches a bound makes the best of
// what it has, or fails with [ReasonBudget].
type Budget struct {
	// Time is the longest that an answer may take; the context ends with it.
	Time time.Duration
	// ToolCalls is how often files may be listed, read or searched.
	ToolCalls int
	// Bytes is how much of files the model may be shown in all.
	Bytes int
	// Tokens is how many tokens the model may use, prompts and answers together.
	Tokens int
}

// Answer is what a back end wrote.
type Answer struct {
	// Text is the answer as the model gave it, not yet checked.
	Text string
	// Tools tells, in order, what was looked at.
	Tools []ToolUse
	// Tokens is how many tokens were used, 0 where it is not known.
	Tokens int
}

// ToolUse is one look at the files, for the operator. It holds no content.
type ToolUse struct {
	Name string // list_files, read_file or search_files
	// Target is the path or pattern that the model asked for. Whoever wrote the
	// thread may have chosen it: make it visible before it is shown.
	Target string
	// Outcome is "ok" or the error that the model was told.
	Outcome string
}

// Reason says why there is no answer.
type Reason string

// The reasons of a [Failure].
const (
	// ReasonUnavailable: the provider cannot be reached or is overloaded.
	ReasonUnavailable Reason = "unavailable"
	// ReasonRefused: the provider refuses our key, model or request.
	ReasonRefused Reason = "refused by the provider"
	// ReasonUnsafe: the back end could do more than write words.
	ReasonUnsafe Reason = "unsafe"
	// ReasonNoAnswer: the model declined, or gave no words.
	ReasonNoAnswer Reason = "no answer"
	// ReasonCutOff: the model's answer was cut off.
	ReasonCutOff Reason = "cut off"
	// ReasonTooLong: the answer was over the limit, twice.
	ReasonTooLong Reason = "too long"
	// ReasonBudget: a bound of the budget was reached.
	ReasonBudget Reason = "over budget"
	// ReasonTimeout: the answer took too long.
	ReasonTimeout Reason = "timeout"
	// ReasonSecret: the answer held a secret and was not stored.
	ReasonSecret Reason = "held a secret"
	// ReasonInternal: a fault of this program or of a command it ran.
	ReasonInternal Reason = "internal"
)

// Failure is why a back end has no answer.
type Failure struct {
	Reason Reason
	// Retry reports whether the same question may succeed later.
	Retry bool
	// After is how long the provider asked to wait; 0 leaves it to the caller.
	After time.Duration
	// Tokens were used all the same.
	Tokens int
	cause  error
}

// Failf returns a Failure with a formatted cause, which is for the operator and
// must hold no key, prompt or text of a message.
func Failf(reason Reason, retry bool, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Retry: retry, cause: fmt.Errorf(format, args...)}
}

// Error returns the reason and the cause.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Reason, f.cause) }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

// failureOf returns what err says of itself.
func failureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Failure{Reason: ReasonTimeout, Retry: true, cause: err}
	}
	return &Failure{Reason: ReasonInternal, Retry: true, cause: err}
}
