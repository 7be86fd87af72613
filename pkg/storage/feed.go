package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Change says that a thread is not what it was when the feed last told of it.
type Change struct {
	Thread chat.ThreadID
	// Removed reports that the thread is gone.
	Removed bool
}

// FeedMode is how a feed learns of changes.
type FeedMode string

const (
	// FeedWatching is told by the kernel, and scans all the same from time to
	// time.
	FeedWatching FeedMode = "watching"
	// FeedPolling scans often, because the kernel cannot or does not tell.
	FeedPolling FeedMode = "polling"
	// FeedWaiting looks for a directory that does not exist.
	FeedWaiting FeedMode = "waiting for the directory"
)

// Times between the scans of a feed.
const (
	// DefaultRescan is how often a feed scans although the kernel tells it of
	// changes.
	DefaultRescan = 30 * time.Second

	pollInterval = 2 * time.Second
	waitInterval = 250 * time.Millisecond
	// announceTime is how long after a scan found a change the kernel may still
	// tell of it before the feed stops to rely on the kernel.
	announceTime = time.Second
)

// FeedStatus is what a feed tells of itself.
type FeedStatus struct {
	Mode FeedMode
	// Overflows counts how often the kernel lost notifications.
	Overflows int
	// Scanned is when the last scan ended, the zero time before the first.
	Scanned time.Time
}

// Feed tells which threads have changed. Notifications of the kernel are hints
// and a scan of the directory is the truth: at the start, after a lost
// notification, after a directory was replaced, and at regular times. Changes
// that nobody has collected yet are merged, so a slow reader misses no state
// and holds up nobody.
type Feed struct {
	store   *Store
	rescan  time.Duration
	log     *slog.Logger
	open    func(dir string) (notifier, error)
	changes chan []Change
	ready   chan struct{}
	pings   chan chan struct{}

	known    map[chat.ThreadID]identity
	pending  map[chat.ThreadID]bool // true: removed
	suspects map[chat.ThreadID]bool // found by a scan, not yet announced
	notifier notifier
	watched  identity  // of the directory that notifier watches
	retry    time.Time // when to ask the kernel again
	scanned  time.Time // when the last scan was tried
	doubted  time.Time // when the suspects were found
	failure  string    // of the last scan, "" if it went well
	silent   bool      // the kernel was seen not to tell

	statusMu sync.Mutex
	status   FeedStatus
}

// notifier is the kernel's side of a feed.
type notifier interface {
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

// Feed returns a feed of the store's threads that scans at least every rescan;
// 0 means [DefaultRescan]. It starts with [Feed.Run].
func (s *Store) Feed(rescan time.Duration) *Feed {
	if rescan == 0 {
		rescan = DefaultRescan
	}
	return &Feed{
		store: s, rescan: rescan, log: s.opts.Logger, open: openNotifier,
		changes: make(chan []Change), ready: make(chan struct{}), pings: make(chan chan struct{}),
		known: make(map[chat.ThreadID]identity), pending: make(map[chat.ThreadID]bool),
		suspects: make(map[chat.ThreadID]bool),
	}
}

// Changes returns the channel of changes. The first batch holds every thread
// that stood at the start. The channel is never closed.
func (f *Feed) Changes() <-chan []Change { return f.changes }

// Ready is closed after the first scan.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Ping returns when the feed has answered, which it does between two pieces of
// work, or with the cause of ctx. A feed that is caught in the file system, or
// that does not run, does not answer.
func (f *Feed) Ping(ctx context.Context) error {
	answered := make(chan struct{})
	select {
	case f.pings <- answered:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the change feed: %w", context.Cause(ctx))
	}
	<-answered // the feed has taken the ping and answers without any other work
	return nil
}

// Status returns what the feed tells of itself.
func (f *Feed) Status() FeedStatus {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	return f.status
}

// Run follows the threads until ctx ends. It is called once.
func (f *Feed) Run(ctx context.Context) {
	defer f.unwatch()
	// Watching before scanning leaves no gap between the two.
	f.watch()
	f.scan()
	close(f.ready)
	timer := time.NewTimer(f.interval())
	defer timer.Stop()
	for {
		out, batch := f.outlet()
		select {
		case <-ctx.Done():
			return
		case out <- batch:
			clear(f.pending)
			continue
		case answered := <-f.pings:
			close(answered)
			continue
		case event, ok := <-f.events():
			f.handleEvent(event, ok)
		case err, ok := <-f.errors():
			f.handleError(err, ok)
		case <-timer.C:
			f.handleTimer()
		}
		timer.Reset(f.untilScan())
	}
}

// outlet offers what is pending; with nothing pending its channel is nil.
func (f *Feed) outlet() (chan<- []Change, []Change) {
	if len(f.pending) == 0 {
		return nil, nil
	}
	batch := make([]Change, 0, len(f.pending))
	for id, removed := range f.pending {
		batch = append(batch, Change{Thread: id, Removed: removed})
	}
	slices.SortFunc(batch, func(a, b Change) int { return cmp.Compare(a.Thread, b.Thread) })
	return f.changes, batch
}

func (f *Feed) events() <-chan fsnotify.Event {
	if f.notifier == nil {
		return nil
	}
	return f.notifier.Events()
}

func (f *Feed) errors() <-chan error {
	if f.notifier == nil {
		return nil
	}
	return f.notifier.Errors()
}

func (f *Feed) handleEvent(event fsnotify.Event, ok bool) {
	if !ok || event.Name == f.store.path && event.Has(fsnotify.Remove|fsnotify.Rename) {
		f.renew()
		return
	}
	if id, ok := threadOf(filepath.Base(event.Name)); ok {
		delete(f.suspects, id)
		f.look(id)
	}
}

func (f *Feed) handleError(err error, ok bool) {
	if ok && errors.Is(err, fsnotify.ErrEventOverflow) {
		f.update(func(st *FeedStatus) { st.Overflows++ })
		f.log.Warn("the kernel lost file notifications, scanning all threads", "sysctl", "fs.inotify.max_queued_events")
		// What it lost it cannot announce any more, and that is no silence.
		clear(f.suspects)
		f.scan()
		return
	}
	f.log.Warn("watching the thread directory failed, starting anew", "error", err)
	f.renew()
}

func (f *Feed) handleTimer() {
	if len(f.suspects) > 0 {
		f.distrust()
	}
	if f.isStale() {
		f.renew()
		return
	}
	found := f.scan()
	if f.notifier == nil {
		return
	}
	for _, id := range found {
		f.suspects[id] = true
	}
	f.doubted = time.Now()
}

// isStale reports whether the watch is not, or no longer, on the directory that
// the path leads to, and could be.
func (f *Feed) isStale() bool {
	if f.notifier == nil {
		return !f.silent && !time.Now().Before(f.retry)
	}
	current, err := f.directory()
	return err != nil || current.device != f.watched.device || current.inode != f.watched.inode
}

// renew watches the directory afresh and scans it.
func (f *Feed) renew() {
	f.unwatch()
	f.watch()
	f.scan()
}

// watch asks the kernel to tell of changes, and says once why if it will not.
func (f *Feed) watch() {
	if f.silent {
		return
	}
	self, err := f.directory()
	if isMissing(err) {
		f.retry = time.Time{}
		f.setMode(FeedWaiting)
		return
	}
	if err == nil {
		f.notifier, err = f.open(f.store.path)
	}
	if err != nil {
		f.retry = time.Now().Add(f.rescan)
		f.fallBack(err)
		return
	}
	f.watched = self
	if f.setMode(FeedWatching) == FeedPolling {
		f.log.Info("watching the thread directory again")
	}
}

func (f *Feed) unwatch() {
	clear(f.suspects)
	if f.notifier == nil {
		return
	}
	if err := f.notifier.Close(); err != nil {
		f.log.Warn("closing the watch of the thread directory", "error", err)
	}
	f.notifier = nil
}

// fallBack turns to polling and says why.
func (f *Feed) fallBack(err error) {
	if f.setMode(FeedPolling) == FeedPolling {
		return
	}
	reason := watchError(err)
	f.log.Warn("the thread directory cannot be watched and is polled instead", "every", f.interval().String(), "error", reason, "mend", reason.Mend())
}

// distrust turns to polling for good: a scan found what the kernel did not tell,
// as on network file systems with writers on other hosts.
func (f *Feed) distrust() {
	f.silent = true
	f.unwatch()
	f.setMode(FeedPolling)
	f.log.Warn("the file system does not tell of changes, the thread directory is polled instead", "every", f.interval().String(), "path", f.store.path)
}

func (f *Feed) directory() (identity, error) {
	var st unix.Stat_t
	err := unix.Stat(f.store.path, &st)
	return identityOf(&st), err
}

// scan compares every thread with what is known and returns those that changed.
func (f *Feed) scan() []chat.ThreadID {
	f.scanned = time.Now()
	ids, err := f.store.Threads()
	if err != nil {
		f.reportScan(err)
		return nil
	}
	f.failure = ""
	var changed []chat.ThreadID
	for _, id := range ids {
		if f.look(id) {
			changed = append(changed, id)
		}
	}
	for id := range f.known {
		if _, stands := slices.BinarySearch(ids, id); !stands && f.look(id) {
			changed = append(changed, id)
		}
	}
	f.update(func(st *FeedStatus) { st.Scanned = time.Now() })
	return changed
}

// reportScan tells of a failure once, and not each time that it is met again.
func (f *Feed) reportScan(err error) {
	if f.failure == err.Error() {
		return
	}
	f.failure = err.Error()
	f.log.Error("scanning the threads failed", "error", err)
}

// look compares one thread with what is known and reports whether it changed.
func (f *Feed) look(id chat.ThreadID) bool {
	var st unix.Stat_t
	err := unix.Lstat(f.store.filePath(id), &st)
	before, wasKnown := f.known[id]
	if err != nil && !isMissing(err) {
		return false // what cannot be looked at is not gone; the next scan looks again
	}
	if err != nil || !isRegular(&st) {
		if wasKnown {
			delete(f.known, id)
			f.pending[id] = true
		}
		return wasKnown
	}
	now := identityOf(&st)
	if wasKnown && now == before {
		return false
	}
	f.known[id] = now
	f.pending[id] = false
	return true
}

// interval is the time between scans in the present mode.
func (f *Feed) interval() time.Duration {
	switch f.Status().Mode {
	case FeedPolling:
		return min(pollInterval, f.rescan)
	case FeedWaiting:
		return waitInterval
	}
	return f.rescan
}

// untilScan is the time to the next scan; a suspicion is settled sooner.
func (f *Feed) untilScan() time.Duration {
	if len(f.suspects) > 0 {
		return max(0, announceTime-time.Since(f.doubted))
	}
	return max(0, f.interval()-time.Since(f.scanned))
}

// setMode changes the mode and returns the one before.
func (f *Feed) setMode(mode FeedMode) (before FeedMode) {
	f.update(func(st *FeedStatus) { before, st.Mode = st.Mode, mode })
	return before
}

func (f *Feed) update(change func(*FeedStatus)) {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	change(&f.status)
}
