package daemon

import (
	"context"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// followInbox logs each thread that begins to await Hermes, until ctx ends.
func (s *Server) followInbox(ctx context.Context, feed *storage.Feed) {
	awaiting := make(map[chat.ThreadID]bool)
	for {
		select {
		case <-ctx.Done():
			return
		case changes := <-feed.Changes():
			for _, change := range changes {
				s.noteAwaiting(awaiting, change.Thread)
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
