// Package hermestest is a Hermes server for tests: the REST and the JSON-RPC
// surface of `hermes serve`, over a store of its own, doing what a test scripts
// (hermes-upstream section 7). It is written from the shapes of that page and of
// the releases that were looked at, never from what a client expects, and it
// refuses what the real one refuses.
//
// What a turn does is chosen by profile or session, never by the wording of a
// prompt.
package hermestest

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Dialect is which builds the server behaves like.
type Dialect string

// The dialects.
const (
	// Dialect019 is hermes-agent 0.19.0 as it was seen: no sequence numbers, no
	// ids of approvals, history from the oldest entry on, the profile of the
	// process in place of the session's, and refused upgrades instead of close
	// codes.
	Dialect019 Dialect = "0.19.0"
	// DialectOld is a build before 2026-09-14.
	DialectOld Dialect = "old"
	// DialectNew is a build since then: strict parameters and server requests.
	DialectNew Dialect = "new"
	// DialectGated also demands that clients announce what they can answer.
	DialectGated Dialect = "gated"
)

// Dialects returns all of them.
func Dialects() []Dialect { return []Dialect{Dialect019, DialectOld, DialectNew, DialectGated} }

// The credentials of a server, and what its launch profile is called.
const (
	Token    = "token-of-the-fake"
	Username = "operator"
	Password = "correct horse"
	Launch   = "default"
)

// Profile is one of the server's profiles.
type Profile struct {
	Name, DisplayName, Path, Model string
}

// Option changes a server before it starts.
type Option func(*Server)

// WithDialect sets the dialect; it is [DialectGated] otherwise.
func WithDialect(dialect Dialect) Option { return func(s *Server) { s.dialect = dialect } }

// WithSignIn demands a user and a password in place of a token.
func WithSignIn() Option { return func(s *Server) { s.gate = true } }

// WithProfiles sets the profiles beside the launch profile.
func WithProfiles(profiles ...Profile) Option {
	return func(s *Server) { s.profiles = append(s.profiles[:1:1], profiles...) }
}

// WithServerKind makes the server another chat server, which is no upstream.
func WithServerKind(kind string) Option { return func(s *Server) { s.kind = kind } }

// WithVersion sets the version that the server reports.
func WithVersion(version string) Option { return func(s *Server) { s.version = version } }

// InMemory makes the server reachable by [Server.Dial] alone, so that it can be
// used in bubbles of testing/synctest.
func InMemory() Option { return func(s *Server) { s.memory = newPipes() } }

// Server is a fake Hermes.
type Server struct {
	dialect Dialect
	gate    bool
	kind    string
	version string
	url     string
	memory  *pipes
	http    *http.Server
	ctx     context.Context // ends with the server
	down    atomic.Bool
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	profiles []Profile
	durable
	volatile
	faults
	journal
	quirks
}

// New starts a server on loopback, or in memory, which ends with the test. In a
// bubble of testing/synctest it must be closed by [Server.Close] before.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		dialect:  DialectGated,
		version:  "0.21.3",
		profiles: []Profile{{Name: Launch, Path: "/home/hermes/.hermes", Model: "scripted"}},
		ctx:      ctx,
	}
	for _, option := range options {
		option(s)
	}
	if s.dialect == Dialect019 {
		s.version = "0.19.0"
	}
	s.durable = newDurable()
	s.ringSize, s.recoveries, s.forgotten = ringEvents, make(map[string][]Step), make(map[string]bool)
	s.volatile = s.newVolatile()
	s.http = &http.Server{Handler: s.routes(), BaseContext: func(net.Listener) context.Context { return ctx }} //nolint:gosec // a test's server
	listener := s.listen(t)
	s.running.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve the fake Hermes: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); s.Close() })
	return s
}

// listen opens the server's listener and sets its URL.
func (s *Server) listen(t testing.TB) net.Listener {
	t.Helper()
	if s.memory != nil {
		s.url = "http://127.0.0.1:9119"
		return s.memory
	}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for the fake Hermes: %v", err)
	}
	s.url = "http://" + listener.Addr().String()
	return listener
}

// URL returns the server's address.
func (s *Server) URL() string { return s.url }

// Dial connects to a server in memory, whatever the address.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if s.down.Load() {
		return nil, syscall.ECONNREFUSED
	}
	return s.memory.dial(ctx)
}

// Close stops the server and waits for all that belongs to it.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.dropAll()
	s.mu.Unlock()
	_ = s.http.Close()
	s.running.Wait()
}

// spawn starts what Close waits for, unless the server is closed. The lock is
// held.
func (s *Server) spawn(f func()) {
	if !s.closed {
		s.running.Go(f)
	}
}

// Restart ends the process and starts it again: what is not durable is gone,
// turns among it, and in token mode the token stays, as an operator fixed it.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll()
	s.volatile = s.newVolatile()
}

// SetDown makes the server unreachable, or reachable again.
func (s *Server) SetDown(down bool) {
	s.down.Store(down)
	if down {
		s.DropConnections()
	}
}

// DropConnections cuts every WebSocket connection without a close frame.
func (s *Server) DropConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.drop()
	}
}

// SetProfiles replaces the profiles beside the launch profile.
func (s *Server) SetProfiles(profiles ...Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles = append(s.profiles[:1:1], profiles...)
}

// hasProfile reports whether name is one of the profiles. The lock is held.
func (s *Server) hasProfile(name string) bool {
	for _, profile := range s.profiles {
		if profile.Name == name {
			return true
		}
	}
	return false
}

// hex returns n random hexadecimal digits.
func hex(n int) string {
	const digits = "0123456789abcdef"
	raw := make([]byte, n)
	_, _ = rand.Read(raw)
	var b strings.Builder
	for _, c := range raw {
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// pipes is a listener of connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dial.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns the address of every pipe.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9119} }
