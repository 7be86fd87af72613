package cli

import (
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/storage"
)

// openSession returns a session on an empty root, whose threads have pages of 50
// messages.
func openSession(t *testing.T) *session {
	t.Helper()
	store := storage.Open(storage.Options{
		Root: t.TempDir(), Space: "newos4",
		Bounds: storage.Bounds{Threads: 1, Page: 50, Retention: chat.Retention{Messages: 200, MaxAge: time.Hour}},
	})
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &session{app: &app{}, store: store, config: &config.Config{}}
}

// Ensures that a wait looks again by itself: a file that changed hands, and can
// now be read, has not changed.
func TestWatch_LooksAgain(t *testing.T) {
	t.Parallel()
	s := openSession(t)
	s.config.Watch.Rescan = time.Millisecond
	looks := 0
	err := s.watch(t.Context(), patience{limited: true, limit: 10 * time.Second}, func() (bool, error) {
		looks++
		return looks == 5, nil
	})
	if err != nil {
		t.Errorf("ended with %v after %d looks", err, looks)
	}
}
