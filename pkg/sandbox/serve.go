package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/untrusted"
)

// do waits for its turn and has a request served.
func (r *Reader) do(ctx context.Context, req request) (*response, error) {
	if err := precheck(req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.life, func() { cancel(ErrClosed) })()
	select {
	case r.turn <- struct{}{}:
		defer r.release()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.life.Err() != nil {
		return nil, ErrClosed
	}
	return r.serve(ctx, req)
}

// precheck turns down what no child could serve, or a frame not carry.
func precheck(req request) error {
	if len(req.Path) > maxPathBytes || !utf8.ValidString(req.Path) {
		return ErrNotReadable
	}
	if len(req.Pattern) > maxPatternBytes || !utf8.ValidString(req.Pattern) {
		return fmt.Errorf("%w: %s", ErrInvalid, patternRule)
	}
	return nil
}

// release gives the turn to the next request.
func (r *Reader) release() { <-r.turn }

// serve has a request served by a child that is fit for it.
func (r *Reader) serve(ctx context.Context, req request) (*response, error) {
	if err := r.ensureChild(ctx); err != nil {
		return nil, err
	}
	limits := r.setup.Limits
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time+answerGrace, ErrTimeout)
	defer cancel()
	r.nextID++
	req.ID = r.nextID
	req.BudgetMS = budget(ctx, limits.Time).Milliseconds()
	var resp response
	err := r.child.exchange(ctx, req, &resp)
	if err == nil {
		err = vet(limits, r.setup.Roots, req, resp)
	}
	if err != nil {
		r.log.WarnContext(ctx, "confined reader is replaced", "operation", req.Op, "error", err)
		r.dismiss()
		return nil, err
	}
	if r.served++; r.served >= limits.Requests {
		r.dismiss()
	}
	if resp.Code != "" {
		return nil, refused(resp)
	}
	return &resp, nil
}

// budget is how long the child may go on by itself, so that a search that is
// cut off by the caller's deadline can still answer with what it has.
func budget(ctx context.Context, most time.Duration) time.Duration {
	deadline, _ := ctx.Deadline()
	return max(0, min(most, time.Until(deadline)*9/10))
}

// refused returns the error that a response stands for.
func refused(resp response) error {
	err := refusals()[resp.Code]
	if resp.Detail == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, untrusted.FirstLine(resp.Detail, maxDetail))
}

// ensureChild starts a child if there is none, or if it has ended by itself
// since its last answer.
func (r *Reader) ensureChild(ctx context.Context) error {
	if r.child != nil && r.child.isGone() {
		r.log.WarnContext(ctx, "confined reader had ended", "state", r.child.cmd.ProcessState.String())
		r.dismiss()
	}
	if r.child != nil {
		return nil
	}
	child, err := r.start(ctx)
	if err != nil {
		return err
	}
	r.child = child
	return nil
}

// dismiss kills the child, if there is one.
func (r *Reader) dismiss() {
	if r.child == nil {
		return
	}
	r.child.discard()
	r.last, r.child, r.served = r.child, nil, 0
}

// start returns a child that has confined itself and proved it.
func (r *Reader) start(ctx context.Context) (*process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, ErrTimeout)
	defer cancel()
	if err := r.awaitLast(ctx); err != nil {
		return nil, err
	}
	child, err := launch(r.childArg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChild, err)
	}
	var answer ready
	err = child.exchange(ctx, r.setup, &answer)
	if err == nil {
		err = answer.check()
	}
	if err != nil {
		child.discard()
		r.last = child
		return nil, err
	}
	return child, nil
}

// awaitLast waits until the child before is gone. One that hangs in the kernel
// cannot be killed; at least there is never more than one of them.
func (r *Reader) awaitLast(ctx context.Context) error {
	if r.last == nil {
		return nil
	}
	select {
	case <-r.last.exited:
		r.last = nil
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// check returns why a child is not fit to be asked anything.
func (a ready) check() error {
	if a.Error != "" {
		return fmt.Errorf("%w: %s", ErrChild, untrusted.FirstLine(a.Error, maxDetail))
	}
	if len(a.Broken) > 0 {
		return fmt.Errorf("%w: %s", ErrNotConfined, untrusted.FirstLine(strings.Join(a.Broken, "; "), maxDetail))
	}
	return nil
}
