package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// tempMaxAge is how old a temporary file must be before the sweep looks whether
// it is the rest of a crash. It spares the locks of writers at work.
const tempMaxAge = time.Hour

// sweepLockWait is how long a sweep waits for a thread in use; a later sweep
// comes by again.
const sweepLockWait = time.Second

// SweepOptions vary a sweep.
type SweepOptions struct {
	// DryRun changes nothing and reports what a sweep would do.
	DryRun bool
}

// SweepReport says what a sweep did.
type SweepReport struct {
	// Threads is how many were looked at.
	Threads int
	// Messages is how many were dropped, those of removed threads included.
	Messages int
	// Removed are the threads of which nothing was kept.
	Removed []chat.ThreadID
	// Shortened are the threads that lost some messages.
	Shortened []chat.ThreadID
	// Busy are the threads whose lock was held throughout.
	Busy []chat.ThreadID
	// Corrupt are the files that are no sound thread; they were left alone.
	Corrupt []Fault
	// Temporary is how many abandoned temporary files were removed.
	Temporary int
}

// Sweep drops what the retention does not keep from every thread, removes
// threads of which nothing is left, and clears away temporary files that a
// crash left behind. It may run beside any number of writers and other sweeps.
// A failure on one thread does not keep it from the others; failures are joined
// in the error. Contract: section 4.
func (s *Store) Sweep(ctx context.Context, opts SweepOptions) (SweepReport, error) {
	var report SweepReport
	ids, err := s.Threads()
	if err != nil {
		return report, err
	}
	keep := s.limits.Load().Retention
	var failures []error
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return report, errors.Join(append(failures, context.Cause(ctx))...)
		}
		report.Threads++
		if err := s.sweepThread(ctx, id, keep, opts.DryRun, &report); err != nil {
			failures = append(failures, fmt.Errorf("sweeping thread %s: %w", id, err))
		}
	}
	if err := s.sweepTemporary(ctx, opts.DryRun, &report); err != nil {
		failures = append(failures, fmt.Errorf("sweeping temporary files: %w", err))
	}
	return report, errors.Join(failures...)
}

// sweepThread handles one thread. Most have nothing to drop, and need no lock
// to know it.
func (s *Store) sweepThread(ctx context.Context, id chat.ThreadID, keep chat.Retention, dryRun bool, report *SweepReport) error {
	st, err := s.load(id)
	if err != nil || st == nil {
		return report.noteFailure(id, err)
	}
	drop, gone := st.excess(s.now(), keep)
	if drop == 0 && !gone && !s.needsDate(st) {
		return nil
	}
	if dryRun {
		report.note(id, drop, gone)
		return nil
	}
	g, err := s.lockThread(ctx, id, sweepLockWait)
	if errors.Is(err, errLockWait) {
		report.Busy = append(report.Busy, id)
		return nil
	}
	if err != nil {
		return err
	}
	defer g.unlock()
	return s.sweepLocked(ctx, g, id, keep, report)
}

func (st *state) excess(now int64, keep chat.Retention) (drop int, gone bool) {
	return st.tail.Excess(now, st.written(), keep)
}

// written is when the file was last written, in epoch milliseconds.
func (st *state) written() int64 { return st.identity.mtime / int64(time.Millisecond) }

// needsDate reports whether the thread ran ahead with a clock that was wrong,
// and its file's time with it. Such a thread ages from its file's time, so that
// time must not lie in the future as well.
func (s *Store) needsDate(st *state) bool {
	return st.tail.FromTheFuture(s.now()) && st.written() > s.now()
}

// sweepLocked looks again under the lock and does what is to be done.
func (s *Store) sweepLocked(ctx context.Context, g *guard, id chat.ThreadID, keep chat.Retention, report *SweepReport) error {
	thread, st, err := s.readLocked(g, id)
	if err != nil || thread == nil {
		return report.noteFailure(id, err)
	}
	drop, gone := st.excess(s.now(), keep)
	switch {
	case gone:
		err = s.remove(ctx, g, id, thread.LastEpoch())
	case drop > 0:
		err = s.shorten(g, id, thread.Drop(drop), st.identity)
	case s.needsDate(st):
		err = s.date(g, id)
	}
	if err == nil {
		report.note(id, drop, gone)
	}
	return err
}

// remove deletes the thread's file, once the epoch that it had come to is safe.
func (s *Store) remove(ctx context.Context, g *guard, id chat.ThreadID, epoch int64) error {
	if err := s.mark(ctx, g, id, epoch); err != nil {
		return err
	}
	if err := s.step("remove"); err != nil {
		return failure(err)
	}
	if err := g.dir.remove(fileName(id)); err != nil {
		return failure(fmt.Errorf("removing a thread: %w", err))
	}
	s.cache.drop(id)
	return s.settle(g.dir)
}

func (s *Store) shorten(g *guard, id chat.ThreadID, thread *chat.Thread, before identity) error {
	if err := s.replace(g, id, thread, before, g.dir.rename); err != nil {
		return err
	}
	return s.settle(g.dir)
}

// date lets the thread's file be of now.
func (s *Store) date(g *guard, id chat.ThreadID) error {
	if err := g.dir.setModified(fileName(id), s.opts.Now().UnixNano()); err != nil {
		return failure(fmt.Errorf("dating a thread from the future: %w", err))
	}
	return nil
}

// settle makes the directory's changes durable.
func (s *Store) settle(dir *directory) error {
	if err := dir.sync.wait(); err != nil {
		return failure(fmt.Errorf("syncing the thread directory: %w", err))
	}
	return nil
}

// sweepTemporary removes what writers left behind that died in mid-write.
func (s *Store) sweepTemporary(ctx context.Context, dryRun bool, report *SweepReport) error {
	names, err := regularNames(s.path, isTempName)
	if err != nil || len(names) == 0 {
		return ignoreMissing(err)
	}
	dir, err := s.writableDir()
	if err != nil {
		return err
	}
	// The times of files are the kernel's, so they are compared with its clock.
	limit := time.Now().Add(-tempMaxAge).UnixNano()
	for _, name := range names {
		var st unix.Stat_t
		if dir.stat(name, &st) != nil || !isRegular(&st) || st.Mtim.Nano() > limit {
			continue
		}
		if dryRun {
			report.Temporary++
			continue
		}
		if err := s.removeTemporary(ctx, name, report); err != nil {
			return err
		}
	}
	return nil
}

// removeTemporary removes a temporary file under the lock that its writer holds
// until it is renamed. A file may look old and be at work all the same: a clock
// that jumps ahead, or one of another host, makes every file old.
func (s *Store) removeTemporary(ctx context.Context, name string, report *SweepReport) error {
	g, err := s.lockWriter(ctx, name)
	if errors.Is(err, errLockWait) {
		return nil // a later sweep comes by again
	}
	if err != nil {
		return err
	}
	defer g.unlock()
	err = g.dir.remove(name)
	if isMissing(err) {
		return nil // its writer was at work and is done
	}
	if err != nil {
		return failure(err)
	}
	report.Temporary++
	return nil
}

// lockWriter takes the lock under which a temporary file of that name is written:
// its thread's, or that of the marks.
func (s *Store) lockWriter(ctx context.Context, temp string) (*guard, error) {
	stem := strings.TrimSuffix(strings.TrimPrefix(temp, "."), tempSuffix)
	if dot := strings.LastIndexByte(stem, '.'); dot >= 0 {
		if id, ok := threadOf(stem[:dot]); ok {
			return s.lockThread(ctx, id, sweepLockWait)
		}
	}
	dir, err := s.writableDir()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, sweepLockWait, errLockWait)
	defer cancel()
	unlock, err := s.lockByte(ctx, dir, marksByte)
	if err != nil {
		return nil, err
	}
	return &guard{dir: dir, unlock: unlock}, nil
}

func isTempName(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, tempSuffix)
}

func ignoreMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

func (r *SweepReport) note(id chat.ThreadID, dropped int, gone bool) {
	r.Messages += dropped
	switch {
	case gone:
		r.Removed = append(r.Removed, id)
	case dropped > 0:
		r.Shortened = append(r.Shortened, id)
	}
}

// noteFailure files a corrupt thread in the report and returns other errors.
func (r *SweepReport) noteFailure(id chat.ThreadID, err error) error {
	if err == nil || chat.CodeOf(err) != chat.CodeCorrupt {
		return err
	}
	r.Corrupt = append(r.Corrupt, Fault{Thread: id, Err: err})
	return nil
}
