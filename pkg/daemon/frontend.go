package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/newos4/relay/pkg/config"
)

// maxHeaderBytes bounds the header of a request; the contract's are small.
const maxHeaderBytes = 16 << 10

// silenceGrace is how long a stop waits for connections that have not sent a
// whole header yet. A client in mid-sentence finishes within it; one that keeps
// a connection for later must not delay the stop.
const silenceGrace = 500 * time.Millisecond

// frontend serves HTTP on one listener and knows when it has answered.
type frontend struct {
	server    *http.Server
	listener  net.Listener
	log       *slog.Logger
	grace     time.Duration
	answering sync.WaitGroup

	mu     sync.Mutex
	silent map[net.Conn]bool // connections that have sent no request yet
}

// listen opens a listener; the hint says what to do if somebody else has.
func listen(ctx context.Context, address, hint string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listening: %w\nhint: %s", err, hint)
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return listener, nil
}

// newFrontend serves on the listener. It bounds what a client may cost that
// sends slowly or never ends.
func newFrontend(listener net.Listener, cfg config.HTTP, handler http.Handler, log *slog.Logger) *frontend {
	f := &frontend{listener: listener, log: log, grace: cfg.ShutdownTimeout, silent: make(map[net.Conn]bool)}
	f.server = &http.Server{
		Handler:           f.count(handler),
		ReadHeaderTimeout: cfg.HeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         f.follow,
		// OPTIONS * would be answered with an empty 200.
		DisableGeneralOptionsHandler: true,
		// What net/http has to say is rare and matters, such as that no file
		// descriptor is left for another connection.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return f
}

// count lets stop wait for every handler, also for those whose connection was
// cut.
func (f *frontend) count(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.answering.Add(1)
		defer f.answering.Done()
		handler.ServeHTTP(w, r)
	})
}

func (f *frontend) follow(conn net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateNew {
		f.silent[conn] = true
		return
	}
	delete(f.silent, conn)
}

// serve answers requests until stop is called or serving fails.
func (f *frontend) serve() error {
	if err := f.server.Serve(f.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// stop lets requests that are being answered finish within the grace period,
// and returns when no handler runs any more.
func (f *frontend) stop() {
	grace, cancel := context.WithTimeout(context.Background(), f.grace)
	defer cancel()
	hangUp := time.AfterFunc(min(silenceGrace, f.grace/2), f.closeSilent)
	defer hangUp.Stop()
	if err := f.server.Shutdown(grace); err != nil {
		f.log.Warn("requests were cut off, they took too long to finish", "error", err)
		if err := f.server.Close(); err != nil {
			f.log.Warn("closing connections", "error", err)
		}
	}
	f.answering.Wait()
}

func (f *frontend) closeSilent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.silent {
		_ = conn.Close() // there is nobody to tell
	}
}
