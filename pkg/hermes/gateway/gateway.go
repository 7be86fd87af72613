// Package gateway speaks with a Hermes server: REST for what can be asked at any
// time, and JSON-RPC over one WebSocket per session for what a turn needs
// (hermes-upstream section 3). It implements [hermes.Upstream].
//
// Which dialect a server speaks is found by what it does, never by its version:
// unknown methods and parameters are refused, and then done without. Redirects
// are refused, and so are addresses that only somebody who means harm would give
// (workspace section 9.8).
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/hermes"
)

// Config says which server to speak with, and how.
type Config struct {
	// URL is the server's address: http or https, perhaps with a path in front of
	// its own, without user, query and fragment.
	URL string
	// Token is for servers in token mode. Without one it is read from the server's
	// root page, where `hermes dashboard` shows it.
	Token string
	// Username and Password are for servers that demand signing in.
	Username, Password string
	// Source is this installation's private word, by which its hidden sessions are
	// told from others.
	Source string
	// AnyAddress also allows link-local and metadata addresses.
	AnyAddress bool
	// Timers are the defaults where they are zero.
	Timers Timers
	// Logger hears of what is odd; it may be nil. It never hears texts or
	// credentials.
	Logger *slog.Logger
	// Dial replaces the way to the server, for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Timers are how long the client waits (hermes-upstream section 9).
type Timers struct {
	Dial      time.Duration // for a connection: 5 s
	Ready     time.Duration // for a connection's first frame: 20 s
	Call      time.Duration // for an answer: 30 s
	Resume    time.Duration // for the answer to a resume: 60 s
	Answer    time.Duration // for the answer to an approval: 310 s
	Heartbeat time.Duration // between signs of life that are asked for: 15 s
	Dead      time.Duration // without any sign of life: 45 s
	Silence   time.Duration // of a turn until the session is looked at: 30 s
	Restore   time.Duration // until a lost connection is given up: 2 min
}

// withDefaults fills in what is zero.
func (t Timers) withDefaults() Timers {
	for _, each := range []struct {
		timer *time.Duration
		value time.Duration
	}{
		{&t.Dial, 5 * time.Second}, {&t.Ready, 20 * time.Second}, {&t.Call, 30 * time.Second}, {&t.Resume, time.Minute},
		{&t.Answer, 310 * time.Second}, {&t.Heartbeat, 15 * time.Second}, {&t.Dead, 45 * time.Second},
		{&t.Silence, 30 * time.Second}, {&t.Restore, 2 * time.Minute},
	} {
		if *each.timer == 0 {
			*each.timer = each.value
		}
	}
	return t
}

// Client speaks with one server. It may be used by many at once.
type Client struct {
	base   *url.URL
	config Config
	timers Timers
	log    *slog.Logger
	http   *http.Client
	signIn *signIn
	big    chan struct{} // taken while a large frame is read

	mu       sync.Mutex
	sessions map[*session]bool
	dropped  map[string]bool // parameters that the server does not know
	closed   bool
}

var _ hermes.Upstream = (*Client)(nil)

// New returns a client. It connects to nothing yet.
func New(config Config) (*Client, error) {
	base, err := parseURL(config.URL)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("make a cookie jar: %w", err)
	}
	c := &Client{
		base: base, config: config, timers: config.Timers.withDefaults(), log: config.Logger,
		big: make(chan struct{}, bigFrames), sessions: make(map[*session]bool), dropped: make(map[string]bool),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.http = &http.Client{
		Jar: jar,
		Transport: &http.Transport{
			DialContext:           c.dialer(),
			ResponseHeaderTimeout: c.timers.Call,
			TLSHandshakeTimeout:   c.timers.Dial,
			IdleConnTimeout:       time.Minute,
			MaxIdleConnsPerHost:   4,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.signIn = newSignIn(c)
	return c, nil
}

// parseURL checks the address of a server.
func parseURL(address string) (*url.URL, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("hermes address: not a URL")
	}
	switch {
	case base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("hermes address: scheme %.20q is neither http nor https", base.Scheme)
	case base.Hostname() == "":
		return nil, errors.New("hermes address: it names no host")
	case base.User != nil:
		return nil, errors.New("hermes address: it has a user\nhint: give the user and the password apart from it")
	case base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		return nil, errors.New("hermes address: it has a query or a fragment")
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = ""
	return base, nil
}

// Close ends every session's connection and waits for what belongs to them.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	open := make([]*session, 0, len(c.sessions))
	for s := range c.sessions {
		open = append(open, s)
	}
	c.mu.Unlock()
	for _, s := range open {
		_ = s.Close()
	}
	c.http.CloseIdleConnections()
	return nil
}

// keep remembers an open session, unless the client is closed.
func (c *Client) keep(s *session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &hermes.Error{Kind: hermes.KindUnavailable, Doing: "open session", Text: "the client is closed"}
	}
	c.sessions[s] = true
	return nil
}

// forget is called by a session that was closed.
func (c *Client) forget(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s)
}
