package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/newos4/relay/pkg/workspace"
)

// Ref names one attempt of a task. A write for another attempt than the present
// one changes nothing and returns [workspace.ErrStale].
type Ref struct {
	Owner   workspace.OwnerID
	ID      workspace.TaskID
	Attempt int
}

// RefOf returns the reference of a task's present attempt.
func RefOf(t workspace.Task) Ref { return Ref{t.Owner, t.ID, t.Attempt} }

// Task returns a task as it is now.
func (s *Store) Task(ctx context.Context, owner workspace.OwnerID, id workspace.TaskID) (task workspace.Task, err error) {
	err = s.peek(ctx, "reading a task", func(v view) error {
		task, err = found(one(v, scanTask, `SELECT `+taskColumns+` FROM task WHERE owner = ? AND id = ?`, owner, id))
		return err
	})
	return task, err
}

// change is a task in a write transaction with what a change of it touches.
type change struct {
	*tx
	task workspace.Task
	was  workspace.Task
	run  runRow
	chat chat
	// row is the message that the task writes, once there is one.
	row workspace.Message
	// chatTouched says that the chat's own columns have changed.
	chatTouched bool
}

// change runs do on a task and stores with it what follows: the run, the chat's
// activity and their events. A task of another attempt is stale.
func (s *Store) change(ctx context.Context, ref Ref, what string, do func(*change) error) error {
	return s.write(ctx, ref.Owner, what, func(t *tx) error {
		ch, err := t.open(ref)
		if err != nil {
			return err
		}
		if err := do(ch); err != nil {
			return err
		}
		return ch.save()
	})
}

func (t *tx) open(ref Ref) (ch *change, err error) {
	ch = &change{tx: t}
	if ch.task, err = found(one(t.view, scanTask, `SELECT `+taskColumns+` FROM task WHERE owner = ? AND id = ?`, t.owner, ref.ID)); err != nil {
		return nil, err
	}
	if ch.task.Attempt != ref.Attempt {
		return nil, fmt.Errorf("attempt %d of task %s, which is in attempt %d: %w", ref.Attempt, ref.ID, ch.task.Attempt, workspace.ErrStale)
	}
	ch.was = ch.task
	if ch.run, err = t.run(ch.task.RunID); err != nil {
		return nil, err
	}
	if ch.chat, err = t.chat(ch.task.ConversationID); err != nil {
		return nil, err
	}
	if ch.task.CurrentMessageID != "" {
		ch.row, err = t.message(ch.task.CurrentMessageID)
	}
	return ch, err
}

func (t *tx) message(id workspace.MessageID) (workspace.Message, error) {
	return found(one(t.view, scanMessage, `SELECT `+messageColumns+` FROM message WHERE owner = ? AND id = ?`, t.owner, id))
}

// expect returns an error unless the task is in one of the states.
func (ch *change) expect(states ...workspace.TaskStatus) error {
	if slices.Contains(states, ch.task.Status) {
		return nil
	}
	return fmt.Errorf("task %s is %s and none of %v: %w", ch.task.ID, ch.task.Status, states, workspace.ErrStale)
}

// become moves the task from the state that it is in.
func (ch *change) become(next workspace.TaskStatus) (err error) {
	ch.task, err = ch.task.Become(next, ch.task.Status, ch.task.Attempt)
	return err
}

// save stores the task if it changed. A state that changed, or an error, is seen
// in the run and in the chat.
func (ch *change) save() error {
	changed, err := ch.saveOwn()
	if err != nil {
		return err
	}
	if ch.task.Status == ch.was.Status && ch.task.Error == ch.was.Error && ch.task.AgentID == ch.was.AgentID {
		if !ch.chatTouched {
			return nil
		}
		return ch.saveActivity(&ch.chat)
	}
	if changed && ch.task.Status.Terminal() && ch.task.Planned {
		if err := ch.plan(&ch.chat, ch.run); err != nil { // saves the run
			return err
		}
		return ch.saveActivity(&ch.chat)
	}
	tasks, err := tasksOf(ch.view, ch.owner, ch.task.RunID)
	if err != nil {
		return err
	}
	if err := ch.saveRun(&ch.chat, ch.run, ch.run.Run, tasks); err != nil {
		return err
	}
	return ch.saveActivity(&ch.chat)
}

// saveOwn stores the task and reports whether it had changed. One that is to be
// planned is stored unplanned, for plan to set the flag.
func (ch *change) saveOwn() (bool, error) {
	if ch.task == ch.was {
		return false, nil
	}
	stored := ch.task
	stored.Planned = ch.was.Planned
	return true, ch.saveTask(stored)
}

// endNow asks to plan what follows from the task in the same transaction.
func (ch *change) endNow(status workspace.TaskStatus) error {
	if err := ch.become(status); err != nil {
		return err
	}
	ch.task.Planned = true
	return nil
}

// lose makes a task uncertain, for a reason that people read. One that is
// uncertain already keeps its newest reason.
func (ch *change) lose(reason string) error {
	if err := ch.expect(workspace.TaskRunning, workspace.TaskWaiting, workspace.TaskUncertain); err != nil {
		return err
	}
	ch.task.Error = reason
	if ch.task.Status == workspace.TaskUncertain {
		return nil
	}
	if err := ch.become(workspace.TaskUncertain); err != nil {
		return err
	}
	return ch.rowBecomes(workspace.MessageUncertain)
}

// requeue puts a task that was never submitted back into the queue.
func (ch *change) requeue() error {
	if err := ch.become(workspace.TaskQueued); err != nil {
		return err
	}
	return ch.rowBecomes(workspace.MessageQueued)
}

// rowBecomes moves the task's row to another state, if it has a row and it is not
// in that state.
func (ch *change) rowBecomes(status workspace.MessageStatus) error {
	if ch.row.ID == "" || ch.row.Status == status {
		return nil
	}
	if !ch.row.Status.CanBecome(status) {
		return fmt.Errorf("move message %s from %s to %s: there is no such transition", ch.row.ID, ch.row.Status, status)
	}
	before := ch.row
	ch.row.Status = status
	return ch.saveRow(before)
}

// saveRow stores the task's row after a change, with all that the chat shows of
// it.
func (ch *change) saveRow(before workspace.Message) error {
	attachments, err := encode(ch.row.Attachments)
	if err != nil {
		return err
	}
	tools, err := encode(ch.row.Tools)
	if err != nil {
		return err
	}
	if err := ch.summarise(before); err != nil {
		return err
	}
	_, err = ch.exec(`UPDATE message SET seq = ?, hidden = ?, status = ?, error = ?, content = ?, reasoning = ?, attachments = ?, tools = ?
		WHERE owner = ? AND id = ?`,
		ch.row.Seq, bool(ch.row.Hidden), ch.row.Status, ch.row.Error, ch.row.Content, ch.row.Reasoning, attachments, tools, ch.owner, ch.row.ID)
	if err != nil {
		return err
	}
	return ch.changed(workspace.MessageChanged(ch.row))
}

// summarise brings the chat's preview, time and count of unread messages up to
// date with the row. The preview of a row that still grows is set once, when it
// begins to show something, and again when it is final.
func (ch *change) summarise(before workspace.Message) error {
	if counts := ch.row.CountsAsUnread(ch.chat.ReadSeq); counts && !before.CountsAsUnread(ch.chat.ReadSeq) {
		ch.chat.UnreadCount++
		ch.chatTouched = true
	}
	shows := !bool(ch.row.Hidden) && !ch.row.IsEmpty()
	begins := shows && (bool(before.Hidden) || before.IsEmpty())
	ends := shows && ch.row.Status.Terminal() && !before.Status.Terminal()
	if !begins && !ends {
		return nil
	}
	newer, err := one(ch.view, scalar[bool], `SELECT EXISTS (SELECT 1 FROM message WHERE owner = ? AND conversation_id = ? AND hidden = 0 AND seq > ?
		AND (content <> '' OR attachments <> '[]' OR tools <> '[]'))`, ch.owner, ch.chat.ID, ch.row.Seq)
	if err != nil || newer {
		return err
	}
	ch.chat.Conversation = ch.chat.Summarise(ch.row)
	ch.chatTouched = true
	return nil
}

// reveal makes a hidden row visible: it moves to the end (section 2.6).
func (ch *change) reveal() {
	if !ch.row.Hidden {
		return
	}
	ch.chat.Conversation, ch.row = ch.chat.Reveal(ch.row)
	ch.chatTouched = true
}
