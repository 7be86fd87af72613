package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// inbox knows which threads await Hermes, by what the change feed tells.
type inbox struct {
	store *storage.Store
	log   *slog.Logger

	mu       sync.Mutex
	awaiting map[chat.ThreadID]int64 // since when, in epoch milliseconds
}

func newInbox(store *storage.Store, log *slog.Logger) *inbox {
	return &inbox{store: store, log: log, awaiting: make(map[chat.ThreadID]int64)}
}

// follow notes each change and passes it on, until ctx ends.
func (i *inbox) follow(ctx context.Context, changes <-chan []storage.Change, onward chan<- []storage.Change) {
	for {
		select {
		case <-ctx.Done():
			return
		case batch := <-changes:
			for _, change := range batch {
				i.note(change.Thread)
			}
			select {
			case onward <- batch:
			case <-ctx.Done():
				return
			}
		}
	}
}

// note looks at a thread and logs it if it begins to await Hermes.
func (i *inbox) note(id chat.ThreadID) {
	summary, ok, err := i.store.Summary(id)
	if err != nil {
		i.log.Error("a thread cannot be read", "thread", string(id), "error", err)
		return
	}
	if i.set(id, summary.Since, ok && summary.Unanswered > 0) {
		i.log.Info("a thread awaits hermes", "thread", string(id), "last", string(summary.Last.Author))
	}
}

// set keeps whether the thread awaits Hermes and reports whether it begins to.
func (i *inbox) set(id chat.ThreadID, since int64, awaits bool) (begins bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, awaited := i.awaiting[id]
	if !awaits {
		delete(i.awaiting, id)
		return false
	}
	i.awaiting[id] = since
	return !awaited
}

// waiting returns how many threads await Hermes and how long the first has done
// so.
func (i *inbox) waiting(now time.Time) (threads int, longest time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, since := range i.awaiting {
		longest = max(longest, now.Sub(time.UnixMilli(since)))
	}
	return len(i.awaiting), longest
}
