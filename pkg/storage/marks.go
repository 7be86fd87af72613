package storage

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/chat"
)

// marks remember how far the epochs of removed threads had come, so that a
// thread that starts anew stays ahead of every cursor that a browser may still
// hold, also after the clock stepped back.
//
// One floor covers all removals whose epochs lay in the past; it never runs
// ahead of the clock that wrote it, so it delays nobody. Only a thread that ran
// ahead, after a clock that once jumped, is remembered by name, until the clock
// has caught up.
type marks struct {
	Floor   int64                   `json:"floor"` // ms
	Threads map[chat.ThreadID]int64 `json:"threads"`
}

func (m marks) floorOf(id chat.ThreadID) int64 { return max(m.Floor, m.Threads[id]) }

// add records that a thread ended at epoch and reports whether that changed
// anything. All epochs are in milliseconds.
func (m *marks) add(id chat.ThreadID, epoch, now int64) bool {
	changed := false
	for known, at := range m.Threads {
		if at <= now {
			delete(m.Threads, known)
			m.Floor, changed = max(m.Floor, at), true
		}
	}
	if epoch <= m.floorOf(id) {
		return changed
	}
	if epoch <= now {
		m.Floor = epoch
		return true
	}
	if m.Threads == nil {
		m.Threads = make(map[chat.ThreadID]int64)
	}
	m.Threads[id] = epoch
	return true
}

// readMarks returns the marks of the directory, empty ones if it has none.
func (s *Store) readMarks(dir *directory) (marks, error) {
	data, err := dir.read(marksName)
	if isMissing(err) {
		return marks{}, nil
	}
	if err != nil {
		return marks{}, failure(fmt.Errorf("reading %s: %w", marksName, err))
	}
	var m marks
	if err := json.Unmarshal(data, &m); err != nil {
		// Only a clock that steps back makes the marks matter; refusing every
		// new thread would be the greater harm.
		s.warnings.once(s.opts.Logger, "the epochs of removed threads cannot be read and start anew", "file", marksName, "error", err)
		return marks{}, nil
	}
	return m, nil
}

// mark makes durable that a thread, whose lock the caller holds, ended at epoch.
func (s *Store) mark(ctx context.Context, g *guard, id chat.ThreadID, epoch int64) error {
	unlock, err := s.lockShared(ctx, g.dir, marksByte)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := s.readMarks(g.dir)
	if err != nil {
		return err
	}
	if !m.add(id, epoch, s.now()) {
		return nil
	}
	data, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return failure(fmt.Errorf("encoding %s: %w", marksName, err))
	}
	if err := s.replaceFile(g.dir, marksName, append(data, '\n')); err != nil {
		return err
	}
	return s.settle(g.dir)
}
