package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// supervisor tells whoever started the daemon how it is, in the words of
// sd_notify(3).
type supervisor struct {
	notify   func(state string) error // nil where nobody listens
	watchdog time.Duration            // after which it gives the daemon up; 0 for never
	health   *health
	log      *slog.Logger

	mu         sync.Mutex // keeps states in the order in which they hold
	isStopping bool
}

// tell sends lines of state. While the daemon stops only signs of life are left:
// whatever began before must not call it ready again. That nobody takes a state
// does not keep anybody from being served.
func (s *supervisor) tell(state ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isStopping || state[0] == systemd.SdNotifyWatchdog {
		s.send(state...)
	}
}

// stopping says that the daemon stops.
func (s *supervisor) stopping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStopping = true
	s.send(systemd.SdNotifyStopping, status("stopping"))
}

func (s *supervisor) send(state ...string) {
	if s.notify == nil {
		return
	}
	if err := s.notify(strings.Join(state, "\n")); err != nil {
		s.log.Warn("the service manager cannot be told", "state", state[0], "error", err)
	}
}

// status is one line for systemctl status.
func status(format string, args ...any) string {
	return "STATUS=" + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
}

// run says that the daemon is ready once it is, and then, in time for the
// watchdog, that it still works, until ctx ends.
func (s *supervisor) run(ctx context.Context, ready <-chan struct{}, address string) {
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	s.log.Info("ready", "address", address)
	s.tell(systemd.SdNotifyReady, status("serving on %s", address))
	if s.watchdog == 0 || s.notify == nil {
		return
	}
	ticks := time.NewTicker(s.watchdog / 3)
	defer ticks.Stop()
	for {
		s.ping(ctx)
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// ping feeds the watchdog if the storage and the watcher answer in time.
func (s *supervisor) ping(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, s.watchdog/3)
	defer cancel()
	err := s.health.answers(bounded)
	switch {
	case err == nil:
		s.tell(systemd.SdNotifyWatchdog)
	case ctx.Err() == nil:
		s.log.Error("the watchdog is not fed", "error", err)
	}
}

// reloading says that the configuration is read again; the function that it
// returns says how that ended.
func (s *supervisor) reloading() (done func(outcome string)) {
	s.tell(systemd.SdNotifyReloading, monotonic())
	return func(outcome string) { s.tell(systemd.SdNotifyReady, status("%s", outcome)) }
}
