package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

func watchTrial() trial {
	return trial{
		name: "watch", what: "the kernel has no file notifications to give at the start, and later has",
		short: time.Second, long: 30 * time.Second, drive: driveWatch,
	}
}

// Limits of the notifications that relayd may have, in its own name space.
const (
	noNotifications  = `echo 0 >/proc/sys/user/max_inotify_instances`
	allNotifications = `echo 128 >/proc/sys/user/max_inotify_instances`
)

const (
	pollsEvery = 2 * time.Second // how often relayd looks when it is not told
	watchSlack = 2500 * time.Millisecond
	toldBound  = 2 * time.Second // how soon an answer comes when the kernel tells
)

// driveWatch takes watch.rescan for the time of the trial.
func driveWatch(ctx context.Context, s *stage) error {
	rescan := s.lasts
	s.daemon.env = slices.Concat(raisedLimits(), agentEnv(), []string{"RELAYD_WATCH_RESCAN=" + rescan.String()})
	s.isolate(syscall.CLONE_NEWUSER, noNotifications)
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	readers, err := s.askBlind(ctx, min(pollsEvery, rescan)+watchSlack)
	if err != nil {
		return err
	}
	if err := s.freeNotifications(ctx, rescan+pollsEvery+watchSlack); err != nil {
		return err
	}
	told, err := s.askAll(ctx, "an answer after notifications were free again", toldBound)
	if err != nil {
		return err
	}
	s.allow()
	return s.settle(ctx, slices.Concat(readers, told), true)
}

// askBlind asks while relayd and chat must look for themselves.
func (s *stage) askBlind(ctx context.Context, bound time.Duration) ([]*reader, error) {
	readers, err := s.askAll(ctx, "an answer without notifications", bound)
	if err != nil {
		return nil, err
	}
	const warning = "the thread directory cannot be watched and is polled instead"
	if !s.daemon.logged(warning) || !s.daemon.logged("fs.inotify.max_user_instances") {
		s.failf("the log does not say that notifications are used up, and what to raise")
	}
	return readers, s.waitBlind(ctx, readers[0], bound)
}

// waitBlind lets chat poll --wait look for a reply that comes while it waits.
func (s *stage) waitBlind(ctx context.Context, r *reader, bound time.Duration) error {
	var waited time.Duration
	var failed error
	var waiting sync.WaitGroup
	waiting.Go(func() { waited, failed = s.awaitReply(ctx, r.party, r.cursor, 2*bound) })
	const head = 200 * time.Millisecond // for chat poll to have looked once
	pause(ctx, head)
	if res := s.reply(ctx, r.party, "reply", 0); !res.served {
		failed = errors.Join(failed, fmt.Errorf("chat reply: %s", res.code))
	}
	if waiting.Wait(); failed != nil {
		return failed
	}
	s.within("chat poll --wait without notifications", max(0, waited-head), bound)
	return nil
}

// askAll asks some questions at once and bounds the slowest answer.
func (s *stage) askAll(ctx context.Context, what string, bound time.Duration) ([]*reader, error) {
	readers := make([]*reader, s.many(5))
	times, failures := make([]time.Duration, len(readers)), make([]error, len(readers))
	var asking sync.WaitGroup
	for i, p := range s.parties(len(readers)) {
		readers[i] = &reader{party: p, cursor: 1}
		asking.Go(func() { _, times[i], failures[i] = s.ask(ctx, readers[i], bound+requestTimeout) })
	}
	asking.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	s.within("the slowest of "+what, slices.Max(times), bound)
	return readers, nil
}

// freeNotifications lets the kernel give notifications and waits until relayd
// has noticed.
func (s *stage) freeNotifications(ctx context.Context, bound time.Duration) error {
	argv := slices.Concat(s.inside, []string{"sh", "-c", allNotifications})
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("raising the limit of notifications: %w\n%s", err, out)
	}
	freed := time.Now()
	for !s.daemon.logged("watching the thread directory again") {
		if time.Since(freed) > bound+requestTimeout {
			return fmt.Errorf("relayd does not watch %v after it could", bound+requestTimeout)
		}
		if !pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	s.within("until relayd watched again", time.Since(freed), bound)
	return nil
}
