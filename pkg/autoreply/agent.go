package autoreply

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// Store is what the agent needs of the storage.
type Store interface {
	Append(ctx context.Context, id chat.ThreadID, post storage.Post) (storage.Receipt, error)
	Thread(id chat.ThreadID) (*chat.Thread, error)
	Summary(id chat.ThreadID) (storage.Summary, bool, error)
}

// Settings say how the agent answers. They can be replaced while it runs.
type Settings struct {
	// Mark tells these settings from others across a restart: threads that had
	// failed under others are tried anew.
	Mark string
	// Quiet is how long a thread must have been quiet before it is answered, so
	// that a burst of messages gets one answer.
	Quiet time.Duration
	// Concurrency is how many threads are answered at once.
	Concurrency int
	// Limit is how many code points an answer may have.
	Limit  int
	Budget Budget
	Bounds Bounds
	// Backend writes the answers; nil answers nothing.
	Backend Backend
	// Outgoing is the rule for what may leave.
	Outgoing *Outgoing
	// Ended is told of each run that ended; nil is not told.
	Ended func(RunEnd)
}

// RunEnd tells how a run ended.
type RunEnd struct {
	// Outcome is answered, superseded or failed.
	Outcome string
	// Reason says why a run failed, empty for others.
	Reason Reason
	// Tokens is what it used.
	Tokens int
	Took   time.Duration
}

// Agent answers threads. It is started with Run.
type Agent struct {
	store Store
	path  string // of the state file, "" for none
	log   *slog.Logger
	// step is told of each moment at which a crash would matter; tests end the
	// process there.
	step func(string)

	settings chan Settings
	results  chan result

	// All below belongs to the goroutine of Run.
	now     Settings
	using   map[Backend]int // runs by back end; one that is replaced is closed after its last
	threads map[chat.ThreadID]*entry
	unread  map[chat.ThreadID]time.Time // could not be read; when to look again
	running int
	ledger  ledger
	counts  map[string]int
	dirty   bool
	cleared bool // the state that was saved last names no thread, for want of a back end
	workers sync.WaitGroup
}

// entry is a thread that awaits an answer.
type entry struct {
	ThreadState
	due    time.Time
	asked  int64                   // epoch of the message
	cancel context.CancelCauseFunc // of the run, nil without one
	again  bool                    // something changed while it ran
}

// New returns an agent that keeps its state in the file at path; "" keeps none.
func New(settings Settings, store Store, path string, log *slog.Logger) *Agent {
	return &Agent{
		store: store, path: path, log: log, step: func(string) {},
		settings: make(chan Settings), results: make(chan result),
		now: settings, using: make(map[Backend]int), threads: make(map[chat.ThreadID]*entry),
		unread: make(map[chat.ThreadID]time.Time), counts: make(map[string]int),
	}
}

// Run answers the threads that the changes tell of until ctx ends; then it gives
// up what is being answered, waits for it, and returns. The first changes must
// tell of every thread that stands.
func (a *Agent) Run(ctx context.Context, changes <-chan []storage.Change) {
	defer a.stop()
	a.restore()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		a.lookAtUnread()
		a.startDue(ctx)
		a.save()
		timer.Reset(a.untilDue())
		select {
		case <-ctx.Done():
			return
		case batch := <-changes:
			for _, change := range batch {
				a.look(change.Thread)
			}
		case r := <-a.results:
			a.finish(r)
		case settings := <-a.settings:
			a.apply(settings)
		case <-timer.C:
		}
	}
}

// Apply replaces the settings. What is being answered goes on with the old ones;
// threads that have failed are tried anew. Another back end than the old one
// stands in its place, and the old one is closed. It returns when Run has taken
// the settings, or with ctx.
func (a *Agent) Apply(ctx context.Context, settings Settings) error {
	select {
	case a.settings <- settings:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *Agent) apply(settings Settings) {
	old := a.now.Backend
	a.now = settings
	if old != settings.Backend {
		a.closeUnused(old)
	}
	for id, e := range maps.Clone(a.threads) {
		if e.Phase == Failed || e.Phase == Waiting {
			delete(a.threads, id)
			a.look(id)
		}
	}
}

// stop ends the runs and leaves a state in which none is running.
func (a *Agent) stop() {
	for _, e := range a.threads {
		if e.cancel != nil {
			e.cancel(errStopping)
		}
	}
	go func() { a.workers.Wait(); close(a.results) }()
	for r := range a.results {
		a.finish(r)
	}
	a.dirty = true
	a.save()
	old := a.now.Backend
	a.now.Backend = nil
	a.closeUnused(old)
}

// closeUnused closes a back end that neither a run nor the settings use.
func (a *Agent) closeUnused(b Backend) {
	if b == nil || b == a.now.Backend || a.using[b] > 0 {
		return
	}
	delete(a.using, b)
	if err := b.Close(); err != nil {
		a.log.Warn("closing a back end of the agent", "error", err)
	}
}

// look takes notice of the thread as it stands now.
func (a *Agent) look(id chat.ThreadID) {
	summary, ok, err := a.store.Summary(id)
	delete(a.unread, id)
	if err != nil {
		a.log.Error("the agent cannot read a thread", "thread", string(id), "error", err)
		if chat.CodeOf(err) != chat.CodeCorrupt {
			a.unread[id] = time.Now().Add(firstBackoff) // nobody tells of it again
			return
		}
		ok = false
	}
	e := a.threads[id]
	if !ok || summary.Unanswered == 0 {
		a.forget(id, e)
		return
	}
	switch {
	case e == nil:
		e = new(entry)
		a.threads[id] = e
	case e.Message == summary.Last.ID:
		e.asked = summary.Last.Epoch
		return
	case e.cancel != nil:
		// The draft would be discarded; the run that follows has the new message
		// in its context.
		e.again = true
		e.cancel(errSuperseded)
		return
	}
	e.Message, e.Attempts, e.asked = summary.Last.ID, 0, summary.Last.Epoch
	if most := a.now.Bounds.AgentTurns; most > 0 && summary.Turns >= most {
		a.counts["held back: answers in a row to the page's agent"]++
		a.enter(id, e, Failed, fmt.Sprintf("%d answers in a row to the page's agent, without a word from the person", summary.Turns), time.Time{})
		return
	}
	a.enter(id, e, Pending, "", quietAfter(summary.Last.Epoch, a.now.Quiet))
}

// lookAtUnread looks again at threads that could not be read.
func (a *Agent) lookAtUnread() {
	now := time.Now()
	for id, at := range maps.Clone(a.unread) {
		if !at.After(now) {
			a.look(id)
		}
	}
}

// quietAfter returns when the quiet time behind a message is over. A clock that
// runs differently makes it neither past nor far.
func quietAfter(epoch int64, quiet time.Duration) time.Time {
	now := time.Now()
	wait := time.UnixMilli(epoch).Add(quiet).Sub(now)
	return now.Add(min(max(wait, 0), quiet))
}

// forget drops a thread that does not await an answer any more.
func (a *Agent) forget(id chat.ThreadID, e *entry) {
	if e == nil {
		return
	}
	if e.cancel != nil {
		e.again = true
		e.cancel(errSuperseded)
		return
	}
	delete(a.threads, id)
	a.dirty = true
}

// enter moves a thread into a phase; due is when it is to be tried.
func (a *Agent) enter(id chat.ThreadID, e *entry, phase Phase, reason string, due time.Time) {
	if phase != e.Phase || reason != e.Reason {
		e.Since = time.Now().UnixMilli()
		if reason != "" {
			a.log.Warn("a thread stays unanswered", "thread", string(id), "phase", string(phase), "reason", reason)
		}
	}
	e.Phase, e.Reason, e.due, e.Until = phase, reason, due, 0
	if phase == Waiting {
		e.Until = due.UnixMilli()
	}
	a.dirty = true
}

// startDue starts runs while there is room, the longest due first, so that no
// thread holds up another.
func (a *Agent) startDue(ctx context.Context) {
	if a.now.Backend == nil {
		return
	}
	for _, id := range a.dueThreads() {
		if a.running >= a.now.Concurrency {
			return
		}
		e := a.threads[id]
		if full := a.ledger.check(a.now.Bounds, id, time.Now()); full != nil {
			if e.Reason != full.reason {
				a.counts["held back: "+full.name]++
			}
			a.enter(id, e, Waiting, full.reason, full.until)
			continue
		}
		a.start(ctx, id, e)
	}
}

// dueThreads returns the threads whose time has come, the longest due first;
// where a bound has made several due at once, who asked first. Whoever chooses a
// token chooses the thread's id, so that must not decide.
func (a *Agent) dueThreads() []chat.ThreadID {
	now := time.Now()
	var due []chat.ThreadID
	for id, e := range a.threads {
		if e.isIdle() && e.wait(now) == 0 {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(x, y chat.ThreadID) int {
		return cmp.Or(a.threads[x].due.Compare(a.threads[y].due), cmp.Compare(a.threads[x].asked, a.threads[y].asked), cmp.Compare(x, y))
	})
	return due
}

// isIdle reports whether the thread waits for its time.
func (e *entry) isIdle() bool { return e.Phase == Pending || e.Phase == Waiting }

// wait is how long it is until the thread is due. No wait is longer than a day:
// one that is was made by a clock that has since been set back.
func (e *entry) wait(now time.Time) time.Duration {
	const longest = 24 * time.Hour
	wait := e.due.Sub(now)
	if wait > longest {
		return 0
	}
	return max(wait, 0)
}

// untilDue is the time until the next thread may be started or looked at.
func (a *Agent) untilDue() time.Duration {
	now, wait := time.Now(), time.Hour
	for _, at := range a.unread {
		wait = min(wait, max(0, at.Sub(now)))
	}
	if a.now.Backend == nil || a.running >= a.now.Concurrency {
		return wait
	}
	for _, e := range a.threads {
		if e.isIdle() {
			wait = min(wait, e.wait(now))
		}
	}
	return wait
}

func (a *Agent) start(ctx context.Context, id chat.ThreadID, e *entry) {
	runCtx, cancel := context.WithCancelCause(ctx)
	e.cancel, e.again = cancel, false
	a.running++
	a.using[a.now.Backend]++
	a.ledger.open(id, time.Now())
	a.enter(id, e, Running, "", time.Time{})
	r := run{agent: a, thread: id, message: e.Message, settings: a.now}
	a.workers.Go(func() {
		defer cancel(nil)
		a.results <- r.do(runCtx)
	})
}

// Waits before a failed question is tried again.
const (
	firstBackoff = 30 * time.Second
	maxBackoff   = 15 * time.Minute
)

func backoff(attempts int, asked time.Duration) time.Duration {
	wait := min(firstBackoff<<min(2*(attempts-1), 10), maxBackoff)
	return min(max(wait, asked), maxBackoff)
}

// finish takes the result of a run.
func (a *Agent) finish(r result) {
	a.running--
	a.using[r.backend]--
	a.closeUnused(r.backend)
	a.ledger.settle(r.thread, r.tokens)
	a.counts[r.name()]++
	a.dirty = true
	e := a.threads[r.thread]
	e.cancel = nil
	a.tell(r)
	if r.failure == nil || e.again || r.message != e.Message {
		a.lookAnew(r.thread, e)
		return
	}
	e.Attempts++
	if !r.failure.Retry || e.Attempts > a.now.Bounds.Retries {
		a.enter(r.thread, e, Failed, r.failure.Error(), time.Time{})
		return
	}
	a.enter(r.thread, e, Waiting, r.failure.Error(), time.Now().Add(backoff(e.Attempts, r.failure.After)))
}

// lookAnew decides what to do after a run by what stands in the thread: nothing,
// if it is answered. A question that still is the same has failed as often as
// before.
func (a *Agent) lookAnew(id chat.ThreadID, before *entry) {
	delete(a.threads, id)
	a.look(id)
	if e := a.threads[id]; e != nil && e.Message == before.Message {
		e.Attempts = before.Attempts
	}
}

// tell tells the log and whoever counts how a run ended.
func (a *Agent) tell(r result) {
	if ended := a.now.Ended; ended != nil {
		end := RunEnd{Outcome: string(r.outcome), Tokens: r.tokens, Took: r.took}
		if r.failure != nil {
			end.Reason = r.failure.Reason
		}
		ended(end)
	}
	a.log.Info("a run of the agent ended", "thread", string(r.thread), "outcome", r.name(),
		"tools", r.tools, "tokens", r.tokens, "ms", r.took.Milliseconds())
}

// restore takes up what the last process knew: who failed how often, and what
// was spent. Threads that were answered since are dropped by their first look.
func (a *Agent) restore() {
	if a.path == "" {
		return
	}
	state, err := ReadState(a.path)
	if err != nil {
		a.log.Error("the agent starts without its state", "error", err)
		return
	}
	a.ledger = state.Ledger
	maps.Copy(a.counts, state.Counts)
	if state.Settings != a.now.Mark {
		return // what failed then may not fail now; the first look finds who waits
	}
	for id, ts := range state.Threads {
		e := &entry{ThreadState: ts, due: time.UnixMilli(ts.Until)}
		if ts.Phase == Running {
			e.Phase = Pending
		}
		a.threads[id] = e
	}
}

// save writes the state if it has changed; one that could not be written is
// written with whatever happens next. Without a back end the threads are none of
// the agent's business, and writing for each of their changes would slow down
// those who post.
func (a *Agent) save() {
	if !a.dirty || a.path == "" || a.now.Backend == nil && a.cleared {
		return
	}
	a.step("save")
	state := State{Settings: a.now.Mark, Threads: make(map[chat.ThreadID]ThreadState, len(a.threads)), Counts: a.counts, Ledger: a.ledger}
	for id, e := range a.threads {
		if a.now.Backend != nil {
			state.Threads[id] = e.ThreadState
		}
	}
	if err := writeState(a.path, state); err != nil {
		a.log.Error("the agent's state is not saved", "error", err)
		return
	}
	a.dirty, a.cleared = false, a.now.Backend == nil
}
