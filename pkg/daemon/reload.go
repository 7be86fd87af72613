package daemon

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/config"
)

// reloadOn reads the configuration again whenever told and applies what can be
// changed while serving, until ctx ends. A configuration with an error leaves
// everything as it is. One that is sound but whose back end cannot be made
// replaces the old one all the same, which may read what it no longer should.
func (s *Server) reloadOn(ctx context.Context, told <-chan os.Signal) {
	var probing sync.WaitGroup
	stopProbe := func() {}
	end := func() { stopProbe(); probing.Wait() }
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
		}
		// A mended configuration does not wait for the old one's server to answer.
		end()
		done := s.supervisor.reloading()
		outcome, backend := s.reload(ctx)
		done(outcome)
		if backend != nil {
			asking, stop := context.WithCancel(ctx)
			stopProbe = stop
			probing.Go(func() { probe(asking, backend, s.log) })
		}
	}
}

// reload returns what it has come to, for the service manager's status while the
// log tells more, and the back end that now answers, nil for none.
func (s *Server) reload(ctx context.Context) (outcome string, backend autoreply.Backend) {
	next, err := s.load()
	if err != nil {
		s.log.Error("the configuration was not reloaded", "error", err)
		return "serving; the configuration was not reloaded: " + err.Error(), nil
	}
	s.level.Set(next.Log.Level)
	s.store.Configure(boundsOf(next))
	s.api.SetLimits(apiLimitsOf(next.Limits))
	s.site.SetText(next.Limits.Text)
	s.limiter.Configure(windowsOf(next.Limits)...)
	settings, err := s.agentSettings(ctx, next), ctx.Err()
	if err == nil {
		err = s.agent.Apply(ctx, settings)
	}
	if err != nil { // the server stops
		if settings.Backend != nil {
			_ = settings.Backend.Close() // nobody has taken it
		}
		return "stopping", nil
	}
	keys := needRestart(s.cfg, next)
	s.log.Info("the configuration was reloaded", slog.Any("needs_restart", keys))
	if len(keys) > 0 {
		return "serving; a restart is needed for " + strings.Join(keys, ", "), settings.Backend
	}
	return "serving; the configuration was reloaded", settings.Backend
}

// needRestart names the keys that have changed and take effect with a restart
// only.
func needRestart(before, after *config.Config) []string {
	values := make(map[string]string)
	for _, o := range before.Options() {
		values[o.Key] = o.Value()
	}
	var keys []string
	for _, o := range after.Options() {
		if !o.Reloads && values[o.Key] != o.Value() {
			keys = append(keys, o.Key)
		}
	}
	return keys
}
