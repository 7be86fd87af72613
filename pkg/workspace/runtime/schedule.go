package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

const (
	// firstPause and longestPause bound the back-off of checks, of refused tasks and
	// of writes that fail (section 6.10).
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// staleAfter is how long an uncertain task counts in the global limit (section
	// 11, item 8).
	staleAfter = 10 * time.Minute
	// heldPause is how long tasks of owners without an account are held until they
	// are looked at again.
	heldPause = 30 * time.Second
	// maxRefusals is how often a task goes back to the queue (section 7.3).
	maxRefusals = 10
)

// pause is what the runtime remembers of a task between its executions.
type pause struct {
	tries int
	until time.Time
	// since is when the task was first found uncertain.
	since time.Time
	// stops is how often somebody asked to stop it.
	stops int
}

// forget makes the task due now.
func (p *pause) forget() { p.tries, p.until = 0, time.Time{} }

// backOff returns the pause after so many tries.
func backOff(tries int) time.Duration {
	d := firstPause
	for ; tries > 0 && d < longestPause; tries-- {
		d *= 2
	}
	return min(d, longestPause)
}

// pause returns what is remembered of a task. The lock is held.
func (r *Runtime) pause(id workspace.TaskID) *pause {
	p, ok := r.pauses[id]
	if !ok {
		p = &pause{}
		r.pauses[id] = p
	}
	return p
}

// postpone has the scheduler wait before it takes the task again, longer each
// time, and returns how often it did.
func (r *Runtime) postpone(id workspace.TaskID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pause(id)
	p.until = r.now().Add(backOff(p.tries))
	p.tries++
	return p.tries
}

// loop makes a pass whenever it is woken and when a pause is over.
func (r *Runtime) loop() {
	failures := 0
	for {
		wait, err := r.pass(r.life)
		if r.life.Err() != nil {
			return
		}
		if err != nil {
			r.log.Error("tasks could not be scheduled", "error", err)
			wait = min(wait, backOff(failures))
			failures++
		} else {
			failures = 0
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.wake:
		case <-timer.C:
		case <-r.life.Done():
		}
		timer.Stop()
	}
}

// forever is the pause when there is nothing to wait for.
const forever = 24 * time.Hour

// pass is one pass of the scheduler (section 6.4). It returns when the next one is
// due if nobody wakes it.
func (r *Runtime) pass(ctx context.Context) (time.Duration, error) {
	executing := r.executing() // before reading, so that what began since counts as begun
	open, err := r.opts.Store.OpenTasks(ctx)
	if err != nil {
		return forever, err
	}
	repaired := r.repairAll(ctx, open, executing)
	r.remember(open)
	for _, task := range workspace.Schedule(open, r.occupancy(executing)) {
		r.begin(task)
	}
	return r.nextPass(open), repaired
}

// repairAll settles what nobody is at work on. A task that cannot be settled is
// tried again and holds up nobody else.
func (r *Runtime) repairAll(ctx context.Context, open []workspace.OpenTask, executing map[workspace.TaskID]bool) error {
	var errs []error
	for _, task := range open {
		if executing[task.ID] || r.isExecuting(task.ID) {
			continue
		}
		if err := r.repair(ctx, task.Task); err != nil && !over(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *Runtime) executing() map[workspace.TaskID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make(map[workspace.TaskID]bool, len(r.executions))
	for id := range r.executions {
		ids[id] = true
	}
	return ids
}

func (r *Runtime) isExecuting(id workspace.TaskID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.executions[id] != nil
}

// repair settles a task that nobody is at work on though it looks so, and plans
// one that is over (section 6.4, steps 1 and 2).
func (r *Runtime) repair(ctx context.Context, task workspace.Task) error {
	switch {
	case task.Status.Terminal():
		if err := r.opts.Store.PlanRun(ctx, task.Owner, task.RunID); err != nil {
			return err
		}
	case task.Status == workspace.TaskRunning, task.Status == workspace.TaskWaiting:
		r.log.Warn("a task was left in the midst of its execution", "task", task.ID, "status", task.Status)
		if err := r.opts.Store.Abandon(ctx, store.RefOf(task), textAbandoned); err != nil {
			return err
		}
	default:
		return nil
	}
	r.Wake() // to look at what follows
	return nil
}

// over reports whether an error says that the write came too late or that its rows
// are gone, so that trying again is of no use.
func over(err error) bool {
	return errors.Is(err, workspace.ErrStale) || workspace.CodeOf(err) == workspace.CodeRowNotFound
}

// remember forgets what is known of tasks that are not open any more, and notes
// since when the others are uncertain.
func (r *Runtime) remember(open []workspace.OpenTask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := make(map[workspace.TaskID]bool, len(open))
	for _, task := range open {
		known[task.ID] = true
		if task.Status == workspace.TaskUncertain {
			p := r.pause(task.ID)
			if p.since.IsZero() {
				p.since = r.now()
			}
		}
	}
	for id := range r.pauses {
		if !known[id] && r.executions[id] == nil {
			delete(r.pauses, id)
		}
	}
}

// occupancy answers the rules' questions. An execution that began since the given
// ones were listed is one, too.
func (r *Runtime) occupancy(executing map[workspace.TaskID]bool) workspace.Occupancy {
	now := r.now()
	return workspace.Occupancy{
		Executing: func(id workspace.TaskID) bool { return executing[id] || r.isExecuting(id) },
		Due: func(id workspace.TaskID) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			p, ok := r.pauses[id]
			return !ok || !now.Before(p.until)
		},
		Stale: func(id workspace.TaskID) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			p, ok := r.pauses[id]
			return ok && !p.since.IsZero() && now.Sub(p.since) >= staleAfter
		},
		Served: func(owner workspace.OwnerID) int64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.served[owner]
		},
	}
}

// nextPass returns how long it is until a pause ends, a slot becomes free by the
// passing of time, or a held owner is looked at again.
func (r *Runtime) nextPass(open []workspace.OpenTask) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, wait := r.now(), forever
	for _, task := range open {
		if !task.OwnerEnabled {
			wait = min(wait, heldPause)
		}
		p, ok := r.pauses[task.ID]
		if !ok || r.executions[task.ID] != nil {
			continue
		}
		for _, at := range []time.Time{p.until, p.since.Add(staleAfter)} {
			if left := at.Sub(now); left > 0 {
				wait = min(wait, left)
			}
		}
	}
	return wait
}
