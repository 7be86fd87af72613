package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
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

// hostsOnly refuses whoever asks for this host by a name of the network's. A page
// in a browser of this host could have its own name lead here, and would then be
// allowed to read the answer.
func hostsOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalName(r.Host) {
			http.Error(w, "ask for 127.0.0.1, [::1] or localhost, not for another name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocalName reports whether a Host header, with or without a port, is an address
// or a name that no name server is asked for. HTTP/1.0 may have none.
func isLocalName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if _, err := netip.ParseAddr(name); err == nil || name == "" {
		return true
	}
	return strings.EqualFold(name, "localhost")
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
