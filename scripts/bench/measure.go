package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// probe is one thing that each round measures.
type probe struct {
	name string
	// pace measures for a time and returns operations per second.
	pace func(ctx context.Context, d time.Duration) (float64, error)
}

// Names of the probes.
const (
	pagePolls    = "page polls"
	pageFloor    = "page floor"
	idlePolls    = "idle polls"
	idleFloor    = "idle floor"
	shallowPolls = "polls of threads of 10"
	deepPolls    = "polls of threads of 200"
	fewPosts     = "posts to threads of 10"
	fewFloor     = "files as of threads of 10"
	fullPosts    = "posts to threads of 200"
	fullFloor    = "files as of threads of 200"
	mixed        = "mix"
)

// observations are what a run saw.
type observations struct {
	// rates are the operations per second of each probe, a value per round.
	rates   map[string][]float64
	memory  memory
	replies []time.Duration
}

// measure runs all probes for the planned number of rounds. Rounds alternate
// their order, so that what goes up or down during the run favours nobody.
func (s *setup) measure(ctx context.Context, p plan) (observations, error) {
	o := observations{rates: make(map[string][]float64)}
	probes, err := s.probes()
	if err != nil {
		return o, err
	}
	for range p.rounds {
		for _, probe := range probes {
			rate, err := probe.pace(ctx, p.slice)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return o, fmt.Errorf("measuring %s: %w", probe.name, err)
			}
			o.rates[probe.name] = append(o.rates[probe.name], rate)
		}
		slices.Reverse(probes)
	}
	if o.memory, err = s.fullMemory(ctx); err != nil {
		return o, err
	}
	o.replies, err = s.timeReplies(ctx, p.replies)
	return o, err
}

// probes returns the probes, each beside its floor.
func (s *setup) probes() ([]probe, error) {
	fewSize, err := s.few.fileSize()
	if err != nil {
		return nil, err
	}
	fullSize, err := s.full.fileSize()
	if err != nil {
		return nil, err
	}
	tokens, pages := s.full.tokens, pollRequests(s.full.tokens, newest)
	idle, mix := pollRequests(tokens, future), mixRequests(tokens)
	// Both answers hold the newest ten messages.
	shallow := pollRequests(s.shallow.tokens, s.shallow.epochs[0]-1)
	deep := pollRequests(s.deep.tokens, s.deep.epochs[fullMessages-fewMessages]-1)
	return []probe{
		{pagePolls, overHTTP(s.full.process, pages)},
		{pageFloor, overHTTP(s.pageFloor, pages)},
		{idlePolls, overHTTP(s.full.process, idle)},
		{idleFloor, overHTTP(s.idleFloor, idle)},
		{shallowPolls, overHTTP(s.shallow.process, shallow)},
		{deepPolls, overHTTP(s.deep.process, deep)},
		{fewPosts, overHTTP(s.few.process, postRequests(s.few.tokens))},
		{fewFloor, s.overFiles(fewSize)},
		{fullPosts, overHTTP(s.full.process, postRequests(tokens[:postThreads]))},
		{fullFloor, s.overFiles(fullSize)},
		{mixed, overHTTP(s.full.process, mix)},
	}, nil
}

func overHTTP(p *process, requests [][]byte) func(context.Context, time.Duration) (float64, error) {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return paceHTTP(ctx, p.addr, d, requests)
	}
}

func (s *setup) overFiles(size int) func(context.Context, time.Duration) (float64, error) {
	return func(_ context.Context, d time.Duration) (float64, error) { return s.files.pace(d, size) }
}

// fullMemory returns the memory of the relayd whose threads were all polled and
// posted to, and makes sure that they were.
func (s *setup) fullMemory(ctx context.Context) (memory, error) {
	requests := slices.Concat(pollRequests(s.full.tokens, newest), postRequests(s.full.tokens), pollRequests(s.full.tokens, newest))
	for _, request := range requests {
		if _, err := askOnce(ctx, s.full.addr, request); err != nil {
			return memory{}, err
		}
	}
	return memoryOf(s.full.cmd.Process.Pid)
}

// timeReplies runs chat reply so often, on the threads of a relayd that runs.
func (s *setup) timeReplies(ctx context.Context, runs int) ([]time.Duration, error) {
	var took []time.Duration
	for i := range runs {
		d, err := timeReply(ctx, s.programs.chat, s.full.root, string(s.full.tokens[i].Thread()), sampleText())
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, nil
}
