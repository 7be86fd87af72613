package workspace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that a run's state follows from its tasks as section 6.3 says.
func TestDeriveRunStatus(t *testing.T) {
	t.Parallel()
	type tasks = []workspace.Task
	task := func(status workspace.TaskStatus) workspace.Task {
		return workspace.Task{Status: status, Planned: status.Terminal()}
	}
	required := func(status workspace.TaskStatus) workspace.Task {
		r := task(status)
		r.RequiredReply = true
		return r
	}
	queued, running, waiting, uncertain := task(workspace.TaskQueued), task(workspace.TaskRunning), task(workspace.TaskWaiting), task(workspace.TaskUncertain)
	complete, failed, interrupted := task(workspace.TaskComplete), task(workspace.TaskFailed), task(workspace.TaskInterrupted)
	unplanned := workspace.Task{Status: workspace.TaskComplete}
	tests := map[string]struct {
		kind    workspace.Kind
		stopped bool
		tasks   tasks
		want    workspace.RunStatus
	}{
		"all complete":                       {workspace.Group, false, tasks{complete, complete}, workspace.RunComplete},
		"not all planned":                    {workspace.Group, false, tasks{complete, unplanned}, workspace.RunRunning},
		"stop requested":                     {workspace.Group, true, tasks{complete}, workspace.RunInterrupted},
		"required interrupted":               {workspace.Group, false, tasks{required(workspace.TaskInterrupted), complete}, workspace.RunInterrupted},
		"all interrupted":                    {workspace.Group, false, tasks{interrupted, interrupted}, workspace.RunInterrupted},
		"one interrupted":                    {workspace.Group, false, tasks{interrupted, complete}, workspace.RunComplete},
		"required failed":                    {workspace.Group, false, tasks{complete, required(workspace.TaskFailed)}, workspace.RunFailed},
		"an ordinary member failed":          {workspace.Group, false, tasks{complete, failed}, workspace.RunComplete},
		"direct failed":                      {workspace.Direct, false, tasks{failed}, workspace.RunFailed},
		"uncertain first":                    {workspace.Group, false, tasks{running, waiting, uncertain}, workspace.RunUncertain},
		"then running":                       {workspace.Group, false, tasks{waiting, running, queued}, workspace.RunRunning},
		"then waiting":                       {workspace.Group, false, tasks{waiting, queued}, workspace.RunWaiting},
		"some left the queue":                {workspace.Group, false, tasks{complete, queued}, workspace.RunRunning},
		"all queued":                         {workspace.Group, false, tasks{queued, queued}, workspace.RunQueued},
		"a stop is not over while one works": {workspace.Group, true, tasks{running}, workspace.RunRunning},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := workspace.Run{Status: workspace.RunQueued, StopRequested: tt.stopped}
			if got := run.Derive(tt.kind, tt.tasks, now).Status; got != tt.want {
				t.Errorf("status %s, want %s", got, tt.want)
			}
		})
	}
}

// Ensure that round, error and active agent follow from the tasks too, and that
// nothing moves the time when nothing changes (sections 2.7 and 6.3).
func TestDeriveRunRest(t *testing.T) {
	t.Parallel()
	tasks := []workspace.Task{
		{AgentID: "a", Status: workspace.TaskComplete, Planned: true},
		{AgentID: "b", Depth: 2, Status: workspace.TaskQueued},
		{AgentID: "c", Depth: 1, Status: workspace.TaskFailed, Error: "first"},
		{AgentID: "d", Depth: 1, Status: workspace.TaskWaiting},
		{AgentID: "e", Depth: 1, Status: workspace.TaskUncertain, Error: "second"},
	}
	run := workspace.Run{ID: "r", Status: workspace.RunQueued}
	got := run.Derive(workspace.Group, tasks, now)
	want := workspace.Run{ID: "r", Status: workspace.RunUncertain, Round: 2, Error: "first", ActiveAgentID: "d", UpdatedAt: now}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if again := got.Derive(workspace.Group, tasks, now+1); again.UpdatedAt != now {
		t.Errorf("nothing changed, but the run was updated at %d", again.UpdatedAt)
	}
	if queued := run.Derive(workspace.Group, tasks[:2], now); queued.ActiveAgentID != "b" {
		t.Errorf("with one in the queue the active agent is %q", queued.ActiveAgentID)
	}
	if empty := got.Derive(workspace.Group, nil, now+1); !cmp.Equal(empty, got) {
		t.Errorf("without tasks: %+v", empty)
	}
}

// Ensure that a chat shows its oldest run, who holds a slot, and how many runs
// wait (section 2.3, scenario 22).
func TestActivityOf(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(workspace.Activity{ActiveAgentStates: map[workspace.AgentID]workspace.TaskStatus{}}, workspace.ActivityOf(nil)); diff != "" {
		t.Errorf("idle (-want +got):\n%s", diff)
	}
	got := workspace.ActivityOf([]workspace.LiveRun{
		{Run: workspace.Run{ID: "later", Status: workspace.RunQueued, ActiveAgentID: "x"}, MessageSeq: 9, Tasks: []workspace.Task{{AgentID: "a", Status: workspace.TaskQueued}}},
		{Run: workspace.Run{ID: "first", Status: workspace.RunUncertain, ActiveAgentID: "a"}, MessageSeq: 3, Tasks: []workspace.Task{
			{AgentID: "a", Status: workspace.TaskUncertain}, {AgentID: "b", Status: workspace.TaskWaiting}, {AgentID: "c", Status: workspace.TaskComplete}}},
	})
	want := workspace.Activity{
		ActiveRunID: "first", ActiveAgentID: "a", ActiveRunStatus: workspace.RunUncertain, QueuedMessageCount: 1,
		ActiveAgentStates: map[workspace.AgentID]workspace.TaskStatus{"a": workspace.TaskUncertain, "b": workspace.TaskWaiting},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("activity (-want +got):\n%s", diff)
	}
}
