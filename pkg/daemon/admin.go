package daemon

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/diagnosis"
	"github.com/newos4/relay/pkg/metrics"
	"github.com/newos4/relay/pkg/storage"
)

// Paths of the operator's side.
const (
	pathAlive   = diagnosis.AlivePath
	pathReady   = "/readyz"
	pathMetrics = "/metrics"
)

// newAdmin returns the operator's side: whether the process runs, whether its
// parts work, and what it has counted.
func newAdmin(h *health, m *metrics.Metrics, state func() (metrics.State, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathAlive, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, diagnosis.AliveAnswer) // an error is the client's
	})
	mux.HandleFunc("GET "+pathReady, func(w http.ResponseWriter, r *http.Request) { writeCheckup(w, h.check(r.Context())) })
	mux.Handle("GET "+pathMetrics, m.Handler(state))
	return mux
}

// writeCheckup answers 200 if all is well, else 503.
func writeCheckup(w http.ResponseWriter, result checkup) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !result.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// An error here is the client's: it has gone.
	_ = json.MarshalWrite(w, result, json.Deterministic(true), jsontext.WithIndent("  "))
	_, _ = io.WriteString(w, "\n")
}

// state reads what the gauges show.
func (s *Server) state() (metrics.State, error) {
	ids, err := s.store.Threads()
	if err != nil {
		return metrics.State{}, fmt.Errorf("counting the threads: %w", err)
	}
	disk, err := s.store.FileSystem()
	if err != nil {
		return metrics.State{}, err
	}
	status := s.feed.Status()
	awaiting, oldest := s.inbox.waiting(time.Now())
	return metrics.State{
		Threads: len(ids), ThreadLimit: s.store.Bounds().Threads,
		Awaiting: awaiting, Oldest: oldest,
		Watching: status.Mode == storage.FeedWatching, Overflows: status.Overflows,
		FreeBytes: disk.Free,
	}, nil
}
