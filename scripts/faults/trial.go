package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// trial is one kind of load or fault.
type trial struct {
	name        string
	what        string        // in one sentence
	short, long time.Duration // how long its load is kept up
	drive       func(context.Context, *stage) error
}

func allTrials() []trial {
	return []trial{
		slowTrial(), rhythmTrial(), diskTrial(), filesTrial(), watchTrial(), clockTrial(), killTrial(), reloadTrial(),
		limitsTrial(),
	}
}

func selectTrials(pattern *regexp.Regexp) []trial {
	return slices.DeleteFunc(allTrials(), func(t trial) bool { return !pattern.MatchString(t.name) })
}

// stage is where one trial plays. Its methods may be used by many goroutines.
type stage struct {
	plan
	programs programs
	dir      string        // of the trial
	root     string        // of relayd
	lasts    time.Duration // of the load
	random   *rand.Rand    // of the goroutine that drives the trial
	inside   []string      // what starts a command where relayd is, none for here
	made     int           // how many parties there are

	daemon *daemon
	client *client
	ledger *ledger
	tally  *tally
	report *report
}

// margin is how long a trial may take beyond the time of its load.
func (p plan) margin() time.Duration {
	if p.short {
		return 30 * time.Second
	}
	return 3 * time.Minute
}

// runTrials runs one trial after the other, says what came of each, and prints
// the table.
func runTrials(ctx context.Context, o options, trials []trial, out io.Writer) error {
	dir, err := os.MkdirTemp(o.dir, "relay-faults-")
	if err != nil {
		return fmt.Errorf("making a directory for the data: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs, err := findPrograms(ctx, o.bin, dir)
	if err != nil {
		return err
	}
	conditions, err := describeHost(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, seed %d, scale %g\n\n", conditions, o.seed, o.scale)
	var reports []*report
	for _, t := range trials {
		r := t.play(ctx, o.plan, programs, filepath.Join(dir, t.name))
		reports = append(reports, r)
		fmt.Fprintf(out, "%s\n", r.details())
	}
	if err := printTable(out, reports); err != nil {
		return err
	}
	return verdictOf(reports)
}

// play runs the trial and judges what came of it.
func (t trial) play(ctx context.Context, p plan, programs programs, dir string) *report {
	s := &stage{
		plan: p, programs: programs, dir: dir, root: filepath.Join(dir, "root"),
		lasts: p.lasts(t.short, t.long), random: rand.New(rand.NewPCG(p.seed, hashOf(t.name))),
		ledger: newLedger(), tally: newTally(), report: &report{name: t.name},
	}
	ctx, cancel := context.WithTimeout(ctx, s.lasts+p.margin())
	defer cancel()
	started := time.Now()
	if err := s.play(ctx, t.drive); err != nil {
		s.failf("%v", err)
	}
	s.report.took = time.Since(started)
	s.report.counts = s.tally.counts()
	if answers := s.report.answers(); answers > 0 {
		s.notef("%d answers of the agent", answers)
	}
	return s.report
}

func (s *stage) play(ctx context.Context, drive func(context.Context, *stage) error) error {
	if err := os.MkdirAll(s.root, 0o755); err != nil {
		return fmt.Errorf("making the root: %w", err)
	}
	s.daemon = &daemon{program: s.programs.relayd, root: s.root, dir: s.dir, admin: s.programs.admin}
	s.client = newClient(s.daemon.address)
	defer s.client.close()
	err := errors.Join(drive(ctx, s), ctx.Err())
	if died := s.daemon.died(); died != nil {
		err = errors.Join(err, died)
	}
	err = errors.Join(err, s.daemon.close())
	if err != nil || len(s.report.failures) > 0 {
		s.report.log = s.daemon.complaints()
	}
	return err
}

// failf records a bound that was passed.
func (s *stage) failf(format string, args ...any) {
	s.report.failures = append(s.report.failures, fmt.Sprintf(format, args...))
}

// allow fails the trial for every refusal with another code than these.
func (s *stage) allow(codes ...string) {
	for code, n := range s.tally.counts().refused {
		if !slices.Contains(codes, code) {
			s.failf("%d requests were refused with %s", n, code)
		}
	}
}

// notef records what was measured.
func (s *stage) notef(format string, args ...any) {
	s.report.notes = append(s.report.notes, fmt.Sprintf(format, args...))
}

// parties returns so many browsers that nobody else is.
func (s *stage) parties(n int) []party {
	parties := make([]party, n)
	for i := range parties {
		s.made++
		parties[i] = newParty(s.seed, s.made)
	}
	return parties
}

// rounds keeps up a load for the time of the trial, in rounds of at most some
// seconds with threads of their own, because a thread that grows without end
// would come to slow everything down.
func (s *stage) rounds(ctx context.Context, longest time.Duration, round func(context.Context, time.Duration) error) error {
	for left := s.lasts; left > 0; left -= longest {
		if err := round(ctx, min(left, longest)); err != nil {
			return err
		}
	}
	return nil
}

// within records what was measured and fails the trial when it passes its bound.
func (s *stage) within(what string, measured, bound time.Duration) {
	s.notef("%s %s (bound %v)", what, inMilliseconds(measured), bound)
	if measured > bound {
		s.failf("%s took %v, more than %v", what, measured.Round(time.Millisecond), bound)
	}
}

// pause waits, and reports whether ctx still lasts.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
