package store

import (
	"sync"
	"time"

	"github.com/newos4/relay/pkg/workspace"
)

// tailLife is for how long an answer of "nothing new" is believed without asking
// the database again. It bounds how late a poll sees the events of another
// process; those of this one are known at once.
const tailLife = time.Second

// wakes tells who waits for an owner's events that there are new ones, and knows
// up to where there are none, so that a poll that finds nothing costs nothing.
type wakes struct {
	now func() time.Time

	mu     sync.Mutex
	round  int64 // counts what was published
	owners map[workspace.OwnerID]*tail
}

// tail is the end of one owner's log.
type tail struct {
	// next is closed when there are new events, or nil when nobody waits.
	next chan struct{}
	// seq is a sequence after which there was nothing at the time checked. The
	// zero time means that nothing is known.
	seq     int64
	checked time.Time
	// round is when the last event of the owner was published.
	round int64
}

func newWakes(now func() time.Time) *wakes {
	return &wakes{now: now, owners: make(map[workspace.OwnerID]*tail)}
}

func (w *wakes) of(owner workspace.OwnerID) *tail {
	t, ok := w.owners[owner]
	if !ok {
		t = &tail{}
		w.owners[owner] = t
	}
	return t
}

// next returns a channel that is closed when the next event of the owner is
// committed.
func (w *wakes) next(owner workspace.OwnerID) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.of(owner)
	if t.next == nil {
		t.next = make(chan struct{})
	}
	return t.next
}

// publish wakes all who wait for the owner, unless last is 0: then there was no
// event.
func (w *wakes) publish(owner workspace.OwnerID, last int64) {
	if last == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	t := w.of(owner)
	t.round, t.checked = w.round, time.Time{}
	if t.next != nil {
		close(t.next)
		t.next = nil
	}
}

// begin marks the beginning of a look at the log.
func (w *wakes) begin() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.round
}

// remember keeps that a look that began at the given mark found nothing after
// seq, unless events came meanwhile.
func (w *wakes) remember(owner workspace.OwnerID, seq, mark int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.of(owner); t.round <= mark {
		t.seq, t.checked = seq, w.now()
	}
}

// nothingAfter reports whether it is known that there is nothing after seq.
func (w *wakes) nothingAfter(owner workspace.OwnerID, seq int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.owners[owner]
	return ok && !t.checked.IsZero() && seq == t.seq && w.now().Sub(t.checked) < tailLife
}
