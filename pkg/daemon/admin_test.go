package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/diagnosis"
	"github.com/newos4/relay/pkg/metrics"
	"github.com/newos4/relay/pkg/storage"
)

// Ensures that the answer about readiness is 503 unless all is well, and that no
// cache keeps an answer about the state of the daemon.
func TestAdmin_StatusAndCaches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path     string
		watching error
		want     int
	}{
		"ready":     {pathReady, nil, http.StatusOK},
		"not ready": {pathReady, errors.New("caught"), http.StatusServiceUnavailable},
		"alive":     {diagnosis.AlivePath, errors.New("caught"), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				parts := wellParts()
				parts.watching = test.watching
				h, stop := healthOf(t, parts)
				defer stop()
				answer := httptest.NewRecorder()
				newAdmin(h, metrics.New(""), func() (metrics.State, error) { return metrics.State{}, nil }).
					ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", test.path, nil))
				if answer.Code != test.want || answer.Header().Get("Cache-Control") != "no-store" {
					t.Errorf("%d %v", answer.Code, answer.Header())
				}
			})
		})
	}
}

// healthOf returns the health of the parts, looked at until stop is called.
func healthOf(t *testing.T, parts *fakeParts) (h *health, stop func()) {
	t.Helper()
	sweeper, err := newSweeper(nil, "@hourly", slog.New(slog.DiscardHandler), metrics.New(""))
	if err != nil {
		t.Fatal(err)
	}
	sweeper.begin()
	h = newHealth(parts, parts, sweeper)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.run(ctx) })
	return h, func() { cancel(); running.Wait() }
}

// Ensures that a checkup ends in time, as not ready, although every call into the
// file system hangs, and that none is left behind once they come back.
func TestHealth_CheckupOfAHangingDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := wellParts()
		parts.hangs = make(chan struct{})
		h, stop := healthOf(t, parts)
		began := time.Now()
		result := h.check(t.Context())
		if took := time.Since(began); took != checkTimeout {
			t.Errorf("took %v", took)
		}
		for _, part := range []string{"storage", "disk"} {
			if c := result.Checks[part]; result.Ready || c.Error != errSilent.Error() {
				t.Errorf("%s = %+v, ready %t", part, c, result.Ready)
			}
		}
		close(parts.hangs)
		stop()
	})
}

// Ensures that the thread that has waited longest is the one that is shown, and
// that an answered one counts no more.
func TestInbox_Waiting(t *testing.T) {
	t.Parallel()
	i := newInbox(nil, nil)
	now := time.UnixMilli(100_000)
	if !i.set("a", 70_000, true) || !i.set("b", 40_000, true) || i.set("b", 40_000, true) || !i.set("c", 90_000, true) {
		t.Error("a thread that begins to wait is not told from one that goes on")
	}
	if n, longest := i.waiting(now); n != 3 || longest != time.Minute {
		t.Errorf("%d wait, the longest for %v", n, longest)
	}
	i.set("b", 0, false)
	if n, longest := i.waiting(now); n != 2 || longest != 30*time.Second {
		t.Errorf("%d wait, the longest for %v", n, longest)
	}
}

// Ensures that the service manager hears nothing after the stop but signs of
// life: neither that the first scan is done nor what a reload came to.
func TestSupervisor_StoppingIsTheLastWord(t *testing.T) {
	t.Parallel()
	listener := new(told)
	s := &supervisor{notify: listener.notify, watchdog: time.Second, log: slog.New(slog.DiscardHandler)}
	done := s.reloading()
	listener.take()
	s.stopping()
	done("serving; the configuration was reloaded")
	s.tell("READY=1")
	if states := listener.take(); len(states) != 1 || !strings.HasPrefix(states[0], "STOPPING=1\n") {
		t.Errorf("hears %q", states)
	}
}

// Ensures that a sweep counts as what it was: done, or failed, or nothing if the
// stop has cut it short.
func TestSweeper_Counts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := storage.Open(storage.Options{Root: root, Space: "newos4"})
	defer func() { _ = store.Close() }()
	if err := store.Prepare(); err != nil {
		t.Fatal(err)
	}
	m := metrics.New("")
	s, err := newSweeper(store, "@hourly", slog.New(slog.DiscardHandler), m)
	if err != nil {
		t.Fatal(err)
	}
	s.sweep(t.Context())
	if _, err := s.check(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.sweep(ctx)
	broken := storage.Open(storage.Options{Root: "/dev/null", Space: "newos4"})
	defer func() { _ = broken.Close() }()
	s.store = broken
	s.sweep(t.Context())
	if _, err := s.check(); err == nil {
		t.Error("a failed sweep is in order")
	}
	answer := httptest.NewRecorder()
	m.Handler(func() (metrics.State, error) { return metrics.State{}, nil }).
		ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", pathMetrics, nil))
	for _, want := range []string{`relay_sweeps_total{result="done"} 1`, `relay_sweeps_total{result="failed"} 1`} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("lacks %s", want)
		}
	}
}
