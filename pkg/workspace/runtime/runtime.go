// Package runtime executes what the store holds: it starts the tasks that the
// rules allow, drives each through its member's hidden upstream session, and
// writes what comes of it (workspace contract, sections 6 and 7).
//
// What follows from what is decided elsewhere: package workspace has the rules,
// package store makes each step durable together with its events. A step that is
// not stored has not happened, and a prompt leaves only after the store has it as
// submitted, so that a process which ends at any moment never sends it twice.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// Upstreams finds the Hermes server of a node.
type Upstreams interface {
	// Upstream returns the server of an owner's node, or of [workspace.LocalNode].
	// A node that is not there gives [ErrNoNode]. It stays open for others.
	Upstream(ctx context.Context, owner workspace.OwnerID, node workspace.NodeID) (hermes.Upstream, error)
}

// ErrNoNode says that a node does not exist any more.
var ErrNoNode = errors.New("there is no such node")

// Files keeps the bytes of the library.
type Files interface {
	// Read returns the bytes of a stored file of the owner.
	Read(ctx context.Context, owner workspace.OwnerID, path string) ([]byte, error)
	// Keep stores bytes in the owner's folder and returns where they are, and their
	// SHA-256 in hex.
	Keep(ctx context.Context, owner workspace.OwnerID, data []byte) (path, digest string, err error)
}

// Options configure a runtime.
type Options struct {
	Store     *store.Store
	Upstreams Upstreams
	// Files hands attachments over and takes what agents made; nil is neither.
	Files Files
	// Quota bounds what agents add to the libraries.
	Quota store.Quota
	// Now is the clock; nil is the system's.
	Now    func() time.Time
	Logger *slog.Logger
}

// Runtime executes tasks between Start and Stop.
type Runtime struct {
	opts Options
	log  *slog.Logger

	life   context.Context // ends with the runtime
	cancel context.CancelFunc
	group  sync.WaitGroup
	wake   chan struct{}

	mu         sync.Mutex
	stopped    bool
	executions map[workspace.TaskID]*execution
	pauses     map[workspace.TaskID]*pause
	served     map[workspace.OwnerID]int64
	serving    int64
}

// New returns a runtime that does nothing yet.
func New(opts Options) *Runtime {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runtime{
		opts: opts, log: opts.Logger, wake: make(chan struct{}, 1),
		executions: make(map[workspace.TaskID]*execution), pauses: make(map[workspace.TaskID]*pause),
		served: make(map[workspace.OwnerID]int64),
	}
	r.life, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start settles what an earlier process left and begins to execute. The caller
// ends it by Stop.
func (r *Runtime) Start(ctx context.Context) error {
	if err := r.opts.Store.Recover(ctx); err != nil {
		return fmt.Errorf("settling what an earlier process left: %w", err)
	}
	open, err := r.opts.Store.OpenTasks(ctx)
	if err != nil {
		return fmt.Errorf("reading what an earlier process left: %w", err)
	}
	r.mu.Lock()
	for _, task := range open {
		if task.CancelRequested {
			r.pause(task.ID).stops = 1 // the earlier process was asked
		}
	}
	r.mu.Unlock()
	r.group.Go(r.loop)
	return nil
}

// Stop lets go of all executions and waits for them. It stops none of them
// upstream: the next Start finds them again.
func (r *Runtime) Stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
	r.group.Wait()
}

// Wake says that tasks were created or changed (section 6.4).
func (r *Runtime) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Interrupt asks the upstream to stop tasks that the store has as cancelled, each
// time that somebody explicitly asked for it. The second time a task whose stop
// cannot be confirmed ends here, whatever it does there (section 6.9).
func (r *Runtime) Interrupt(tasks []workspace.Task) {
	for _, task := range tasks {
		r.mu.Lock()
		p := r.pause(task.ID)
		p.stops++
		p.forget()
		stops, e := p.stops, r.executions[task.ID]
		r.mu.Unlock()
		if e != nil {
			e.stop(stops)
		}
	}
	r.Check(tasks)
}

// Check looks at once what became of uncertain tasks, whatever else is going on
// (sections 3.5 and 6.10). Other tasks are left alone.
func (r *Runtime) Check(tasks []workspace.Task) {
	for _, task := range tasks {
		if task.Status != workspace.TaskUncertain {
			continue
		}
		r.mu.Lock()
		r.pause(task.ID).forget()
		r.mu.Unlock()
		r.begin(workspace.OpenTask{Task: task})
	}
	r.Wake()
}

// begin starts an execution of a task, unless there is one.
func (r *Runtime) begin(open workspace.OpenTask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.executions[open.ID] != nil {
		return
	}
	e := newExecution(r, open.Task, r.pause(open.ID).stops)
	r.executions[open.ID] = e
	r.serving++
	r.served[open.Owner] = r.serving
	r.group.Go(func() {
		e.run(r.life)
		r.end(e)
	})
}

// end forgets an execution and has the scheduler look at what it left.
func (r *Runtime) end(e *execution) {
	r.mu.Lock()
	delete(r.executions, e.task.ID)
	r.mu.Unlock()
	r.Wake()
}

// now returns the time.
func (r *Runtime) now() time.Time { return r.opts.Now() }
