package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/renameio/v2"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
)

// windowFile keeps the windows per address across a restart. Those per thread
// need no file: they are rebuilt from the threads (section 7).
type windowFile struct{ path string }

// windowTimes is the content of the file: by window and key, epochs in ms.
type windowTimes map[string]map[string][]int64

func (f windowFile) load() (ratelimit.Snapshot, error) {
	data, err := storage.ReadRegular(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the rate windows: %w", err)
	}
	var times windowTimes
	if err := json.Unmarshal(data, &times); err != nil {
		return nil, fmt.Errorf("reading the rate windows from %s: %w", f.path, err)
	}
	snapshot := make(ratelimit.Snapshot)
	for window, keys := range times {
		snapshot[window] = make(map[string][]time.Time)
		for key, epochs := range keys {
			for _, epoch := range epochs {
				snapshot[window][key] = append(snapshot[window][key], time.UnixMilli(epoch))
			}
		}
	}
	return snapshot, nil
}

func (f windowFile) save(snapshot ratelimit.Snapshot) error {
	times := make(windowTimes)
	for window, keys := range snapshot {
		times[window] = make(map[string][]int64)
		for key, events := range keys {
			for _, event := range events {
				times[window][key] = append(times[window][key], event.UnixMilli())
			}
		}
	}
	data, err := json.Marshal(times)
	if err != nil {
		return fmt.Errorf("encoding the rate windows: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), autoreply.StateDirMode); err != nil {
		return fmt.Errorf("saving the rate windows: %w", err)
	}
	// Beside the file and not in a temporary directory that others may share.
	if err := renameio.WriteFile(f.path, data, 0o600, renameio.WithTempDir(filepath.Dir(f.path))); err != nil {
		return fmt.Errorf("saving the rate windows: %w", err)
	}
	return nil
}

// restoreWindows takes up what the last graceful stop had counted. Losing it
// lifts limits for ten minutes, which is no reason not to serve.
func (s *Server) restoreWindows() {
	snapshot, err := s.windows.load()
	if err != nil {
		s.log.Warn("the rate windows start empty", "error", err)
		return
	}
	s.limiter.Restore(snapshot)
}

func (s *Server) saveWindows() {
	if err := s.windows.save(s.limiter.Snapshot(chatapi.WindowIP, chatapi.WindowIPThreads)); err != nil {
		s.log.Warn("the rate windows are lost with this stop", "error", err)
	}
}
