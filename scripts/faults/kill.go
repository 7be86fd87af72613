package main

import (
	"context"
	"slices"
	"time"
)

func killTrial() trial {
	return trial{
		name: "kill", what: "relayd and chat are killed (SIGKILL) at any moment and started anew, under load",
		short: 4 * time.Second, long: 2 * time.Minute, drive: driveKill,
	}
}

// recoveryBound is how soon after a kill the agent must have answered all.
const recoveryBound = 5 * time.Second

// driveKill kills relayd again and again, after a time that is different each
// time, so that over many rounds every step of a write is hit.
func driveKill(ctx context.Context, s *stage) error {
	s.daemon.env = slices.Concat(raisedLimits(), agentEnv())
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	kills, slowest := 0, time.Duration(0)
	err := s.rounds(ctx, 5*time.Second, func(ctx context.Context, d time.Duration) error {
		t := s.begin(ctx, s.parties(s.many(8)), pace{
			writers: 2, write: 2 * time.Millisecond, read: 20 * time.Millisecond,
			reply: 10 * time.Millisecond, killFrom: time.Millisecond, killTo: 30 * time.Millisecond,
		})
		n, err := s.killUntil(ctx, time.Now().Add(d))
		t.finish()
		if kills += n; err != nil {
			return err
		}
		took, err := s.awaitAnswers(ctx, t.readers, recoveryBound+requestTimeout)
		if err != nil {
			return err
		}
		slowest = max(slowest, took)
		return s.settle(ctx, t.readers, true)
	})
	if err != nil {
		return err
	}
	s.allow(codeUnreached, codeExitThread)
	s.within("until the agent had answered every thread after the last kill", slowest, recoveryBound)
	s.notef("%d kills of relayd, every third chat reply killed", kills)
	if served, _ := s.tally.of(posts); served < kills {
		s.failf("only %d posts were served between %d kills", served, kills)
	}
	return nil
}

// killUntil kills relayd and starts it anew until the time has come.
func (s *stage) killUntil(ctx context.Context, end time.Time) (kills int, err error) {
	for ; time.Now().Before(end); kills++ {
		const shortest, longest = 20 * time.Millisecond, 250 * time.Millisecond
		if !pause(ctx, shortest+time.Duration(s.random.Int64N(int64(longest-shortest)))) {
			return kills, ctx.Err()
		}
		if err := s.daemon.kill(); err != nil {
			return kills, err
		}
		if err := s.daemon.start(ctx); err != nil {
			return kills, err
		}
	}
	return kills, nil
}
