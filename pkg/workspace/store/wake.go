package store

import (
	"sync"

	"github.com/newos4/relay/pkg/workspace"
)

// wakes tells who waits for an owner's events that there are new ones.
type wakes struct {
	mu     sync.Mutex
	owners map[workspace.OwnerID]chan struct{}
}

func newWakes() *wakes { return &wakes{owners: make(map[workspace.OwnerID]chan struct{})} }

// next returns a channel that is closed when the next event of the owner is
// committed.
func (w *wakes) next(owner workspace.OwnerID) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch, ok := w.owners[owner]
	if !ok {
		ch = make(chan struct{})
		w.owners[owner] = ch
	}
	return ch
}

// publish wakes all who wait for the owner, unless last is 0: then there was no
// event.
func (w *wakes) publish(owner workspace.OwnerID, last int64) {
	if last == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch, ok := w.owners[owner]; ok {
		close(ch)
		delete(w.owners, owner)
	}
}
