package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// execution is one goroutine's work on one task: it executes a queued one, or
// checks an uncertain one, until the task is over, uncertain, or back in the
// queue.
type execution struct {
	r    *Runtime
	task workspace.Task
	ref  store.Ref
	node workspace.NodeID
	// upstream is the server that the task is executed on, once it is known.
	upstream hermes.Upstream
	draft    draft
	// uncertain says that the store has the task as uncertain.
	uncertain bool
	stopping  stopping

	mu sync.Mutex
	// session is the live connection, and questions are those that it has open.
	session   hermes.Session
	questions map[string]hermes.Question
	online    bool
	// stops is how often somebody asked to stop the task, signalled by asked.
	stops int
	asked chan struct{}
	// preparing ends what comes before the submission when the task is stopped.
	preparing context.CancelFunc
}

func newExecution(r *Runtime, task workspace.Task, stops int) *execution {
	return &execution{
		r: r, task: task, ref: store.RefOf(task), stops: stops,
		questions: make(map[string]hermes.Question), asked: make(chan struct{}, 1),
	}
}

// stop tells the execution that somebody asked to stop its task for the given
// time.
func (e *execution) stop(stops int) {
	e.mu.Lock()
	e.stops = max(e.stops, stops)
	preparing := e.preparing
	e.mu.Unlock()
	if preparing != nil {
		preparing()
	}
	select {
	case e.asked <- struct{}{}:
	default:
	}
}

// forced reports whether somebody asked to stop the task more than once.
func (e *execution) forced() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stops > 1
}

// run executes or checks the task.
func (e *execution) run(ctx context.Context) {
	if e.task.Status == workspace.TaskUncertain {
		e.check(ctx)
	} else {
		e.execute(ctx)
	}
	e.close()
}

// close lets go of the session, if there is one.
func (e *execution) close() {
	e.mu.Lock()
	session := e.session
	e.session, e.online = nil, false
	e.mu.Unlock()
	if session == nil {
		return
	}
	if err := session.Close(); err != nil {
		e.r.log.Warn("a session was not closed", "task", e.ref.ID, "error", err)
	}
}

// keep writes until it succeeds, and reports whether it did: it does not when the
// write came too late or the runtime stops. What was seen upstream must not get
// lost because a disk was full for a moment.
func (e *execution) keep(ctx context.Context, write func(ctx context.Context) error) bool {
	for tries := 0; ; tries++ {
		err := write(ctx)
		switch {
		case err == nil:
			return true
		case over(err), ctx.Err() != nil:
			e.r.log.Debug("a write came too late", "task", e.ref.ID, "error", err)
			return false
		}
		e.r.log.Error("a task's state could not be stored", "task", e.ref.ID, "error", err)
		if !sleep(ctx, backOff(tries)) {
			return false
		}
	}
}

// sleep lets d pass and reports whether it did.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// execute takes a queued task from its start to its end.
func (e *execution) execute(ctx context.Context) {
	var started store.Started
	ok := e.keep(ctx, func(ctx context.Context) (err error) {
		started, err = e.r.opts.Store.StartTask(ctx, e.ref)
		return err
	})
	if !ok || started.Ended {
		return
	}
	e.task, e.ref, e.node = started.Task, store.RefOf(started.Task), started.Agent.NodeID
	prompt, ok := e.prepare(ctx, started)
	if !ok {
		return
	}
	if e.submit(ctx, prompt) {
		e.follow(ctx)
	}
}

// prepare does all that comes before the submission, and marks the task as
// submitted. A failure here ends the task: nothing was sent.
func (e *execution) prepare(ctx context.Context, started store.Started) (hermes.Prompt, bool) {
	preparing, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	e.preparing = cancel
	e.mu.Unlock()
	bound, err := e.open(preparing, started)
	var references []string
	if err == nil {
		references, err = e.attach(preparing, started.Files)
	}
	e.mu.Lock()
	e.preparing = nil
	e.mu.Unlock()
	if err != nil {
		e.unprepared(ctx, preparing, err)
		return hermes.Prompt{}, false
	}
	return e.mark(ctx, bound, references)
}

// mark stores that the task is submitted, and returns its prompt.
func (e *execution) mark(ctx context.Context, bound store.Session, references []string) (hermes.Prompt, bool) {
	var material workspace.Material
	var ended bool
	ok := e.keep(ctx, func(ctx context.Context) (err error) {
		material, ended, err = e.r.opts.Store.SubmitTask(ctx, e.ref, bound)
		return err
	})
	if !ok || ended {
		return hermes.Prompt{}, false
	}
	e.task = material.Task
	marker, err := e.marker()
	if err != nil {
		e.fail(ctx, err)
		return hermes.Prompt{}, false
	}
	return hermes.Prompt{Marker: marker, Text: material.Prompt(), References: references}, true
}

// marker returns the marker of the task's one submission.
func (e *execution) marker() (hermes.Marker, error) {
	return hermes.NewMarker(string(e.task.RunID), string(e.task.CurrentMessageID))
}

// open opens the member's session, or makes one. A session that is not there any
// more is replaced by a new one, which knows nothing of the chat.
func (e *execution) open(ctx context.Context, started store.Started) (store.Session, error) {
	agent, stored := started.Agent, started.Binding.StoredID
	var err error
	if e.upstream, err = e.r.opts.Upstreams.Upstream(ctx, e.task.Owner, agent.NodeID); err != nil {
		return store.Session{}, err
	}
	if started.Binding.NodeID != agent.NodeID || started.Binding.Profile != agent.Profile {
		stored = "" // never the session of another agent
	}
	request := hermes.OpenRequest{Profile: agent.Profile, StoredID: stored, Title: "relay " + string(e.task.ConversationID) + " " + string(agent.ID)}
	session, err := e.upstream.Open(ctx, request)
	if stored != "" && hermes.KindOf(err) == hermes.KindNotFound {
		stored, request.StoredID = "", ""
		session, err = e.upstream.Open(ctx, request)
	}
	if err != nil {
		return store.Session{}, err
	}
	e.mu.Lock()
	e.session, e.online = session, true
	e.mu.Unlock()
	bound := boundTo(agent.NodeID, session.State())
	bound.Profile, bound.Fresh = agent.Profile, stored == ""
	return bound, nil
}

func boundTo(node workspace.NodeID, state hermes.State) store.Session {
	return store.Session{NodeID: node, Profile: state.Profile, StoredID: state.StoredID, RuntimeID: state.RuntimeID, Aliases: state.Aliases}
}

// errFiles says that a file of the request could not be read.
var errFiles = errors.New("a file of the message cannot be read")

// attach hands the files of the user's message over, and returns what the prompt
// has to name (section 6.12).
func (e *execution) attach(ctx context.Context, files []store.StoredFile) ([]string, error) {
	var references []string
	for _, f := range files {
		if e.r.opts.Files == nil {
			return nil, errFiles
		}
		data, err := e.r.opts.Files.Read(ctx, e.task.Owner, f.Path)
		if err != nil {
			e.r.log.Warn("a file of a message could not be read", "file", f.ID, "error", err)
			return nil, errFiles
		}
		reference, err := e.session.Attach(ctx, hermes.File{Name: f.Name, Type: f.MIMEType, Data: data})
		if err != nil {
			return nil, err
		}
		if reference != "" {
			references = append(references, reference)
		}
	}
	return references, nil
}

// unprepared ends a task that was not submitted: it goes back to the queue while
// its session is busy, is interrupted if it was stopped, and else failed.
func (e *execution) unprepared(ctx, preparing context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		return // the next start finds it
	case preparing.Err() != nil:
		e.finish(ctx, store.Ending{Status: workspace.TaskInterrupted})
	case hermes.ClassOf(err) == hermes.ClassBusy:
		e.requeue(ctx, err)
	default:
		e.fail(ctx, err)
	}
}

// requeue puts a task that was not submitted back into the queue for a while, but
// not for ever (section 7.3).
func (e *execution) requeue(ctx context.Context, err error) {
	if e.r.postpone(e.task.ID) > maxRefusals {
		e.fail(ctx, err)
		return
	}
	e.keep(ctx, func(ctx context.Context) error { return e.r.opts.Store.Refused(ctx, e.ref) })
}

// submit sends the prompt, and reports whether it may have been taken.
func (e *execution) submit(ctx context.Context, prompt hermes.Prompt) bool {
	err := e.session.Submit(ctx, prompt)
	switch {
	case err == nil:
		return e.keep(ctx, func(ctx context.Context) error { return e.r.opts.Store.Acknowledge(ctx, e.ref) })
	case ctx.Err() != nil:
		return false // the next start finds it
	case !definite(err):
		return e.lose(ctx, textLostAck)
	case hermes.ClassOf(err) == hermes.ClassBusy:
		e.requeue(ctx, err)
	default:
		e.fail(ctx, err)
	}
	return false
}

// definite reports whether the failure of a submission says for sure that nothing
// was admitted. An error that nobody knows says nothing.
func definite(err error) bool {
	class := hermes.ClassOf(err)
	return class != "" && class != hermes.ClassLostAck
}

// fail ends the task as failed, with what people may know of the cause.
func (e *execution) fail(ctx context.Context, err error) {
	text := explain(err)
	if errors.Is(err, errFiles) {
		text = textFiles
	}
	e.finish(ctx, store.Ending{Status: workspace.TaskFailed, Draft: e.draft.stored(), Error: text})
}

// finish ends the task.
func (e *execution) finish(ctx context.Context, ending store.Ending) {
	e.keep(ctx, func(ctx context.Context) error {
		_, err := e.r.opts.Store.Finish(ctx, e.ref, ending)
		return err
	})
}

// lose marks the task as uncertain and reports whether that was still to be done.
func (e *execution) lose(ctx context.Context, reason string) bool {
	e.uncertain = true
	return e.keep(ctx, func(ctx context.Context) error { return e.r.opts.Store.Lose(ctx, e.ref, reason) })
}

// check finds out what became of an uncertain task. It never submits anything
// (section 6.10).
func (e *execution) check(ctx context.Context) {
	e.uncertain = true
	if err := e.reopen(ctx); err != nil {
		e.unreached(ctx, err)
		return
	}
	if e.task.CancelRequested {
		e.interrupt(ctx)
	}
	e.follow(ctx)
}

// What ends a check without a look at the turn.
var (
	errOver  = errors.New("the task is not uncertain any more")
	errStale = errors.New("the session belongs to another task")
	// errNever says that the session has never been prompted, so that the upstream
	// does not know it.
	errNever = errors.New("the session was never prompted")
)

// reopen resumes the session that has the task's turn.
func (e *execution) reopen(ctx context.Context) error {
	task, row, err := e.r.opts.Store.Reply(ctx, e.ref.Owner, e.ref.ID)
	if err != nil {
		return err
	}
	if task.Status != workspace.TaskUncertain || task.Attempt != e.ref.Attempt {
		return errOver
	}
	e.task = task
	e.draft.restore(row)
	b, err := e.r.opts.Store.Binding(ctx, task.Owner, task.ConversationID, task.AgentID)
	if err != nil {
		return err
	}
	if b.TaskID != task.ID {
		return errStale
	}
	marker, err := e.marker()
	if err != nil {
		return err
	}
	e.node = b.NodeID
	if e.upstream, err = e.r.opts.Upstreams.Upstream(ctx, task.Owner, b.NodeID); err != nil {
		return err
	}
	session, err := e.upstream.Open(ctx, hermes.OpenRequest{Profile: b.Profile, StoredID: b.StoredID, Turn: marker})
	if hermes.KindOf(err) == hermes.KindNotFound && b.ContextSeq == 0 {
		return errNever
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.session, e.online = session, true
	e.mu.Unlock()
	return nil
}

// unreached ends a check that did not come to its session. A task that is to be
// stopped ends when its session is gone, or its node, or when somebody asked for it again
// (section 6.9; section 11, item 29).
func (e *execution) unreached(ctx context.Context, err error) {
	gone := hermes.KindOf(err) == hermes.KindNotFound || errors.Is(err, ErrNoNode)
	switch {
	case errors.Is(err, errOver), over(err), ctx.Err() != nil:
	case errors.Is(err, errNever):
		e.notAccepted(ctx)
	case e.task.CancelRequested && (gone || e.forced()):
		e.endLocally(ctx)
	case errors.Is(err, errStale):
		e.loseFor(ctx, textStale)
	case e.task.CancelRequested:
		e.loseFor(ctx, textUnconfirmed)
	default:
		e.loseFor(ctx, explain(err))
	}
}

// loseFor leaves the task uncertain until the next check.
func (e *execution) loseFor(ctx context.Context, reason string) {
	e.r.postpone(e.task.ID)
	e.lose(ctx, reason)
}

// endLocally ends a task whose stop nobody can confirm.
func (e *execution) endLocally(ctx context.Context) {
	e.finish(ctx, store.Ending{Status: workspace.TaskInterrupted, Draft: e.draft.stored(), Error: textLocalStop})
}
