package hermesapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/hermes/defuse"
)

// DefaultProbeEvery is how long the server's list of tools is trusted.
const DefaultProbeEvery = 10 * time.Minute

// maxExcerpts is how many passages of the public files are sent along.
const maxExcerpts = 6

// Searcher finds passages, as a [passage.Index] does.
type Searcher interface {
	Search(ctx context.Context, question string, n int) ([]passage.Passage, error)
	Close() error
}

// Options says which server answers.
type Options struct {
	// BaseURL is the server's address, as http://127.0.0.1:8642, with or without
	// a profile's prefix, with or without /v1 at its end. With a key it must be
	// https, unless its host is localhost or a loopback address.
	BaseURL string
	// Key is the server's bearer key.
	Key string
	// Model is asked for by name; "" asks for none, which suits most servers.
	Model string
	// AllowedTools are the names of tools that are harmless all the same. Even
	// looking something up in the web is a way out for what strangers wrote.
	AllowedTools []string
	// Passages finds what is sent of the public files, and is closed with the
	// back end. Nil sends nothing.
	Passages Searcher
	// ProbeEvery is how long the list of tools is trusted. Default
	// [DefaultProbeEvery].
	ProbeEvery time.Duration
	// Client sends the requests; of its fields, the redirect policy and the
	// cookie jar are not used. It should have no time-out: an answer takes as
	// long as its context lets it. Nil stands for one that dials in at most 5 s.
	Client *http.Client
	// Now is the clock. Nil stands for [time.Now].
	Now func() time.Time
	// Random is where the lines around data come from. Nil stands for
	// crypto/rand.
	Random io.Reader
}

// Backend is an [autoreply.Backend] that asks a Hermes API server.
type Backend struct {
	base     string // without /v1
	key      string
	model    string
	allowed  []string
	passages Searcher
	every    time.Duration
	client   *http.Client
	now      func() time.Time
	random   io.Reader

	turn     chan struct{} // held by the one look at the tools under way, and what follows is its
	provedAt time.Time     // when the tools were harmless, zero if they were not
}

// New returns a back end. It fails when the address or the key is malformed, and
// repeats neither a key nor a password in the error.
func New(o Options) (*Backend, error) {
	base, err := parseBase(o.BaseURL, o.Key != "")
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Key, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) || r == ' ' }) {
		return nil, errors.New("the key of the Hermes API server holds characters that no key has")
	}
	b := &Backend{
		base:     base,
		key:      o.Key,
		model:    o.Model,
		allowed:  o.AllowedTools,
		passages: o.Passages,
		every:    o.ProbeEvery,
		client:   confine(o.Client),
		now:      o.Now,
		random:   o.Random,
		turn:     make(chan struct{}, 1),
	}
	if b.every <= 0 {
		b.every = DefaultProbeEvery
	}
	if b.now == nil {
		b.now = time.Now
	}
	if b.random == nil {
		b.random = rand.Reader
	}
	return b, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func parseBase(address string, hasKey bool) (string, error) {
	base, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the address of the Hermes API server is malformed")
	}
	if base.User != nil {
		return "", errors.New("the address of the Hermes API server holds a user: its key belongs elsewhere")
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return "", fmt.Errorf("%q is not the address of a Hermes API server: want http://HOST:PORT", address)
	}
	if hasKey && base.Scheme == "http" && !isLoopback(base.Hostname()) {
		return "", fmt.Errorf("%s would send the key of the Hermes API server in the clear; use https", address)
	}
	return strings.TrimSuffix(strings.TrimRight(base.String(), "/"), "/v1"), nil
}

// confine returns a client that sends requests to where it is told and nowhere
// else.
func confine(given *http.Client) *http.Client {
	var client http.Client
	if given != nil {
		client = *given
	}
	if client.Transport == nil {
		client.Transport = &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		}
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Jar = nil
	return &client
}

// Answer asks the server once. It fails with
//   - [autoreply.ReasonUnsafe] when its tools are not harmless,
//   - [autoreply.ReasonRefused] when it refuses the key or the request,
//   - [autoreply.ReasonUnavailable] when it cannot be reached, is busy, fails, or
//     says what cannot be understood,
//   - [autoreply.ReasonCutOff] and [autoreply.ReasonNoAnswer] when what it says is
//     no whole answer, whatever the status,
//   - [autoreply.ReasonBudget] when not even the newest message may be sent,
//   - [autoreply.ReasonTimeout] at the context's deadline.
//
// Of the budget, Tokens bounds the prompt, in which each code point counts as
// one, unless it is 0, and Bytes the excerpts.
func (b *Backend) Answer(ctx context.Context, q autoreply.Question) (autoreply.Answer, error) {
	if err := b.prove(ctx, false); err != nil {
		return autoreply.Answer{}, err
	}
	excerpts, err := b.search(ctx, q)
	if err != nil {
		return autoreply.Answer{}, err
	}
	delimiter, err := newDelimiter(b.random)
	if err != nil {
		return autoreply.Answer{}, err
	}
	written, err := newPrompt(q, excerpts, delimiter)
	if err != nil {
		return autoreply.Answer{}, err
	}
	answer, err := b.complete(ctx, q.Thread, written)
	if err != nil {
		return autoreply.Answer{}, err
	}
	answer.Text = defuse.Restore(answer.Text)
	for _, path := range written.sources {
		answer.Tools = append(answer.Tools, autoreply.ToolUse{Name: "read_file", Target: path, Outcome: "ok"})
	}
	return answer, nil
}

// search returns what our own reader finds for the newest messages.
func (b *Backend) search(ctx context.Context, q autoreply.Question) ([]passage.Passage, error) {
	if b.passages == nil {
		return nil, nil
	}
	found, err := b.passages.Search(ctx, passage.Question(q.Messages), maxExcerpts)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, autoreply.Failf(autoreply.ReasonTimeout, true, "%w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for excerpts: %w", err)
	}
	return found, nil
}

// Close closes the server's connections and frees the index.
func (b *Backend) Close() error {
	b.client.CloseIdleConnections()
	if b.passages == nil {
		return nil
	}
	return b.passages.Close()
}
