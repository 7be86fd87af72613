package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/blob"
	"github.com/newos4/relay/pkg/workspace/store"
)

// Options configure an API.
type Options struct {
	Store *store.Store
	// Files keeps the bytes of the library.
	Files *blob.Dir
	// Runtime executes runs; nil leaves them queued.
	Runtime Runtime
	// Upstreams reaches Hermes; nil is none, and serves no routes about nodes.
	Upstreams Upstreams
	// Voice serves the routes about voice, text-to-speech and speech-to-text.
	Voice bool
	// ShareVoiceKey hands the key of the duplex voices to every user, because
	// clients talk to that provider themselves (section 11, item 14).
	ShareVoiceKey bool
	// Quota bounds the libraries.
	Quota store.Quota
	// TrustedProxies and the rest of who a client is are the guard's business;
	// Scheme returns the scheme that a client used, for answers that come before
	// the guard. Nil is plain HTTP.
	Scheme func(*http.Request) string
	// Now is the clock; nil is the system's.
	Now    func() time.Time
	Logger *slog.Logger
}

// API is the workspace over HTTP.
type API struct {
	opts   Options
	users  account.Store
	usage  *usage
	prober *http.Client

	// stopped ends requests that only wait.
	stopped context.Context
	stop    context.CancelFunc
}

// New returns an API. It has to be closed.
func New(opts Options) *API {
	if opts.Runtime == nil {
		opts.Runtime = idle{}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Scheme == nil {
		opts.Scheme = func(*http.Request) string { return "http" }
	}
	stopped, stop := context.WithCancel(context.Background())
	return &API{
		opts: opts, users: opts.Store.Accounts(), usage: newUsage(), prober: newProber(),
		stopped: stopped, stop: stop,
	}
}

// Stop ends requests that only wait for events, with an answer. A server calls it
// when it begins to stop, so that they do not delay it.
func (a *API) Stop() { a.stop() }

// Close stops and lets go of connections.
func (a *API) Close() {
	a.stop()
	a.prober.CloseIdleConnections()
}

// Sweep removes files that a crash left on disk without a row.
func (a *API) Sweep(ctx context.Context) {
	removed, err := a.opts.Files.Sweep(ctx, a.opts.Now(), func(ctx context.Context, owner, name string) (bool, error) {
		return a.opts.Store.HasPath(ctx, workspace.OwnerID(owner), name)
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		a.opts.Logger.Warn("files that nothing refers to were not all removed", "error", err)
	}
	if removed > 0 {
		a.opts.Logger.Info("removed files that nothing refers to", "files", removed)
	}
}

func newName() string { return uuid.NewString() }

// Runtime executes what the store holds. Its methods but Answer must not wait.
type Runtime interface {
	// Wake says that tasks were created or changed (section 6.4).
	Wake()
	// Interrupt asks the upstream to stop tasks that are marked as cancelled
	// (section 6.9).
	Interrupt(tasks []workspace.Task)
	// Check looks at once what became of uncertain tasks (section 6.10).
	Check(tasks []workspace.Task)
	// Online reports whether there is a live connection of exactly the question's
	// task (section 6.11).
	Online(question workspace.Interaction) bool
	// Answer hands the answer of a question to the upstream. [ErrRejected] is a
	// definite no; after any other error nobody knows whether it arrived.
	Answer(ctx context.Context, owner workspace.OwnerID, question workspace.Interaction) error
}

// ErrRejected says that the upstream refused an answer, so that another may be
// tried.
var ErrRejected = errors.New("the upstream refused the answer")

// idle is the runtime of a server that executes nothing.
type idle struct{}

func (idle) Wake()                             {}
func (idle) Interrupt([]workspace.Task)        {}
func (idle) Check([]workspace.Task)            {}
func (idle) Online(workspace.Interaction) bool { return false }
func (idle) Answer(context.Context, workspace.OwnerID, workspace.Interaction) error {
	return ErrRejected
}
