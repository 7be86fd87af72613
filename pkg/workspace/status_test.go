package workspace_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that a task moves along the rows of section 6.2 and along no others.
func TestTaskTransitions(t *testing.T) {
	t.Parallel()
	const (
		queued, running, waiting, uncertain = workspace.TaskQueued, workspace.TaskRunning, workspace.TaskWaiting, workspace.TaskUncertain
		complete, failed, interrupted       = workspace.TaskComplete, workspace.TaskFailed, workspace.TaskInterrupted
	)
	rows := map[[2]workspace.TaskStatus]bool{
		{queued, running}: true, {queued, interrupted}: true,
		{running, waiting}: true, {waiting, running}: true,
		{running, complete}: true, {running, failed}: true, {running, interrupted}: true, {running, uncertain}: true, {running, queued}: true,
		{waiting, complete}: true, {waiting, failed}: true, {waiting, interrupted}: true, {waiting, uncertain}: true,
		{uncertain, running}: true, {uncertain, complete}: true, {uncertain, failed}: true, {uncertain, interrupted}: true,
	}
	all := []workspace.TaskStatus{queued, running, waiting, uncertain, complete, failed, interrupted}
	for _, from := range all {
		for _, to := range all {
			_, err := workspace.Task{ID: "t", Status: from, Attempt: 2}.Become(to, from, 2)
			if allowed := err == nil; allowed != rows[[2]workspace.TaskStatus{from, to}] {
				t.Errorf("%s to %s: %v", from, to, err)
			}
			if errors.Is(err, workspace.ErrStale) {
				t.Errorf("%s to %s is reported as stale: %v", from, to, err)
			}
		}
	}
}

// Ensure that a change for another state or attempt is stale, that what was
// submitted never goes back to the queue, and that each start is an attempt
// (sections 6.2 and 6.10).
func TestTaskGuards(t *testing.T) {
	t.Parallel()
	task := workspace.Task{ID: "t", Status: workspace.TaskQueued}
	started, err := task.Become(workspace.TaskRunning, workspace.TaskQueued, 0)
	if err != nil || started.Attempt != 1 || started.Status != workspace.TaskRunning {
		t.Fatalf("start: %+v, %v", started, err)
	}
	if _, err := started.Become(workspace.TaskComplete, workspace.TaskRunning, 0); !errors.Is(err, workspace.ErrStale) {
		t.Errorf("another attempt: %v", err)
	}
	if _, err := started.Become(workspace.TaskComplete, workspace.TaskWaiting, 1); !errors.Is(err, workspace.ErrStale) {
		t.Errorf("another state: %v", err)
	}
	back, err := started.Become(workspace.TaskQueued, workspace.TaskRunning, 1)
	if err != nil || back.Attempt != 1 {
		t.Errorf("back to the queue: %+v, %v", back, err)
	}
	started.Submitted = true
	if kept, err := started.Become(workspace.TaskQueued, workspace.TaskRunning, 1); err == nil || kept.Status != workspace.TaskRunning {
		t.Errorf("a submitted task went back to the queue: %+v", kept)
	}
}

// Ensure that final states of runs, messages and answers stay.
func TestFinalStatesStay(t *testing.T) {
	t.Parallel()
	runs := []workspace.RunStatus{workspace.RunQueued, workspace.RunRunning, workspace.RunWaiting, workspace.RunUncertain, workspace.RunComplete, workspace.RunFailed, workspace.RunInterrupted}
	for _, from := range runs {
		if from.CanBecome("other") || from.Terminal() == slices.ContainsFunc(runs, from.CanBecome) {
			t.Errorf("run that is %s", from)
		}
	}
	messages := []workspace.MessageStatus{workspace.MessageQueued, workspace.MessageStreaming, workspace.MessageUncertain, workspace.MessageComplete, workspace.MessageFailed, workspace.MessageInterrupted}
	for _, from := range messages {
		if from.Terminal() == slices.ContainsFunc(messages, from.CanBecome) {
			t.Errorf("message that is %s", from)
		}
	}
	if workspace.ResponseSent.CanBecome(workspace.ResponseSending) || workspace.ResponseUncertain.CanBecome(workspace.ResponseSending) || !workspace.ResponseNone.CanBecome(workspace.ResponseSending) {
		t.Error("an answer may be sent again without a rejection")
	}
}

// Ensure that a queued task is not started in an archived chat, in a run that is
// being stopped, or for a member that was removed (sections 5.5, 5.6 and 6.4).
func TestMayStart(t *testing.T) {
	t.Parallel()
	c := mustGroup(t, team(2))
	c.Mode = workspace.ModeFree
	task := workspace.Task{AgentID: id[workspace.AgentID](2)}
	archived, removed := c, c
	archived.Archived, removed.MemberIDs = true, ids(team(1))
	canceled := task
	canceled.CancelRequested = true
	tests := map[string]struct {
		task workspace.Task
		c    workspace.Conversation
		run  workspace.Run
		want bool
	}{
		"as it is": {task, c, workspace.Run{}, true},
		"archived": {task, archived, workspace.Run{}, false},
		"stopping": {task, c, workspace.Run{StopRequested: true}, false},
		"canceled": {canceled, c, workspace.Run{}, false},
		"removed":  {task, removed, workspace.Run{}, false},
	}
	for name, tt := range tests {
		if got := tt.task.MayStart(tt.c, tt.run); got != tt.want {
			t.Errorf("%s: may start = %v", name, got)
		}
	}
}
