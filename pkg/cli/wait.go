package cli

import (
	"context"
	"errors"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// untilSignal returns a context that ends on SIGINT or SIGTERM.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}

// patience says how a poll waits.
type patience struct {
	// follow goes on after something has come.
	follow bool
	// limited ends the wait after limit.
	limited bool
	limit   time.Duration
}

func (p patience) waits() bool { return p.follow || p.limited }

// view is what a poll looks at.
type view interface {
	// refresh looks anew and reports whether there is something to show.
	refresh() (bool, error)
	// show prints what the last refresh found, be it nothing, and flushes it.
	show() error
}

// poll shows the view at once, or when there is something, or again and again.
func (s *session) poll(ctx context.Context, v view, p patience) error {
	if !p.waits() {
		if _, err := v.refresh(); err != nil {
			return err
		}
		return v.show()
	}
	ctx, stop := s.env.Interrupt(ctx)
	defer stop()
	if p.follow {
		return s.follow(ctx, v, p)
	}
	return s.await(ctx, v, p)
}

// await shows the view once, as soon as there is something to show. When the
// time is up it shows the nothing that there is.
func (s *session) await(ctx context.Context, v view, p patience) error {
	err := s.watch(ctx, p, v.refresh)
	if err != nil && !errors.Is(err, errTimeUp) {
		return err
	}
	if shown := v.show(); shown != nil {
		return shown
	}
	if err != nil {
		return nothing()
	}
	return nil
}

// follow shows all that comes until the user or the time limit ends it.
func (s *session) follow(ctx context.Context, v view, p patience) error {
	came := false
	err := s.watch(ctx, p, func() (bool, error) {
		for {
			found, err := v.refresh()
			if err != nil || !found {
				return false, err
			}
			if err := v.show(); err != nil {
				return false, err
			}
			came = true
		}
	})
	switch {
	case errors.Is(err, errInterrupted):
		return nil
	case errors.Is(err, errTimeUp) && came:
		return nil
	case errors.Is(err, errTimeUp):
		return nothing()
	}
	return err
}

// Ends of a wait.
var (
	errTimeUp      = errors.New("the time is up")
	errInterrupted = errors.New("interrupted before anything came")
)

// watch calls step at once, after every change of the threads, and now and then
// besides, since a thread that can be read again has not changed. It goes on
// until step is done or fails. Otherwise it returns errTimeUp or errInterrupted.
func (s *session) watch(ctx context.Context, p patience, step func() (done bool, err error)) error {
	if done, err := step(); done || err != nil {
		return err
	}
	limit, cancel := ctx, context.CancelFunc(func() {})
	if p.limited {
		limit, cancel = context.WithTimeout(ctx, p.limit)
	}
	defer cancel()
	// The feed begins with every thread that stands, so that nothing is missed
	// between the step above and its first look.
	feed := s.store.Feed(s.config.Watch.Rescan)
	feeding, stop := context.WithCancel(limit)
	var running sync.WaitGroup
	running.Go(func() { feed.Run(feeding) })
	defer running.Wait()
	defer stop()
	again := time.NewTicker(s.config.Watch.Rescan)
	defer again.Stop()
	for {
		select {
		case <-limit.Done():
			if ctx.Err() != nil {
				return errInterrupted
			}
			return errTimeUp
		case <-feed.Changes():
		case <-again.C:
		}
		if done, err := step(); done || err != nil {
			return err
		}
	}
}
