package store

import (
	"context"
	"errors"

	"github.com/newos4/relay/pkg/workspace"
)

// OpenTasks returns the tasks of all owners that are not over, or over and not
// planned, with what the scheduler has to know of them (section 6.4).
func (s *Store) OpenTasks(ctx context.Context) (open []workspace.OpenTask, err error) {
	err = s.peek(ctx, "reading open tasks", func(v view) error {
		open, err = all(v, scanOpenTask, `SELECT t.*, run.message_seq, run.created_at, c.kind, c.mode, c.administrator_id, coalesce(account.enabled, 0)
			FROM (SELECT `+taskColumns+` FROM task
				WHERE status NOT IN ('complete', 'failed', 'interrupted') OR planned = 0) AS t
			JOIN run ON run.owner = t.owner AND run.id = t.run_id
			JOIN conversation AS c ON c.owner = t.owner AND c.id = t.conversation_id
			LEFT JOIN account ON account.id = t.owner`)
		return err
	})
	return open, err
}

// wider lets a scanner of a row's first columns read further ones, too.
type wider struct {
	row
	more []any
}

// Scan reads the columns of the scanner and then the further ones.
func (w wider) Scan(into ...any) error { return w.row.Scan(append(into, w.more...)...) }

func scanOpenTask(r row) (workspace.OpenTask, error) {
	var open workspace.OpenTask
	var err error
	open.Task, err = scanTask(wider{r, []any{&open.MessageSeq, (*int64)(&open.MessageAt), (*string)(&open.Kind), (*string)(&open.Mode),
		(*string)(&open.AdministratorID), &open.OwnerEnabled}})
	return open, err
}

// Recover settles what a process left that ended in the midst of it: answers that
// may have been sent are uncertain, tasks that were over are planned, and those
// that somebody was executing are uncertain if they were submitted, and else back
// in the queue (section 6.10). Call it before the first task is started.
func (s *Store) Recover(ctx context.Context) error {
	open, err := s.OpenTasks(ctx)
	if err != nil {
		return err
	}
	if err := s.recoverAnswers(ctx); err != nil {
		return err
	}
	for _, task := range open {
		if err := s.recoverTask(ctx, task.Task); err != nil && !errors.Is(err, workspace.ErrStale) {
			return err
		}
	}
	return nil
}

func (s *Store) recoverTask(ctx context.Context, task workspace.Task) error {
	switch {
	case task.Status.Terminal():
		return s.PlanRun(ctx, task.Owner, task.RunID)
	case task.Status == workspace.TaskQueued, task.Status == workspace.TaskUncertain:
		return nil
	}
	return s.Abandon(ctx, RefOf(task), restarted)
}

// restarted is the error of a task that was executed when the process ended.
const restarted = "服务重启，正在核对这一轮的结果"

// Abandon settles a task that nobody executes any longer: one that was submitted
// is uncertain, any other goes back to the queue (sections 6.2 and 6.4).
func (s *Store) Abandon(ctx context.Context, ref Ref, reason string) error {
	return s.change(ctx, ref, "settling a task that nobody executes", func(ch *change) error {
		if ch.task.Submitted {
			return ch.lose(reason)
		}
		return ch.requeue()
	})
}

// recoverAnswers marks the answers that were being sent: nobody knows whether
// they arrived.
func (s *Store) recoverAnswers(ctx context.Context) error {
	type key struct {
		owner workspace.OwnerID
		id    workspace.InteractionID
	}
	var sending []key
	err := s.peek(ctx, "reading answers that were being sent", func(v view) (err error) {
		sending, err = all(v, func(r row) (key, error) {
			var k key
			err := r.Scan((*string)(&k.owner), (*string)(&k.id))
			return k, err
		}, `SELECT owner, id FROM interaction WHERE resolved = 0 AND response_state = 'sending'`)
		return err
	})
	for _, k := range sending {
		if err != nil {
			return err
		}
		_, err = s.Responded(ctx, k.owner, k.id, workspace.Interaction.Lost)
	}
	return err
}

// PlanRun plans those tasks of a run that are over and were not planned, and
// stores what follows in the same transaction (section 6.2).
func (s *Store) PlanRun(ctx context.Context, owner workspace.OwnerID, id workspace.RunID) error {
	return s.write(ctx, owner, "planning a run", func(t *tx) error {
		run, err := t.run(id)
		if err != nil {
			return err
		}
		c, err := t.chat(run.ConversationID)
		if err != nil {
			return err
		}
		if err := t.plan(&c, run); err != nil {
			return err
		}
		return t.saveActivity(&c)
	})
}

// Reply returns a task as it is now, with the row that it writes, or one without
// an id.
func (s *Store) Reply(ctx context.Context, owner workspace.OwnerID, id workspace.TaskID) (task workspace.Task, row workspace.Message, err error) {
	err = s.read(ctx, "reading a task and its reply", func(v view) error {
		if task, err = found(one(v, scanTask, `SELECT `+taskColumns+` FROM task WHERE owner = ? AND id = ?`, owner, id)); err != nil {
			return err
		}
		row, _, err = maybe(one(v, scanMessage, `SELECT `+messageColumns+` FROM message WHERE owner = ? AND id = ?`, owner, task.CurrentMessageID))
		return err
	})
	return task, row, err
}
