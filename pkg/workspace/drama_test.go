package workspace_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// drama plays a run: it creates the tasks that planning asks for, and lets tasks
// start, speak and end as a test says.
type drama struct {
	t     *testing.T
	scene workspace.Scene
	seq   int64
	// notices counts how often the notice of the limit was asked for.
	notices int
}

// play begins a run with the user's message in the group.
func play(t *testing.T, c workspace.Conversation, agents map[workspace.AgentID]workspace.Agent, text string) *drama {
	t.Helper()
	admission, err := workspace.Admit(mustCheckSend(t, c.ID, sendRequest(text)), arrival(c, agents))
	if err != nil {
		t.Fatal(err)
	}
	d := &drama{t: t, seq: admission.Message.Seq, scene: workspace.Scene{
		Conversation: admission.Conversation, Members: agents, Run: admission.Run, Replies: make(map[workspace.TaskID]workspace.Reply),
	}}
	d.create(admission.Turns)
	return d
}

func (d *drama) create(turns []workspace.Turn) {
	for _, turn := range turns {
		taskID := workspace.TaskID(fmt.Sprintf("t%d", len(d.scene.Tasks)+1))
		d.scene.Tasks = append(d.scene.Tasks, turn.Task("owner", d.scene.Run, taskID, now))
	}
	d.derive()
}

func (d *drama) derive() {
	d.scene.Run = d.scene.Run.Derive(d.scene.Conversation.Kind, d.scene.Tasks, now)
}

// task returns the newest task of the agent called name that is in the state.
func (d *drama) task(name string, status workspace.TaskStatus) *workspace.Task {
	d.t.Helper()
	for i := len(d.scene.Tasks) - 1; i >= 0; i-- {
		task := &d.scene.Tasks[i]
		if d.scene.Members[task.AgentID].Name == name && task.Status == status {
			return task
		}
	}
	d.t.Fatalf("%s has no task that is %s among %s", name, status, d.tasks())
	return nil
}

// start starts the queued task of the agent.
func (d *drama) start(name string) {
	d.t.Helper()
	task := d.task(name, workspace.TaskQueued)
	started, err := task.Become(workspace.TaskRunning, workspace.TaskQueued, task.Attempt)
	if err != nil {
		d.t.Fatal(err)
	}
	launch := workspace.Snapshot(d.scene.Conversation, d.scene.Members)
	started.Launch = &launch
	*task = started
	d.derive()
}

// end ends the running task of the agent, with a text if it is complete.
func (d *drama) end(name string, status workspace.TaskStatus, text string) workspace.TaskID {
	d.t.Helper()
	task := d.task(name, workspace.TaskRunning)
	task.Status = status
	d.seq++
	d.scene.Replies[task.ID] = workspace.Reply{Seq: d.seq, Text: text}
	d.derive()
	return task.ID
}

// plan plans the task, creates and raises what follows and marks it planned.
func (d *drama) plan(taskID workspace.TaskID) {
	d.t.Helper()
	next := workspace.Plan(d.scene, taskID)
	for i := range d.scene.Tasks {
		task := &d.scene.Tasks[i]
		if task.ID == taskID {
			task.Planned = true
		}
		for _, raised := range next.Raise {
			if raised.ID == task.ID {
				*task = raised
			}
		}
	}
	if next.LimitReached {
		d.notices++
	}
	d.create(next.Create)
}

// says lets a queued task start, complete with the text and be planned.
func (d *drama) says(name, text string) {
	d.t.Helper()
	d.start(name)
	d.plan(d.end(name, workspace.TaskComplete, text))
}

// endTask completes the task with the id.
func (d *drama) endTask(taskID workspace.TaskID, text string) workspace.TaskID {
	for i := range d.scene.Tasks {
		if d.scene.Tasks[i].ID == taskID {
			d.scene.Tasks[i].Status = workspace.TaskComplete
		}
	}
	d.seq++
	d.scene.Replies[taskID] = workspace.Reply{Seq: d.seq, Text: text}
	return taskID
}

// tasks returns the tasks in order: who, depth, state, and a star for a review.
func (d *drama) tasks() []string {
	lines := make([]string, len(d.scene.Tasks))
	for i, task := range d.scene.Tasks {
		lines[i] = fmt.Sprintf("%s%d %s", d.scene.Members[task.AgentID].Name, task.Depth, task.Status)
		if task.ReviewOf != "" {
			lines[i] += "*"
		}
	}
	return lines
}

func (d *drama) want(status workspace.RunStatus, tasks ...string) {
	d.t.Helper()
	if diff := cmp.Diff(tasks, d.tasks()); diff != "" {
		d.t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if d.scene.Run.Status != status {
		d.t.Errorf("the run is %s, want %s", d.scene.Run.Status, status)
	}
}
