package main

import (
	"context"
	"slices"
	"time"
)

func reloadTrial() trial {
	return trial{
		name: "reload", what: "relayd is told to reload (SIGHUP) hundreds of times a second and restarted (SIGTERM), under load",
		short: 3 * time.Second, long: 2 * time.Minute, drive: driveReload,
	}
}

const (
	reloadEvery  = 5 * time.Millisecond
	restartEvery = 700 * time.Millisecond
	// stopBound is how long a stop may take. Its requests take milliseconds, so
	// it must not come to wait for http.shutdown_timeout.
	stopBound = 3 * time.Second
)

func driveReload(ctx context.Context, s *stage) error {
	s.daemon.env = slices.Concat(raisedLimits(), agentEnv())
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	var h hangUps
	err := s.rounds(ctx, 5*time.Second, func(ctx context.Context, d time.Duration) error {
		t := s.begin(ctx, s.parties(s.many(8)), pace{
			writers: 2, write: 2 * time.Millisecond, read: 20 * time.Millisecond, reply: 20 * time.Millisecond,
		})
		err := s.reloadUntil(ctx, time.Now().Add(d), &h)
		t.finish()
		if err != nil {
			return err
		}
		took, err := s.awaitAnswers(ctx, t.readers, recoveryBound+requestTimeout)
		if err != nil {
			return err
		}
		h.unanswered = max(h.unanswered, took)
		return s.settle(ctx, t.readers, true)
	})
	if err != nil {
		return err
	}
	s.notef("%d reloads, %d restarts", h.reloads, h.restarts)
	s.allow(codeUnreached, codeExitThread)
	s.within("the longest stop", h.longest, stopBound)
	s.within("until the agent had answered every thread after the last restart", h.unanswered, recoveryBound)
	if n := len(s.report.verdict.standing); n > 0 {
		s.failf("%d messages were stored by a relayd that stopped without an answer to them", n)
	}
	if !s.daemon.logged("the configuration was reloaded") {
		s.failf("the log tells of no reload")
	}
	return nil
}

// hangUps counts the signals that relayd was sent.
type hangUps struct {
	reloads, restarts int
	longest           time.Duration // of the stops
	unanswered        time.Duration // until the agent had answered all
}

// reloadUntil reloads and restarts relayd until the time has come.
func (s *stage) reloadUntil(ctx context.Context, end time.Time, h *hangUps) error {
	restart := time.Now().Add(restartEvery)
	for ; time.Now().Before(end); h.reloads++ {
		if err := s.daemon.reload(); err != nil {
			return err
		}
		if !pause(ctx, reloadEvery) {
			return ctx.Err()
		}
		if time.Now().Before(restart) {
			continue
		}
		took, err := s.daemon.terminate()
		if err != nil {
			return err
		}
		h.longest = max(h.longest, took)
		if err := s.daemon.start(ctx); err != nil {
			return err
		}
		h.restarts++
		restart = time.Now().Add(restartEvery)
	}
	return nil
}
