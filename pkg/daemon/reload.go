package daemon

import (
	"context"
	"log/slog"
	"os"

	"github.com/newos4/relay/pkg/config"
)

// reloadOn reads the configuration again whenever told and applies what can be
// changed while serving, until ctx ends. A configuration with an error leaves
// everything as it is. One that is sound but whose back end cannot be made
// replaces the old one all the same, which may read what it no longer should.
func (s *Server) reloadOn(ctx context.Context, told <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
		}
		next, err := s.load()
		if err != nil {
			s.log.Error("the configuration was not reloaded", "error", err)
			continue
		}
		s.reload(ctx, next)
	}
}

func (s *Server) reload(ctx context.Context, next *config.Config) {
	s.limiter.Configure(windowsOf(next.Limits)...)
	settings := agentSettings(ctx, next, s.closed(next), s.log, nil)
	if err := s.agent.Apply(ctx, settings); err != nil { // the server stops
		if settings.Backend != nil {
			_ = settings.Backend.Close() // nobody has taken it
		}
		return
	}
	if settings.Backend != nil {
		probe(ctx, settings.Backend, s.log)
	}
	s.log.Info("the configuration was reloaded", slog.Any("needs_restart", needRestart(s.cfg, next)))
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
