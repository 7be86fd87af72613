package openai

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/markup"
)

// Backend answers with a model behind a server of chat completions. It
// implements [autoreply.Backend].
type Backend struct {
	opts   Options
	client client
	clean  markup.Filter
	// harmless is set once the server has said that it is no agent.
	harmless atomic.Bool
	// newField is set once the server has refused max_tokens.
	newField atomic.Bool
}

var _ autoreply.Backend = (*Backend)(nil)

// New returns a Backend, or an error that names what is wrong with the options.
// It makes no request.
func New(opts Options) (*Backend, error) {
	base, err := opts.check()
	if err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	return &Backend{
		opts:   opts,
		client: newClient(opts.HTTP, base, opts.Key, opts.RequestTimeout),
		clean:  markup.New(),
	}, nil
}

// Close closes connections that are idle.
func (b *Backend) Close() error {
	b.client.http.CloseIdleConnections()
	return nil
}

// Probe reports whether the server can be reached, takes the key, and is no
// agent with tools of its own. It fails with a [*autoreply.Failure].
func (b *Backend) Probe(ctx context.Context) error {
	b.harmless.Store(false)
	if err := b.checkHarmless(ctx); err != nil {
		return err
	}
	resp, err := b.send(ctx, http.MethodGet, "models", nil)
	if err != nil && isUnknown(resp.status) && !isHermes(resp) {
		return nil
	}
	return err
}

// isUnknown reports whether a server does not know what it was asked. Not every
// server lists its models.
func isUnknown(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented
}

// isInTrouble reports whether a server says nothing of itself for now. What it
// does not know it says with another status.
func isInTrouble(status int) bool {
	return isBusy(status) || status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// checkHarmless asks, once, whether the server is an agent. One that does not
// know the question is none. It is asked before any text is sent; responses are
// watched for signs of an agent all the same.
func (b *Backend) checkHarmless(ctx context.Context) error {
	if b.harmless.Load() {
		return nil
	}
	resp, err := b.send(ctx, http.MethodGet, "capabilities", nil)
	if err != nil && (resp.status == 0 || isInTrouble(statusOf(resp)) || isHermes(resp)) {
		return err
	}
	b.harmless.Store(true)
	return nil
}

// Answer lets the model answer, with the tools that the budget allows. It fails
// with a [*autoreply.Failure]; what was looked at is told all the same.
//
// Tokens are counted as the server reports them; where it does not, a token is
// taken to be three bytes, which is more than they mostly are. The bound on
// tokens is kept by these numbers: no request is made that could not be
// answered within it.
func (b *Backend) Answer(ctx context.Context, q autoreply.Question) (autoreply.Answer, error) {
	if err := b.checkHarmless(ctx); err != nil {
		return autoreply.Answer{}, asFailure(ctx, err, 0)
	}
	t, err := b.newTalk(q)
	if err != nil {
		return autoreply.Answer{}, asFailure(ctx, err, 0)
	}
	text, err := t.answer(ctx)
	if err != nil {
		return autoreply.Answer{Tools: t.run.Uses()}, asFailure(ctx, err, t.tokens)
	}
	return autoreply.Answer{Text: text, Tools: t.run.Uses(), Tokens: t.tokens}, nil
}

// asFailure returns err as a failure with what it cost. What happened because
// the caller gave up says so.
func asFailure(ctx context.Context, err error, tokens int) *autoreply.Failure {
	failure, ok := errors.AsType[*autoreply.Failure](err)
	if !ok {
		failure = autoreply.Failf(autoreply.ReasonInternal, true, "%w", err)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		failure = autoreply.Failf(autoreply.ReasonInternal, true, "given up: %w", ctx.Err())
	}
	failure.Tokens = tokens
	return failure
}
