package daemon

import (
	"context"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// followInbox logs each thread that begins to await Hermes and passes the
// changes on, until ctx ends.
func (s *Server) followInbox(ctx context.Context, changes <-chan []storage.Change, onward chan<- []storage.Change) {
	awaiting := make(map[chat.ThreadID]bool)
	for {
		select {
		case <-ctx.Done():
			return
		case batch := <-changes:
			for _, change := range batch {
				s.noteAwaiting(awaiting, change.Thread)
			}
			select {
			case onward <- batch:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *Server) noteAwaiting(awaiting map[chat.ThreadID]bool, id chat.ThreadID) {
	summary, ok, err := s.store.Summary(id)
	if err != nil {
		s.log.Error("a thread cannot be read", "thread", string(id), "error", err)
		return
	}
	if !ok || summary.Unanswered == 0 {
		delete(awaiting, id)
		return
	}
	if !awaiting[id] {
		awaiting[id] = true
		s.log.Info("a thread awaits hermes", "thread", string(id), "last", string(summary.Last.Author))
	}
}
