package main

import (
	"context"
	"fmt"
	"time"
)

func rhythmTrial() trial {
	return trial{
		name: "rhythm", what: "500 browsers poll every 30 s (5 s in the short form), post now and then, and are answered by chat reply",
		short: 5 * time.Second, long: 3 * time.Minute, drive: driveRhythm,
	}
}

const (
	rhythmBrowsers = 500
	// rhythmReply is the time between two runs of chat reply.
	rhythmReply = 200 * time.Millisecond
	// postEach is after how many polls a browser posts: less often than the
	// contract's limits allow, which hold in this trial.
	postEach = 4
	// rhythmBound is what the slowest percent of the requests may take.
	rhythmBound = 2 * time.Second
)

// driveRhythm runs with the contract's own limits, which refuse nothing at the
// contract's own rhythm.
func driveRhythm(ctx context.Context, s *stage) error {
	every := 30 * time.Second // section 9
	if s.short {
		every = 5 * time.Second
	}
	n := min(s.many(rhythmBrowsers), rhythmBrowsers) // limits.threads
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	before, err := cpuTime(s.daemon.pid())
	if err != nil {
		return err
	}
	started := time.Now()
	parties := s.parties(n)
	t := s.browse(ctx, parties, every)
	pause(ctx, s.lasts)
	t.finish()
	elapsed := time.Since(started)
	after, err := cpuTime(s.daemon.pid())
	if err != nil {
		return err
	}
	s.notef("%d browsers, a poll each %v, relayd took %.1f %% of a core", n, every,
		100*(after-before).Seconds()/elapsed.Seconds())
	s.allow()
	s.judgeRhythm()
	return s.settle(ctx, t.readers, false)
}

// browse lets every browser poll in its own moment of the rhythm.
func (s *stage) browse(ctx context.Context, parties []party, every time.Duration) *traffic {
	ctx, stop := context.WithCancel(ctx)
	t := &traffic{s: s, stop: stop}
	posted := make(chan party, len(parties))
	for i, p := range parties {
		r := &reader{party: p, cursor: 1}
		t.readers = append(t.readers, r)
		offset := every * time.Duration(i) / time.Duration(len(parties))
		t.running.Go(func() { t.browse(ctx, r, offset, every, posted) })
	}
	t.running.Go(func() { t.answer(ctx, posted) })
	return t
}

// browse is one browser: it posts, and polls in its rhythm.
func (t *traffic) browse(ctx context.Context, r *reader, offset, every time.Duration, posted chan<- party) {
	if !pause(ctx, offset) {
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if i%postEach == 0 {
			t.s.post(ctx, r.party, "question")
			select {
			case posted <- r.party:
			default: // more wait for an answer than are given
			}
		}
		t.s.follow(ctx, r)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// answer answers browsers that have posted, one after the other.
func (t *traffic) answer(ctx context.Context, posted <-chan party) {
	for pause(ctx, rhythmReply) {
		select {
		case p := <-posted:
			t.s.reply(ctx, p, "answer", 0)
		case <-ctx.Done():
			return
		}
	}
}

// judgeRhythm states how fast requests were served and that all of them were.
func (s *stage) judgeRhythm() {
	for _, kind := range []string{polls, posts, replies} {
		served, _ := s.tally.of(kind)
		s.notef("%d of %s, median %s", served, kind, inMilliseconds(s.tally.percentile(kind, 0.5)))
		s.within(fmt.Sprintf("99 %% of %s", kind), s.tally.percentile(kind, 0.99), rhythmBound)
		if served == 0 {
			s.failf("no %s was served", kind)
		}
	}
	if n := s.tally.counts().unknown; n > 0 {
		s.failf("%d requests were cut off", n)
	}
}
