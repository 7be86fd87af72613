package store

import (
	"context"
	"slices"

	"github.com/newos4/relay/pkg/workspace"
)

// Stopped is what a stop leaves to do: the tasks that have left the queue and
// must be interrupted upstream. They are marked as cancelled already.
type Stopped struct{ Interrupt []workspace.Task }

// StopRun stops a run: its queued tasks end as interrupted, the others are
// marked (section 6.9). A run that is over stays as it is.
func (s *Store) StopRun(ctx context.Context, owner workspace.OwnerID, id workspace.RunID) (stopped Stopped, err error) {
	err = s.write(ctx, owner, "stopping a run", func(t *tx) error {
		run, err := t.run(id)
		if err != nil {
			return err
		}
		c, err := t.chat(run.ConversationID)
		if err != nil || run.Status.Terminal() {
			return err
		}
		if stopped, err = t.stopRun(&c, run); err != nil {
			return err
		}
		return t.saveActivity(&c)
	})
	return stopped, err
}

// StopMember stops the live tasks of one member of a conversation, and no others
// (section 6.9). What follows from those that ended is planned.
func (s *Store) StopMember(ctx context.Context, owner workspace.OwnerID, id workspace.ConversationID, agent workspace.AgentID) (stopped Stopped, err error) {
	err = s.write(ctx, owner, "stopping a member", func(t *tx) error {
		c, err := t.chat(id)
		if err != nil {
			return err
		}
		if err := workspace.RequireMember(c.Conversation, agent); err != nil {
			return err
		}
		changed, err := t.stopTasks(&c, &stopped, func(task workspace.Task) bool { return task.AgentID == agent })
		if err != nil || !changed {
			return err
		}
		return t.saveActivity(&c)
	})
	return stopped, err
}

// UncertainTasks returns the tasks of a run whose outcome has to be checked
// upstream (section 3.5).
func (s *Store) UncertainTasks(ctx context.Context, owner workspace.OwnerID, id workspace.RunID) (uncertain []workspace.Task, err error) {
	err = s.read(ctx, "reading uncertain tasks", func(v view) error {
		_, err := found(one(v, scalar[int], `SELECT 1 FROM run WHERE owner = ? AND id = ?`, owner, id))
		if err != nil {
			return err
		}
		tasks, err := tasksOf(v, owner, id)
		uncertain = slices.DeleteFunc(tasks, func(t workspace.Task) bool { return t.Status != workspace.TaskUncertain })
		return err
	})
	return uncertain, err
}

// stopAll stops all live runs of a chat and refreshes it.
func (t *tx) stopAll(c *chat) (stopped Stopped, err error) {
	runs, err := t.liveRuns(c.ID)
	if err != nil {
		return stopped, err
	}
	for _, run := range runs {
		more, err := t.stopRun(c, run)
		if err != nil {
			return stopped, err
		}
		stopped.Interrupt = append(stopped.Interrupt, more.Interrupt...)
	}
	return stopped, t.refresh(c)
}

func (t *tx) liveRuns(id workspace.ConversationID) ([]runRow, error) {
	return all(t.view, scanRun, `SELECT `+runColumns+` FROM run WHERE owner = ? AND conversation_id = ?
		AND status NOT IN ('complete', 'failed', 'interrupted') ORDER BY message_seq`, t.owner, id)
}

// stopRun stops one live run. Nothing follows from a run that is stopped, so that
// its ended tasks are planned at once.
func (t *tx) stopRun(c *chat, run runRow) (stopped Stopped, err error) {
	tasks, err := tasksOf(t.view, t.owner, run.ID)
	if err != nil {
		return stopped, err
	}
	for i := range tasks {
		task := &tasks[i]
		if task.Status.Terminal() && task.Planned {
			continue
		}
		if err := t.stopTask(task, &stopped); err != nil {
			return stopped, err
		}
		task.Planned = task.Status.Terminal()
		if err := t.saveTask(*task); err != nil {
			return stopped, err
		}
	}
	after := run.Run
	after.StopRequested = true
	return stopped, t.saveRun(c, run, after, tasks)
}

// stopTask ends a queued task as interrupted and marks one that may be executing.
// The caller saves it.
func (t *tx) stopTask(task *workspace.Task, stopped *Stopped) error {
	switch {
	case task.Status.Terminal():
		return nil
	case task.Status.Occupied():
		task.CancelRequested = true
		stopped.Interrupt = append(stopped.Interrupt, *task)
		return nil
	}
	ended, err := task.Become(workspace.TaskInterrupted, workspace.TaskQueued, task.Attempt)
	*task = ended
	return err
}

// stopTasks stops those live tasks of a chat that match, plans what follows, and
// reports whether there were any.
func (t *tx) stopTasks(c *chat, stopped *Stopped, match func(workspace.Task) bool) (changed bool, err error) {
	runs, err := t.liveRuns(c.ID)
	if err != nil {
		return false, err
	}
	for _, run := range runs {
		tasks, err := tasksOf(t.view, t.owner, run.ID)
		if err != nil {
			return changed, err
		}
		hit := false
		for i := range tasks {
			if tasks[i].Status.Terminal() || !match(tasks[i]) {
				continue
			}
			hit = true
			if err := t.stopTask(&tasks[i], stopped); err != nil {
				return changed, err
			}
			if err := t.saveTask(tasks[i]); err != nil {
				return changed, err
			}
		}
		if !hit {
			continue
		}
		changed = true
		if err := t.plan(c, run); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// settleRemoved ends the queued tasks of members that were removed, without a
// call upstream; those that run may finish (section 5.6).
func (t *tx) settleRemoved(c *chat, removed []workspace.AgentID) error {
	_, err := t.stopTasks(c, &Stopped{}, func(task workspace.Task) bool {
		return task.Status == workspace.TaskQueued && slices.Contains(removed, task.AgentID)
	})
	if err != nil {
		return err
	}
	return t.refresh(c)
}
