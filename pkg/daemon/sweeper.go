package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/metrics"
	"github.com/newos4/relay/pkg/storage"
)

// sweepGrace is how late a sweep may be before the daemon is not well: a sweep
// of many threads takes its time.
const sweepGrace = time.Hour

// sweeper sweeps now and then, and remembers how it went.
type sweeper struct {
	store    *storage.Store
	schedule cron.Schedule
	log      *slog.Logger
	metrics  *metrics.Metrics
	now      func() time.Time

	mu    sync.Mutex
	began time.Time // when run was called
	last  time.Time // when the last sweep ended, the zero time before the first
	err   error     // of the last sweep
}

func newSweeper(store *storage.Store, schedule string, log *slog.Logger, m *metrics.Metrics) (*sweeper, error) {
	parsed, err := config.ParseSchedule(schedule)
	if err != nil {
		return nil, fmt.Errorf("reading retention.schedule: %w", err)
	}
	return &sweeper{store: store, schedule: parsed, log: log, metrics: m, now: time.Now}, nil
}

// clockLook is how often the clock is looked at between two sweeps, in case it was
// set.
const clockLook = time.Minute

// run sweeps at once and whenever the schedule says, until ctx ends. The library's
// own runner would wait for a time that a clock which was ahead had announced,
// however long after the clock was set right.
func (s *sweeper) run(ctx context.Context) {
	s.begin()
	s.sweep(ctx)
	before := s.wallClock()
	next := s.schedule.Next(before)
	for {
		wait := clockLook
		if !next.IsZero() {
			wait = min(max(next.Sub(before), 0), clockLook)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		now := s.wallClock()
		switch {
		case now.Before(before): // it was set back
			next = s.schedule.Next(now)
		case !next.IsZero() && !now.Before(next):
			s.sweep(ctx)
			now = s.wallClock()
			next = s.schedule.Next(now)
		}
		before = now
	}
}

// wallClock is the time that schedules are about, in UTC. It is compared by what
// the clock shows and not by how long ago it was.
func (s *sweeper) wallClock() time.Time { return s.now().Round(0).UTC() }

func (s *sweeper) sweep(ctx context.Context) {
	report, err := s.store.Sweep(ctx, storage.SweepOptions{})
	if ctx.Err() != nil {
		return // cut short by the stop, which says nothing about the threads
	}
	if err != nil {
		s.log.Error("sweeping failed in part", "error", err)
	}
	for _, c := range report.Corrupt {
		s.log.Error("a thread file is corrupt and was left alone", "thread", string(c.Thread), "error", c.Err)
	}
	s.log.Info("swept", "threads", report.Threads, "removed", len(report.Removed), "shortened", len(report.Shortened),
		"messages", report.Messages, "busy", len(report.Busy), "corrupt", len(report.Corrupt), "temporary", report.Temporary)
	ended := s.now()
	s.metrics.Swept(metrics.Sweep{
		Failed: err != nil, Removed: len(report.Removed), Shortened: len(report.Shortened),
		Messages: report.Messages, Corrupt: len(report.Corrupt),
	}, ended)
	s.end(ended, err)
}

func (s *sweeper) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = s.now()
}

func (s *sweeper) end(at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.err = at, err
}

// check reports how the last sweep went and fails if it did badly or if the next
// one is overdue.
func (s *sweeper) check() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return "", fmt.Errorf("the last sweep failed in part: %w", s.err)
	}
	from, detail := s.last, "last at "+s.last.UTC().Format(time.RFC3339)
	if s.last.IsZero() {
		from, detail = s.began, "the first one is under way"
	}
	// A schedule may name a day that never comes, and then nothing is due. How long
	// ago it was does not depend on a clock that was set meanwhile.
	if due := s.schedule.Next(from.UTC()); !due.IsZero() && s.now().Sub(from) > due.Sub(from)+sweepGrace {
		return "", errors.New("no sweep has ended since it was due at " + due.UTC().Format(time.RFC3339))
	}
	return detail, nil
}
