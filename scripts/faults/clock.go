package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

func clockTrial() trial {
	return trial{
		name: "clock", what: "relayd's clock jumps by days and years, forward and back, under load and across restarts; that of chat does not",
		short: 4 * time.Second, long: time.Minute, drive: driveClock,
	}
}

const (
	day  = 24 * time.Hour
	year = 365 * day
	// answerBound is how soon the agent must answer, whatever the clock says.
	answerBound = 3 * time.Second
	// clockSlack is how far a new thread's first epoch may be from the clock.
	clockSlack = time.Minute
)

// driveClock keeps messages for ten years, because a clock that jumps ahead by
// more than the retention makes everything old, rightly.
func driveClock(ctx context.Context, s *stage) error {
	s.daemon.env = slices.Concat(raisedLimits(), agentEnv(), []string{"RELAYD_RETENTION_MAX_AGE=87600h"})
	c := &clock{}
	defer c.wait()
	s.daemon.wrap = c.wrap
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	steps := []time.Duration{day, 0, -day, 0, year, 0, -year, 0}
	slowest := time.Duration(0)
	err := s.rounds(ctx, max(4*time.Second, s.lasts/4), func(ctx context.Context, d time.Duration) error {
		t := s.begin(ctx, s.parties(s.many(4)), pace{
			writers: 2, write: 20 * time.Millisecond, read: 20 * time.Millisecond, reply: 50 * time.Millisecond,
		})
		defer t.finish()
		for _, step := range steps {
			took, r, err := s.step(ctx, c, step, d/time.Duration(len(steps)))
			if err != nil {
				return fmt.Errorf("with the clock %v ahead: %w", step, err)
			}
			slowest = max(slowest, took)
			t.readers = append(t.readers, r)
		}
		t.finish()
		return s.settle(ctx, t.readers, true)
	})
	if err != nil {
		return err
	}
	s.notef("steps of relayd's clock: %v; %d answers of the clock were changed", steps, c.changed.Load())
	s.allow(codeUnreached, codeExitThread)
	s.within("the slowest answer of the agent", slowest, answerBound)
	return s.daemon.close()
}

// step sets the clock, dates the files as its kernel would, makes sure that
// relayd lives by it and that the agent still answers, and restarts relayd.
func (s *stage) step(ctx context.Context, c *clock, ahead, d time.Duration) (time.Duration, *reader, error) {
	c.ahead.Store(int64(ahead))
	if err := s.dateFiles(time.Now().Add(ahead)); err != nil {
		return 0, nil, err
	}
	r := &reader{party: s.parties(1)[0], cursor: 1}
	got, took, err := s.ask(ctx, r, answerBound+requestTimeout)
	if err != nil {
		return 0, nil, err
	}
	if off := time.Until(time.UnixMilli(got.Epoch).Add(-ahead)).Abs(); off > clockSlack {
		return 0, nil, fmt.Errorf("relayd's epoch is %v off its clock", off)
	}
	pause(ctx, d/2)
	if _, err := s.daemon.terminate(); err != nil {
		return 0, nil, err
	}
	if err := s.daemon.start(ctx); err != nil {
		return 0, nil, err
	}
	pause(ctx, d/2)
	return took, r, ctx.Err()
}

// dateFiles gives every thread's file a time, as a write at that time would.
func (s *stage) dateFiles(at time.Time) error {
	files, err := filepath.Glob(filepath.Join(s.root, "spaces/newos4/data/chat/*.json"))
	if err != nil {
		return fmt.Errorf("listing the threads: %w", err)
	}
	for _, file := range files {
		if err := os.Chtimes(file, at, at); err != nil {
			return fmt.Errorf("dating a thread: %w", err)
		}
	}
	return nil
}
