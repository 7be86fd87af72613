package daemon

import (
	"context"
	"errors"
	"fmt"
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
	looks  chan func()
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
	return &health{store: store, feed: feed, sweeps: sweeps, looks: make(chan func())}
}

// run looks at the storage for whoever asks, until ctx ends. There is one look at
// a time, so that those who ask do not pile up behind a disk that hangs.
func (h *health) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case look := <-h.looks:
			look()
		}
	}
}

// errSilent is the state of a storage that does not come back.
var errSilent = errors.New("the storage does not answer")

// probe stores something and returns how that went, or errSilent with ctx.
func (h *health) probe(ctx context.Context) error {
	_, err := ask(ctx, h.looks, func() (struct{}, error) { return struct{}{}, h.store.Probe() })
	return err
}

// ask has run make a look at the storage and returns what it sees, or errSilent
// with ctx.
func ask[T any](ctx context.Context, looks chan<- func(), look func() (T, error)) (T, error) {
	var seen T
	var err error
	done := make(chan struct{})
	select {
	case looks <- func() { defer close(done); seen, err = look() }:
	case <-ctx.Done():
		return *new(T), errSilent
	}
	select {
	case <-done:
		return seen, err
	case <-ctx.Done():
		return *new(T), errSilent // the look may go on, and has these variables for itself
	}
}

// answers returns why the daemon should be started anew: its storage or its
// watcher hangs. A storage that answers with an error is not mended by that.
func (h *health) answers(ctx context.Context) error {
	if err := h.probe(ctx); errors.Is(err, errSilent) {
		return err
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
	for name, look := range map[string]func(context.Context) (string, error){
		"storage": func(ctx context.Context) (string, error) { return "", h.probe(ctx) },
		"watcher": h.checkWatcher,
		"sweep":   func(context.Context) (string, error) { return h.sweeps.check() },
		"disk":    h.checkDisk,
	} {
		detail, err := look(ctx)
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

func (h *health) checkDisk(ctx context.Context) (string, error) {
	disk, err := ask(ctx, h.looks, h.store.FileSystem)
	if err != nil {
		return "", err
	}
	detail := fmt.Sprintf("%d MiB free", disk.Free>>20)
	switch {
	case disk.Free < minFreeBytes:
		return detail, fmt.Errorf("less than %d MiB are free", minFreeBytes>>20)
	case disk.Inodes > 0 && disk.FreeInodes == 0:
		return detail, errors.New("no file can be made, the inodes are used up")
	}
	return detail, nil
}
