package runtime

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

const (
	// interruptTime bounds how long the upstream may take to acknowledge a stop.
	interruptTime = 35 * time.Second
	// stopGrace is how long an interrupted turn has for its last event.
	stopGrace = 10 * time.Second
	// usageTime bounds the question for the context's usage (section 7.1).
	usageTime = time.Second
)

// stopping is how far the stop of a task has come.
type stopping struct {
	calling bool       // the upstream is being asked
	done    chan error // what it said
	acked   bool       // it has agreed
	tries   int
	again   *time.Timer // until it is asked again, or the grace of an agreed stop
}

// follow writes down what the session tells of the turn until it is over or the
// runtime stops. The task is over, uncertain or, if the runtime stops, as it was.
func (e *execution) follow(ctx context.Context) {
	e.stopping.done = make(chan error, 1)
	save, again := stoppedTimer(), stoppedTimer()
	e.stopping.again = again
	defer save.Stop()
	defer again.Stop()
	if e.stopping.calling {
		e.callInterrupt(ctx)
	}
	events := e.session.Events()
	for {
		select {
		case event, ok := <-events:
			if !ok || e.handle(ctx, event) {
				return
			}
			e.schedule(save)
		case <-save.C:
			e.save(ctx)
		case <-e.asked:
			if e.stopAsked(ctx) {
				return
			}
		case err := <-e.stopping.done:
			if e.interrupted(ctx, err) {
				return
			}
		case <-again.C:
			if e.stopAgain(ctx) {
				return
			}
		case <-ctx.Done():
			e.save(context.WithoutCancel(ctx))
			return
		}
	}
}

// stoppedTimer returns a timer that does not run.
func stoppedTimer() *time.Timer {
	timer := time.NewTimer(math.MaxInt64)
	timer.Stop()
	return timer
}

// schedule sets the timer for the next write of the reply, unless it is set or
// there is nothing to write.
func (e *execution) schedule(save *time.Timer) {
	if !e.draft.dirty || e.draft.scheduled {
		return
	}
	e.draft.scheduled = true
	save.Reset(max(saveBurst, e.draft.pause()-e.r.now().Sub(e.draft.saved)))
}

// save writes how far the reply has come. A write that fails is made up for by
// the next one.
func (e *execution) save(ctx context.Context) {
	e.draft.scheduled = false
	if !e.draft.dirty || e.uncertain {
		return
	}
	e.draft.dirty, e.draft.saved = false, e.r.now()
	if err := e.r.opts.Store.Stream(ctx, e.ref, e.draft.stored()); err != nil && !over(err) {
		e.draft.dirty = true
		e.r.log.Error("a part of a reply could not be stored", "task", e.ref.ID, "error", err)
	}
}

// handle writes one event down and reports whether the execution is over.
func (e *execution) handle(ctx context.Context, event hermes.Event) bool {
	if hermes.Terminal(event) {
		e.ended(ctx, event)
		return true
	}
	if e.draft.take(event) {
		return !e.proven(ctx)
	}
	switch event := event.(type) {
	case hermes.Started:
		return !e.proven(ctx)
	case hermes.Asked:
		return !e.ask(ctx, event.Question)
	case hermes.Answered:
		return !e.closeQuestion(ctx, event)
	case hermes.Rebound:
		return !e.rebind(ctx, event.State)
	case hermes.Used:
		e.usage(ctx, event.Usage)
	case hermes.Disconnected:
		return e.disconnected(ctx)
	case hermes.Reconnected:
		return e.reconnected(ctx, event.State)
	}
	return false
}

// proven notes that the turn is seen executing: an uncertain task runs again, and
// its prompt was taken. It reports whether the task still is this execution's.
func (e *execution) proven(ctx context.Context) bool {
	if !e.uncertain {
		return true
	}
	ok := e.keep(ctx, func(ctx context.Context) error {
		if err := e.r.opts.Store.Resume(ctx, e.ref); err != nil {
			return err
		}
		return e.r.opts.Store.Acknowledge(ctx, e.ref)
	})
	e.uncertain = !ok
	return ok
}

// disconnected makes the task uncertain while its connection is restored. A task
// that somebody asked more than once to stop ends here.
func (e *execution) disconnected(ctx context.Context) bool {
	e.setOnline(false)
	e.save(ctx)
	if e.task.CancelRequested && e.forced() {
		e.endLocally(ctx)
		return true
	}
	return !e.lose(ctx, textDisconnected)
}

func (e *execution) reconnected(ctx context.Context, state hermes.State) bool {
	e.setOnline(true)
	if !e.rebind(ctx, state) {
		return true
	}
	return state.Running && !e.proven(ctx)
}

func (e *execution) setOnline(online bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.online = online
}

// rebind stores the session's new ids.
func (e *execution) rebind(ctx context.Context, state hermes.State) bool {
	bound := boundTo(e.node, state)
	return e.keep(ctx, func(ctx context.Context) error { return e.r.opts.Store.Rebind(ctx, e.ref, bound) })
}

// ended writes the turn's end down.
func (e *execution) ended(ctx context.Context, event hermes.Event) {
	e.setOnline(false)
	switch event := event.(type) {
	case hermes.Completed:
		e.complete(ctx, event)
	case hermes.Failed:
		e.fail(ctx, event.Err)
	case hermes.Interrupted:
		e.interruptedUpstream(ctx, event.Text)
	case hermes.NotAccepted:
		e.notAccepted(ctx)
	case hermes.Lost:
		e.lost(ctx, event.Err)
	}
}

// interruptedUpstream ends a task that the upstream interrupted. Of an uncertain
// turn that left no text it only says that nobody executes it any longer and that
// there is no answer yet: the task stays uncertain (section 6.10, step 5).
func (e *execution) interruptedUpstream(ctx context.Context, text string) {
	if e.uncertain && text == "" && !e.stopping.acked && !e.cancelled(ctx) {
		e.loseFor(ctx, textUnanswered)
		return
	}
	if text != "" {
		e.draft.text = []byte(text)
	}
	e.finish(ctx, store.Ending{Status: workspace.TaskInterrupted, Draft: e.draft.stored(), Proven: true})
}

// notAccepted ends a task whose prompt is known not to have arrived. It is not
// sent again: that is for the user to decide.
func (e *execution) notAccepted(ctx context.Context) {
	if e.cancelled(ctx) {
		e.finish(ctx, store.Ending{Status: workspace.TaskInterrupted, Draft: e.draft.stored()})
		return
	}
	e.finish(ctx, store.Ending{Status: workspace.TaskFailed, Draft: e.draft.stored(), Error: textNotAccepted})
}

// lost leaves a task uncertain of which nothing is known, unless its stop was
// agreed to or cannot be waited for any longer.
func (e *execution) lost(ctx context.Context, err *hermes.Error) {
	switch {
	case e.stopping.acked:
		e.finish(ctx, store.Ending{Status: workspace.TaskInterrupted, Draft: e.draft.stored()})
	case e.cancelled(ctx) && e.forced():
		e.endLocally(ctx)
	case e.cancelled(ctx):
		e.loseFor(ctx, textUnconfirmed)
	case err != nil:
		e.loseFor(ctx, explain(err))
	default:
		e.loseFor(ctx, textDisconnected)
	}
}

// cancelled reports whether somebody asked to stop the task.
func (e *execution) cancelled(ctx context.Context) bool {
	if e.task.CancelRequested {
		return true
	}
	task, err := e.r.opts.Store.Task(ctx, e.ref.Owner, e.ref.ID)
	e.task.CancelRequested = err == nil && task.CancelRequested
	return e.task.CancelRequested
}

// complete ends a task that was answered.
func (e *execution) complete(ctx context.Context, event hermes.Completed) {
	if strings.TrimSpace(event.Text) != "" {
		e.draft.text = []byte(event.Text)
	}
	ending := store.Ending{Status: workspace.TaskComplete, Draft: e.draft.stored(), Proven: true}
	if event.Truncated {
		ending.Error, ending.Note = textTruncated, true
	}
	paths := e.produced()
	ending.Hold = len(paths) > 0
	var row workspace.Message
	ok := e.keep(ctx, func(ctx context.Context) (err error) {
		row, err = e.r.opts.Store.Finish(ctx, e.ref, ending)
		return err
	})
	if !ok {
		return
	}
	if ending.Hold {
		e.fetch(ctx, row, paths)
	}
	e.usage(ctx, e.lastUsage(ctx, event.Usage))
}

// lastUsage returns the usage that came with the answer, or asks for it.
func (e *execution) lastUsage(ctx context.Context, usage hermes.Usage) hermes.Usage {
	if usage.Used > 0 {
		return usage
	}
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	asked, err := e.session.Usage(ctx)
	if err != nil {
		e.r.log.Debug("the usage of a context is not known", "task", e.ref.ID, "error", err)
	}
	return asked
}

// usage stores how full the context is, if that is known (section 2.16).
func (e *execution) usage(ctx context.Context, usage hermes.Usage) {
	if usage.Used <= 0 {
		return
	}
	record := workspace.ContextUsage{UsedTokens: usage.Used, LimitTokens: usage.Max}
	if usage.Max > 0 {
		record.Percent = math.Round(float64(usage.Used)*1000/float64(usage.Max)) / 10
	}
	if err := e.r.opts.Store.SaveUsage(ctx, e.ref.Owner, e.task.ConversationID, record); err != nil {
		e.r.log.Warn("the usage of a context could not be stored", "task", e.ref.ID, "error", err)
	}
}
