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

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/metrics"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
	"github.com/newos4/relay/pkg/version"
	"github.com/newos4/relay/pkg/webui"
)

// Server is the running daemon: the HTTP side, the operator's side, the sweep,
// the change feed and the agent, and the one owner of all their goroutines.
type Server struct {
	cfg        *config.Config
	log        *slog.Logger
	level      *slog.LevelVar
	store      *storage.Store
	feed       *storage.Feed
	inbox      *inbox
	limiter    *ratelimit.Limiter
	api        *chatapi.API
	site       *webui.Site
	workspace  *workspaceSide // nil without one
	frontend   *frontend
	admin      *frontend // nil without one
	windows    windowFile
	agent      *autoreply.Agent
	backend    autoreply.Backend // at the start, nil for none
	metrics    *metrics.Metrics
	sweeper    *sweeper
	health     *health
	supervisor *supervisor
	closed     func(*config.Config) []string
	load       func() (*config.Config, error)
	reloads    <-chan os.Signal
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
	// Level is the level of the Logger, which a reload sets.
	Level *slog.LevelVar
	// Listener, if not nil, is served in place of the configured address.
	Listener net.Listener
	// Notify takes states in the words of sd_notify(3); nil takes none.
	Notify func(state string) error
	// Watchdog is how long the service manager waits for a sign of life; 0 is
	// for ever.
	Watchdog time.Duration
}

// NewServer returns a server that listens on the configured addresses, so that a
// taken port or an unusable root is an error here and not later. It answers
// once Run is called. It takes over the Listener, also when it fails.
func NewServer(ctx context.Context, opts Options) (*Server, error) {
	s, err := newServer(opts)
	if err == nil {
		err = s.listen(ctx, opts.Listener)
	} else if opts.Listener != nil {
		err = errors.Join(err, opts.Listener.Close())
	}
	if err != nil {
		return nil, errors.Join(err, s.workspace.close(), s.store.Close())
	}
	settings := s.agentSettings(ctx, s.cfg)
	s.backend = settings.Backend
	s.agent = autoreply.New(settings, s.store, s.cfg.StatePath(autoreply.StateFile), s.log)
	return s, nil
}

// newServer makes all parts that need no address.
func newServer(opts Options) (*Server, error) {
	cfg, log := opts.Config, opts.Logger
	s := &Server{
		cfg: cfg, log: log, level: opts.Level, metrics: metrics.New(version.String()),
		windows: windowFile{path: cfg.StatePath("rate-windows.json")},
		load:    opts.Load, reloads: opts.Reloads,
	}
	s.store = openStore(cfg, log, s.metrics.Synced)
	s.closed = func(c *config.Config) []string { return closedPaths(c, opts.ConfigFile, s.store.Path()) }
	s.feed = s.store.Feed(cfg.Watch.Rescan)
	s.inbox = newInbox(s.store, log)
	s.limiter = newLimiter(cfg.Limits)
	s.api = chatapi.New(chatapi.Options{
		Space:          cfg.Space,
		Limits:         apiLimitsOf(cfg.Limits),
		TrustedProxies: cfg.HTTP.TrustedProxies,
		AllowedOrigins: cfg.HTTP.AllowedOrigins,
		Now:            time.Now,
		Logger:         log,
		Served:         func(r chatapi.Served) { s.metrics.Request(r.Route, r.Status, string(r.Code), r.Took) },
	}, s.store, s.limiter)
	s.site = webui.New(webui.Options{Space: cfg.Space, Text: cfg.Limits.Text}, s.api)
	var err error
	if s.sweeper, err = newSweeper(s.store, cfg.Retention.Schedule, log, s.metrics); err != nil {
		return s, err
	}
	s.health = newHealth(s.store, s.feed, s.sweeper)
	s.supervisor = &supervisor{notify: opts.Notify, watchdog: opts.Watchdog, health: s.health, log: log}
	if err := s.store.Prepare(); err != nil {
		return s, fmt.Errorf("preparing the thread directory: %w", err)
	}
	return s, nil
}

// listen opens both sides: that of browsers on the listener that was handed
// over, if one was, and the operator's.
func (s *Server) listen(ctx context.Context, handed net.Listener) error {
	if handed != nil {
		s.log.Info("a socket of the service manager's is served in place of listen", "address", handed.Addr().String(), "listen", s.cfg.Listen)
	} else {
		var err error
		if handed, err = listen(ctx, s.cfg.Listen, "choose another address with --listen or the key listen"); err != nil {
			return err
		}
	}
	if err := s.listenForBrowsers(ctx, handed); err != nil {
		return errors.Join(err, handed.Close())
	}
	if s.cfg.Admin.Listen == "" {
		return nil
	}
	listener, err := listen(ctx, s.cfg.Admin.Listen, "choose another address with the key admin.listen, or none with an empty one")
	if err != nil {
		return errors.Join(err, handed.Close())
	}
	admin := newAdmin(s.health, s.metrics, s.state)
	isPrivate := isLoopback(listener.Addr())
	if isPrivate {
		admin = hostsOnly(admin)
	}
	s.admin = newFrontend(listener, s.cfg.HTTP, admin, s.log)
	if !isPrivate {
		s.log.Warn("the operator's side can be reached from other hosts, and asks nobody who he is", "address", listener.Addr().String())
	}
	return nil
}

// listenForBrowsers serves the chat, and the workspace beside it if there is one.
func (s *Server) listenForBrowsers(ctx context.Context, listener net.Listener) error {
	if !s.cfg.Workspace.Enabled {
		s.frontend = newFrontend(listener, s.cfg.HTTP, s.site, s.log)
		return nil
	}
	var err error
	if s.workspace, err = openWorkspace(ctx, s.cfg, listener.Addr(), s.log); err != nil {
		return err
	}
	s.frontend = newFrontend(listener, s.cfg.HTTP, s.workspace.beside(s.site), s.log)
	return nil
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func openStore(cfg *config.Config, log *slog.Logger, synced func(time.Duration)) *storage.Store {
	return storage.Open(storage.Options{
		Root: cfg.Root, Space: cfg.Space,
		Bounds: boundsOf(cfg),
		Logger: log, Synced: synced,
	})
}

// boundsOf returns what bounds the threads.
func boundsOf(cfg *config.Config) storage.Bounds {
	return storage.Bounds{Retention: cfg.Keep(), Threads: cfg.Limits.Threads, Page: cfg.Limits.Page}
}

// apiLimitsOf returns what bounds a browser's request.
func apiLimitsOf(l config.Limits) chatapi.Limits {
	return chatapi.Limits{Text: l.Text, Body: l.Body, Threads: l.Threads}
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
	err := s.serve(ctx, &running)
	stop()
	running.Wait()
	s.saveWindows()
	return errors.Join(err, s.workspace.close(), s.store.Close())
}

// start begins all that works beside the requests.
func (s *Server) start(ctx context.Context, running *sync.WaitGroup) {
	running.Go(func() { s.feed.Run(ctx) })
	changes := make(chan []storage.Change)
	running.Go(func() { s.inbox.follow(ctx, s.feed.Changes(), changes) })
	running.Go(func() { s.agent.Run(ctx, changes) })
	running.Go(func() { s.sweeper.run(ctx) })
	running.Go(func() { s.health.run(ctx) })
	running.Go(func() { s.supervisor.run(ctx, s.feed.Ready(), s.Addr().String()) })
	running.Go(func() { s.reloadOn(ctx, s.reloads) })
	if s.workspace != nil {
		running.Go(func() { s.workspace.run(ctx) })
	}
	if s.backend != nil {
		running.Go(func() { probe(ctx, s.backend, s.log) })
	}
}

// serve answers requests until ctx has ended and those that had come are
// answered, or until one side fails. The operator's side is the last to go.
func (s *Server) serve(ctx context.Context, running *sync.WaitGroup) error {
	sides := []*frontend{s.frontend}
	admin := ""
	if s.admin != nil {
		sides, admin = append(sides, s.admin), s.admin.listener.Addr().String()
	}
	served := make(chan error, len(sides))
	for _, side := range sides {
		running.Go(func() { served <- side.serve() })
	}
	s.log.Info("serving", "address", s.Addr().String(), "admin", admin, "threads", s.store.Path())
	left := len(sides)
	var err error
	select {
	case err = <-served:
		left--
	case <-ctx.Done():
		s.log.Info("stopping", "reason", context.Cause(ctx).Error())
	}
	s.supervisor.stopping()
	if s.workspace != nil {
		s.workspace.api.Stop() // requests that wait for events would hold up the stop
	}
	for _, side := range sides {
		side.stop()
	}
	for range left {
		err = errors.Join(err, <-served)
	}
	return err
}
