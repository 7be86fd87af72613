package main

import (
	"context"
	"fmt"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// agentEnv makes relayd answer by a program that always says the same.
func agentEnv() []string {
	return []string{
		"RELAYD_AGENT_BACKEND=command", "RELAYD_AGENT_COMMAND_ARGV=/bin/sh,-c,cat >/dev/null; echo An answer.",
		"RELAYD_AGENT_QUIET=0s", "RELAYD_AGENT_BUDGET_AGENT_TURNS=0",
		"RELAYD_AGENT_BUDGET_THREAD_RUNS_PER_HOUR=1000000", "RELAYD_AGENT_BUDGET_RUNS_PER_HOUR=1000000",
		"RELAYD_AGENT_BUDGET_RUNS_PER_DAY=1000000", "RELAYD_AGENT_BUDGET_TOKENS_PER_HOUR=0",
		"RELAYD_AGENT_BUDGET_TOKENS_PER_DAY=0",
	}
}

// ask posts a question of a new browser and waits for the agent's answer. It
// returns how the question was acknowledged and how long the answer took.
func (s *stage) ask(ctx context.Context, r *reader, limit time.Duration) (receipt, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got, res := s.post(ctx, r.party, "question")
	if !res.served {
		return got, 0, fmt.Errorf("a question was refused: %s", res.code)
	}
	asked := time.Now()
	for {
		s.follow(ctx, r)
		if len(r.seen) > 0 && r.answered() {
			return got, time.Since(asked), nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return got, 0, fmt.Errorf("a question was not answered within %v", limit)
		}
	}
}

// awaitAnswers waits until the agent has answered every thread, and returns how
// long that took.
func (s *stage) awaitAnswers(ctx context.Context, readers []*reader, limit time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	started := time.Now()
	for _, r := range readers {
		for !r.answered() {
			s.follow(ctx, r)
			if !r.answered() && !pause(ctx, 10*time.Millisecond) {
				return 0, fmt.Errorf("thread %s was not answered within %v", r.token.Thread(), limit)
			}
		}
	}
	return time.Since(started), nil
}

// answered reports whether the newest message that the reader has seen is by
// hermes. A thread without any awaits no answer.
func (r *reader) answered() bool {
	n := len(r.seen)
	return n == 0 || r.seen[n-1].Author == string(chat.Hermes)
}
