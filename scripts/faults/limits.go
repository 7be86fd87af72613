package main

import (
	"context"
	"time"
)

func limitsTrial() trial {
	return trial{
		name: "limits", what: "clients of one address post as fast as they can, under the contract's own limits",
		short: time.Second, long: 20 * time.Second, drive: driveLimits,
	}
}

// addressPosts is what the contract allows one address in ten minutes.
const addressPosts = 40

func driveLimits(ctx context.Context, s *stage) error {
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	parties := s.parties(s.many(8))
	for i := range parties {
		parties[i].from = parties[0].from
	}
	t := s.begin(ctx, parties, pace{writers: 2, write: time.Millisecond, read: 20 * time.Millisecond})
	if pause(ctx, s.lasts/2); ctx.Err() == nil {
		if _, err := s.daemon.terminate(); err != nil {
			return err
		}
		if err := s.daemon.start(ctx); err != nil {
			return err
		}
	}
	pause(ctx, s.lasts/2)
	t.finish()
	served, refused := s.tally.of(posts)
	s.notef("of one address %d posts were served and %d refused, before and after a restart", served, refused)
	if served > addressPosts {
		s.failf("%d posts of one address were served, more than %d", served, addressPosts)
	}
	s.allow(codeRateLimited, codeUnreached)
	if s.tally.counts().refused[codeRateLimited] == 0 {
		s.failf("no post was refused by a limit")
	}
	return s.settle(ctx, t.readers, false)
}
