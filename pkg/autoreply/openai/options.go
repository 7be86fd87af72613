package openai

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/autoreply/tools"
)

// The defaults of [Options].
const (
	DefaultRounds         = 6
	DefaultParallel       = 8
	DefaultRetries        = 3
	DefaultRequestTimeout = time.Minute
	DefaultPromptBytes    = 48 << 10
	DefaultMaxTokens      = 4096
)

// Key is a provider's secret. It prints as a placeholder.
type Key string

// String hides the key from every formatted print.
func (k Key) String() string { return "[key]" }

// GoString hides the key from prints in Go's syntax.
func (k Key) GoString() string { return k.String() }

// LogValue hides the key from every structured log.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Options configure a [Backend]. Zero fields take their defaults.
type Options struct {
	// BaseURL is what "/chat/completions" is appended to; most end in "/v1". It
	// is http or https, without user, query and fragment. With a key it must be
	// https, unless its host is localhost or a loopback address; without a key,
	// plain http is left to the operator, who knows the network.
	BaseURL string
	// Model is the model's name, as the server knows it.
	Model string
	// Key is sent as a bearer token, unless it is empty.
	Key Key
	// Files are what the tools look at. With nil, the model gets no tools.
	Files tools.Files
	// HTTP has the connections for the requests: its transport is used, and
	// nothing else of it. Nil stands for a transport of the back end's own, with
	// the proxy of the environment.
	HTTP *http.Client
	// Rounds is how many requests of one answer offer tools. One more, without
	// tools, may follow. Default [DefaultRounds].
	Rounds int
	// Parallel is how many calls of one reply are made. Default [DefaultParallel].
	Parallel int
	// Retries is how often one request is repeated; below 0 never. Default
	// [DefaultRetries].
	Retries int
	// RequestTimeout bounds one request with its response. Default
	// [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// PromptBytes is how much of a thread the model is shown; the newest message
	// is, whatever its size. Default [DefaultPromptBytes].
	PromptBytes int
	// MaxTokens is how long one reply may be, reasoning included. Prompt and
	// reply together have to fit into the model's context. Default
	// [DefaultMaxTokens].
	MaxTokens int
	// Random is what tags are drawn from. Default crypto/rand.
	Random io.Reader
	// Now is the clock that a date in Retry-After is compared with.
	Now func() time.Time
	// Wait waits before a request is repeated, or returns the context's error.
	Wait func(ctx context.Context, d time.Duration) error
	// Jitter returns a random part of d, so that many programs do not come back
	// at the same moment.
	Jitter func(d time.Duration) time.Duration
}

// withDefaults returns o with its zero fields set.
func (o Options) withDefaults() Options {
	setDefault(&o.Rounds, DefaultRounds)
	setDefault(&o.Parallel, DefaultParallel)
	setDefault(&o.Retries, DefaultRetries)
	setDefault(&o.RequestTimeout, DefaultRequestTimeout)
	setDefault(&o.PromptBytes, DefaultPromptBytes)
	setDefault(&o.MaxTokens, DefaultMaxTokens)
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Jitter == nil {
		o.Jitter = func(d time.Duration) time.Duration { return mathrand.N(d + 1) }
	}
	return o
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check returns what is wrong with what the operator chose. It repeats neither
// the key nor a URL that may hold one.
func (o Options) check() (*url.URL, error) {
	if o.Model == "" {
		return nil, fmt.Errorf("openai: no model is set")
	}
	if strings.ContainsFunc(string(o.Key), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("openai: the key has characters other than printable ASCII")
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("openai: the base URL is not http://… or https://… with a host")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("openai: the base URL has a user, query or fragment; a key belongs into the key file")
	}
	if o.Key != "" && base.Scheme == "http" && !isLoopback(base.Hostname()) {
		return nil, fmt.Errorf("openai: the base URL %s would send the key in the clear; use https", base)
	}
	return base, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
