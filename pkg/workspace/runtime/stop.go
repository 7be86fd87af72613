package runtime

import (
	"context"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// stopAsked begins to stop the task, if the store has it as cancelled, and
// reports whether the execution is over: it is when it cannot be confirmed and
// somebody asked again (section 6.9).
func (e *execution) stopAsked(ctx context.Context) bool {
	if !e.cancelled(ctx) {
		return false
	}
	if e.forced() && (!e.isOnline() || e.stopping.tries > 0) {
		e.endLocally(ctx)
		return true
	}
	if !e.stopping.acked {
		e.interrupt(ctx)
	}
	return false
}

func (e *execution) isOnline() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.online
}

// interrupt asks the upstream to stop the turn, unless that goes on already.
func (e *execution) interrupt(ctx context.Context) {
	if e.stopping.calling {
		return
	}
	e.stopping.calling = true
	if e.stopping.done != nil { // else follow begins with it
		e.callInterrupt(ctx)
	}
}

func (e *execution) callInterrupt(ctx context.Context) {
	session, done := e.session, e.stopping.done
	e.r.group.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, interruptTime)
		defer cancel()
		done <- session.Interrupt(ctx)
	})
}

// interrupted takes what the upstream said to a stop. When it agreed, the turn has
// a moment for its last event; when nobody knows, the task is uncertain and the
// upstream is asked again (section 6.9).
func (e *execution) interrupted(ctx context.Context, err error) bool {
	e.stopping.calling = false
	if err == nil {
		e.stopping.acked = true
		e.stopping.again.Reset(stopGrace)
		return false
	}
	if ctx.Err() != nil {
		return true
	}
	e.r.log.Warn("a stop was not confirmed", "task", e.ref.ID, "error", err)
	if e.forced() {
		e.endLocally(ctx)
		return true
	}
	e.stopping.again.Reset(backOff(e.stopping.tries))
	e.stopping.tries++
	e.save(ctx)
	return !e.lose(ctx, textUnconfirmed)
}

// stopAgain asks the upstream again, or ends a task whose stop was agreed to and
// whose last event does not come.
func (e *execution) stopAgain(ctx context.Context) bool {
	if !e.stopping.acked {
		e.interrupt(ctx)
		return false
	}
	e.finish(ctx, store.Ending{Status: workspace.TaskInterrupted, Draft: e.draft.stored()})
	return true
}
