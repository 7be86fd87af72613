package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/storage"
)

// checkTimeout bounds how long one look at the daemon's health takes.
const checkTimeout = 5 * time.Second

// minFreeBytes is the room on the disk below which the daemon calls itself not
// ready: a few threads at the contract's limits, each of which stands twice
// while it is written.
const minFreeBytes = 32 << 20

// health tells whether the parts of the daemon work.
type health struct {
	store  prober
	feed   pinger
	sweeps interface{ check() (string, error) }

	wanted chan struct{} // holds one signal after next was made
	mu     sync.Mutex
	next   *round // nil while nobody asks
}

// round is one look at the storage for all who asked before it began.
type round struct {
	done chan struct{}
	// Once done is closed:
	stored  error // why nothing can be stored
	disk    storage.FileSystem
	diskErr error
}

// prober is what health needs of the storage.
type prober interface {
	Probe() error
	FileSystem() (storage.FileSystem, error)
}

// pinger is what health needs of the change feed.
type pinger interface {
	Ping(ctx context.Context) error
	Status() storage.FeedStatus
}

func newHealth(store prober, feed pinger, sweeps *sweeper) *health {
	return &health{store: store, feed: feed, sweeps: sweeps, wanted: make(chan struct{}, 1)}
}

// run looks at the storage for whoever asks, until ctx ends. There is one look at
// a time, whose result is that of all who wait for it: however many ask, they
// neither pile up behind a slow disk nor keep it busy.
func (h *health) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wanted:
		}
		h.mu.Lock()
		current := h.next
		h.next = nil
		h.mu.Unlock()
		if current == nil {
			continue // the round before took in those who had signalled
		}
		current.stored = h.store.Probe()
		current.disk, current.diskErr = h.store.FileSystem()
		close(current.done)
	}
}

// join returns the next look to begin.
func (h *health) join() *round {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil {
		h.next = &round{done: make(chan struct{})}
	}
	select {
	case h.wanted <- struct{}{}:
	default: // it was signalled before
	}
	return h.next
}

// errSilent is the state of a storage that does not come back.
var errSilent = errors.New("the storage does not answer")

// look looks at the storage; with ctx all of it is errSilent.
func (h *health) look(ctx context.Context) *round {
	joined := h.join()
	select {
	case <-joined.done:
		return joined
	case <-ctx.Done():
		return &round{stored: errSilent, diskErr: errSilent}
	}
}

// answers returns why the daemon should be started anew: its storage or its
// watcher hangs. A storage that answers with an error is not mended by that.
func (h *health) answers(ctx context.Context) error {
	if seen := h.look(ctx); errors.Is(seen.stored, errSilent) {
		return seen.stored
	}
	return h.feed.Ping(ctx)
}

// checkup is the answer of /readyz.
type checkup struct {
	Ready  bool             `json:"ready"`
	Checks map[string]check `json:"checks"`
}

// check is one part of a checkup.
type check struct {
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitzero"`
	// Error says what is wrong with a part that is not in order.
	Error string `json:"error,omitzero"`
}

// check looks at every part.
func (h *health) check(ctx context.Context) checkup {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	result := checkup{Ready: true, Checks: make(map[string]check)}
	watched, watchErr := h.checkWatcher(ctx) // before the storage has used up the time
	seen := h.look(ctx)
	for name, look := range map[string]func() (string, error){
		"storage": func() (string, error) { return "", seen.stored },
		"watcher": func() (string, error) { return watched, watchErr },
		"sweep":   h.sweeps.check,
		"disk":    seen.checkDisk,
	} {
		detail, err := look()
		c := check{OK: err == nil, Detail: detail}
		if err != nil {
			c.Error, result.Ready = err.Error(), false
		}
		result.Checks[name] = c
	}
	return result
}

func (h *health) checkWatcher(ctx context.Context) (string, error) {
	if err := h.feed.Ping(ctx); err != nil {
		return "", err
	}
	status := h.feed.Status()
	if status.Scanned.IsZero() {
		return "", errors.New("the threads could not be scanned yet")
	}
	return string(status.Mode), nil
}

func (r *round) checkDisk() (string, error) {
	if r.diskErr != nil {
		return "", r.diskErr
	}
	detail := fmt.Sprintf("%d MiB free", r.disk.Free>>20)
	switch {
	case r.disk.Free < minFreeBytes:
		return detail, fmt.Errorf("less than %d MiB are free", minFreeBytes>>20)
	case r.disk.Inodes > 0 && r.disk.FreeInodes == 0:
		return detail, errors.New("no file can be made, the inodes are used up")
	}
	return detail, nil
}
