package autoreply

import (
	"fmt"
	"slices"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// Bounds limit what all answers together may cost. A bound of 0 is none.
type Bounds struct {
	// ThreadRunsPerHour bounds the runs for one thread.
	ThreadRunsPerHour int
	// RunsPerHour and RunsPerDay bound the runs for all threads.
	RunsPerHour int
	RunsPerDay  int
	// TokensPerHour and TokensPerDay bound the tokens of all runs.
	TokensPerHour int
	TokensPerDay  int
	// AgentTurns is how often Hermes answers the page's own agent in a row,
	// without a word from the person.
	AgentTurns int
	// Retries is how often a question is tried again after a failure.
	Retries int
}

// charge is what one run cost.
type charge struct {
	At     int64         `json:"at"` // epoch ms of the run's start
	Thread chat.ThreadID `json:"thread"`
	Tokens int           `json:"tokens"`
}

// ledger remembers the runs of the last day, oldest first.
type ledger struct {
	Charges []charge `json:"charges"`
}

// open enters a run that starts. It counts before it has cost anything, so that
// a crash makes no run free.
func (l *ledger) open(thread chat.ThreadID, now time.Time) {
	l.Charges = append(l.Charges, charge{At: now.UnixMilli(), Thread: thread})
	cut := now.Add(-24 * time.Hour).UnixMilli()
	l.Charges = slices.DeleteFunc(l.Charges, func(c charge) bool { return c.At <= cut })
}

// settle adds the tokens to the run that was opened last for the thread.
func (l *ledger) settle(thread chat.ThreadID, tokens int) {
	for i := len(l.Charges) - 1; i >= 0; i-- {
		if l.Charges[i].Thread == thread {
			l.Charges[i].Tokens += tokens
			return
		}
	}
}

// refusal says which bound a run would break, and until when.
type refusal struct {
	name   string // of the bound, whatever its value
	reason string
	until  time.Time
}

// check returns nil when the bounds allow another run for the thread. Charges
// from a clock that was ahead count as of now.
func (l *ledger) check(b Bounds, thread chat.ThreadID, now time.Time) *refusal {
	for i := range l.Charges {
		l.Charges[i].At = min(l.Charges[i].At, now.UnixMilli())
	}
	isThread := func(c charge) bool { return c.Thread == thread }
	isAny := func(charge) bool { return true }
	one := func(charge) int { return 1 }
	tokens := func(c charge) int { return c.Tokens }
	for _, rule := range []struct {
		limit int
		span  time.Duration
		count func(charge) bool
		cost  func(charge) int
		name  string
	}{
		{b.ThreadRunsPerHour, time.Hour, isThread, one, "answers to this thread in an hour"},
		{b.RunsPerHour, time.Hour, isAny, one, "answers in an hour"},
		{b.RunsPerDay, 24 * time.Hour, isAny, one, "answers in a day"},
		{b.TokensPerHour, time.Hour, isAny, tokens, "tokens in an hour"},
		{b.TokensPerDay, 24 * time.Hour, isAny, tokens, "tokens in a day"},
	} {
		if rule.limit == 0 {
			continue
		}
		if until, ok := l.until(rule.limit, rule.span, now, rule.count, rule.cost); !ok {
			return &refusal{name: rule.name, reason: fmt.Sprintf("the limit of %d %s is reached", rule.limit, rule.name), until: until}
		}
	}
	return nil
}

// until returns when the cost within the span falls below the limit again; ok
// reports that it is below now.
func (l *ledger) until(limit int, span time.Duration, now time.Time, count func(charge) bool, cost func(charge) int) (at time.Time, ok bool) {
	cut, sum := now.Add(-span).UnixMilli(), 0
	for i := len(l.Charges) - 1; i >= 0; i-- {
		c := l.Charges[i]
		if !count(c) || c.At <= cut {
			continue
		}
		if sum += cost(c); sum >= limit {
			return time.UnixMilli(c.At).Add(span), false
		}
	}
	return time.Time{}, true
}
