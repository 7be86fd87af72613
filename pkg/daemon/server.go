package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
)

// Server is the running daemon: the HTTP side, the sweep and the change feed,
// and the one owner of all their goroutines.
type Server struct {
	cfg      *config.Config
	log      *slog.Logger
	store    *storage.Store
	limiter  *ratelimit.Limiter
	frontend *frontend
	windows  windowFile
	agent    *autoreply.Agent
	backend  autoreply.Backend // at the start, nil for none
	closed   func(*config.Config) []string
	load     func() (*config.Config, error)
	reloads  <-chan os.Signal
}

// Options configure a Server.
type Options struct {
	Config *config.Config
	// ConfigFile is the path of the file that the configuration came from. The
	// agent never reads it.
	ConfigFile string
	// Load reads the configuration again, and Reloads tells when.
	Load    func() (*config.Config, error)
	Reloads <-chan os.Signal
	Logger  *slog.Logger
}

// NewServer returns a server that listens on the configured address, so that a
// taken port or an unusable root is an error here and not later. It answers
// once Run is called.
func NewServer(ctx context.Context, opts Options) (*Server, error) {
	cfg, log := opts.Config, opts.Logger
	store := openStore(cfg, log)
	if err := store.Prepare(); err != nil {
		return nil, fmt.Errorf("preparing the thread directory: %w", err)
	}
	limiter := newLimiter(cfg.Limits)
	api := chatapi.New(chatapi.Options{
		Space:          cfg.Space,
		Limits:         chatapi.Limits{Text: cfg.Limits.Text, Body: cfg.Limits.Body, Threads: cfg.Limits.Threads},
		TrustedProxies: cfg.HTTP.TrustedProxies,
		AllowedOrigins: cfg.HTTP.AllowedOrigins,
		Now:            time.Now,
		Logger:         log,
	}, store, limiter)
	frontend, err := newFrontend(ctx, cfg.Listen, cfg.HTTP, api, log)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	s := &Server{
		cfg: cfg, log: log, store: store, limiter: limiter, frontend: frontend,
		windows: windowFile{path: cfg.StatePath("rate-windows.json")},
		closed:  func(c *config.Config) []string { return closedPaths(c, opts.ConfigFile, store.Path()) },
		load:    opts.Load, reloads: opts.Reloads,
	}
	settings := agentSettings(ctx, cfg, s.closed(cfg), log, nil)
	s.backend = settings.Backend
	s.agent = autoreply.New(settings, store, cfg.StatePath(autoreply.StateFile), log)
	return s, nil
}

func openStore(cfg *config.Config, log *slog.Logger) *storage.Store {
	return storage.Open(storage.Options{
		Root: cfg.Root, Space: cfg.Space,
		Retention: cfg.Keep(), Threads: cfg.Limits.Threads, Page: cfg.Limits.Page,
		Logger: log,
	})
}

func newLimiter(l config.Limits) *ratelimit.Limiter {
	return ratelimit.New(time.Now, ratelimit.DefaultMaxKeys, windowsOf(l)...)
}

func windowsOf(l config.Limits) []ratelimit.Window {
	return []ratelimit.Window{
		{Name: chatapi.WindowThread, Limit: l.ThreadPosts, Span: l.Window},
		{Name: chatapi.WindowIP, Limit: l.IPPosts, Span: l.Window},
		{Name: chatapi.WindowIPThreads, Limit: l.IPNewThreads, Span: l.IPNewWindow},
	}
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.frontend.listener.Addr() }

// Run serves until ctx ends, then lets requests that are being answered finish,
// stops all else and returns. It is called once.
func (s *Server) Run(ctx context.Context) error {
	s.restoreWindows()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	s.start(background, &running)

	served := make(chan error, 1)
	running.Go(func() { served <- s.frontend.serve() })
	s.log.Info("serving", "address", s.Addr().String(), "threads", s.store.Path())

	err := s.waitForEnd(ctx, served)
	stop()
	running.Wait()
	s.saveWindows()
	return errors.Join(err, s.store.Close())
}

// start begins all that works beside the requests.
func (s *Server) start(ctx context.Context, running *sync.WaitGroup) {
	feed := s.store.Feed(s.cfg.Watch.Rescan)
	running.Go(func() { feed.Run(ctx) })
	changes := make(chan []storage.Change)
	running.Go(func() { s.followInbox(ctx, feed.Changes(), changes) })
	running.Go(func() { s.agent.Run(ctx, changes) })
	running.Go(func() { s.sweepOnSchedule(ctx) })
	running.Go(func() { s.reloadOn(ctx, s.reloads) })
	if s.backend != nil {
		running.Go(func() { probe(ctx, s.backend, s.log) })
	}
}

// waitForEnd returns when ctx has ended and the requests are answered, or when
// serving failed.
func (s *Server) waitForEnd(ctx context.Context, served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.log.Info("stopping", "reason", context.Cause(ctx).Error())
	s.frontend.stop()
	return <-served
}

// sweepOnSchedule sweeps now and whenever the schedule says, until ctx ends.
func (s *Server) sweepOnSchedule(ctx context.Context) {
	schedule, err := config.ParseSchedule(s.cfg.Retention.Schedule)
	if err != nil {
		s.log.Error("no sweep is scheduled", "error", err) // the configuration was checked, so this is a bug
		return
	}
	sweeps := cron.New(cron.WithLocation(time.UTC), cron.WithChain(cron.SkipIfStillRunning(cron.DiscardLogger)))
	sweeps.Schedule(schedule, cron.FuncJob(func() { s.sweep(ctx) }))
	sweeps.Start()
	s.sweep(ctx)
	<-ctx.Done()
	<-sweeps.Stop().Done()
}

func (s *Server) sweep(ctx context.Context) {
	report, err := s.store.Sweep(ctx, storage.SweepOptions{})
	if err != nil && ctx.Err() == nil {
		s.log.Error("sweeping failed in part", "error", err)
	}
	for _, c := range report.Corrupt {
		s.log.Error("a thread file is corrupt and was left alone", "thread", string(c.Thread), "error", c.Err)
	}
	s.log.Info("swept", "threads", report.Threads, "removed", len(report.Removed), "shortened", len(report.Shortened),
		"messages", report.Messages, "busy", len(report.Busy), "corrupt", len(report.Corrupt), "temporary", report.Temporary)
}
