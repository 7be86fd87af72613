package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Numbers of threads and of messages in each.
const (
	fullThreads  = 500 // as many as the contract's limits allow
	fullMessages = 200
	postThreads  = 200
	fewMessages  = 10
)

// setup is everything that runs while it is measured.
type setup struct {
	programs programs

	full site // as many threads and messages as the limits allow
	few  site // threads that stay at 10 messages when they are posted to
	// Of these the messages are only read.
	shallow site // threads of 10 messages
	deep    site // threads of 200 messages

	pageFloor *process // answers as long as a page of 50 messages
	idleFloor *process // answers as long as one with nothing new
	files     fileFloor

	running []*process
}

// site is a relayd with its threads.
type site struct {
	threads
	*process
}

// newSetup builds the programs, makes the threads and starts all servers.
func newSetup(ctx context.Context, data string) (*setup, error) {
	s := new(setup)
	if err := s.start(ctx, data); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *setup) start(ctx context.Context, data string) (err error) {
	if s.programs, err = build(ctx, data); err != nil {
		return err
	}
	if err := s.startSites(ctx, data); err != nil {
		return err
	}
	if s.pageFloor, err = s.startFloor(ctx, newest); err != nil {
		return err
	}
	if s.idleFloor, err = s.startFloor(ctx, future); err != nil {
		return err
	}
	s.files, err = newFileFloor(filepath.Join(data, "floor"), postThreads)
	return err
}

func (s *setup) startSites(ctx context.Context, data string) error {
	// The limit keeps the threads, and so their files, as long as they are.
	limit := fmt.Sprintf("RELAYD_LIMITS_MESSAGES=%d", fewMessages)
	for _, start := range []struct {
		site              *site
		name              string
		threads, messages int
		env               []string
	}{
		{&s.full, "full", fullThreads, fullMessages, nil},
		{&s.few, "few", postThreads, fewMessages, []string{limit}},
		{&s.shallow, "shallow", postThreads, fewMessages, nil},
		{&s.deep, "deep", postThreads, fullMessages, nil},
	} {
		t, err := seedThreads(filepath.Join(data, start.name), start.threads, start.messages)
		if err != nil {
			return err
		}
		p, err := startRelayd(ctx, s.programs.relayd, t.root, start.env...)
		if err != nil {
			return err
		}
		s.running = append(s.running, p)
		*start.site = site{threads: t, process: p}
	}
	return nil
}

// startFloor starts a bare server whose answers are as long as those of a poll
// with that cursor.
func (s *setup) startFloor(ctx context.Context, since int64) (*process, error) {
	a, err := askOnce(ctx, s.full.addr, pollRequests(s.full.tokens[:1], since)[0])
	if err != nil {
		return nil, err
	}
	p, err := startHTTPFloor(ctx, len(a.body))
	if err != nil {
		return nil, err
	}
	s.running = append(s.running, p)
	return p, nil
}

// stop ends all servers.
func (s *setup) stop() {
	for _, p := range s.running {
		if err := p.stop(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: stopping a server: %v\n", err)
		}
	}
}
