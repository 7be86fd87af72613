package store

import (
	"context"

	"github.com/newos4/relay/pkg/workspace"
)

// Question is what a session asks its user.
type Question struct {
	// ID is the upstream's, unique in its session.
	ID      string
	Kind    workspace.InteractionKind
	Message string
	Choices []string
}

// Ask stores a question of a task, which then waits. The same question again makes
// no second one. An uncertain task that asks is seen executing
// (sections 2.9 and 6.11).
func (s *Store) Ask(ctx context.Context, ref Ref, q Question) error {
	return s.change(ctx, ref, "storing a question", func(ch *change) error {
		if err := ch.expect(workspace.TaskRunning, workspace.TaskWaiting, workspace.TaskUncertain); err != nil {
			return err
		}
		fresh, err := ch.addQuestion(q)
		switch {
		case err != nil:
			return err
		case ch.task.Status == workspace.TaskUncertain:
			return ch.resume()
		case fresh && ch.task.Status == workspace.TaskRunning:
			return ch.become(workspace.TaskWaiting)
		}
		return nil
	})
}

// addQuestion stores a question and reports whether it is a new one.
func (ch *change) addQuestion(q Question) (bool, error) {
	i := workspace.Interaction{
		ID:             workspace.InteractionID(ch.newID()),
		ConversationID: ch.task.ConversationID,
		RunID:          ch.task.RunID,
		AgentID:        ch.task.AgentID,
		Kind:           q.Kind,
		Message:        q.Message,
		Choices:        append([]string{}, q.Choices...),
		Origin:         workspace.InteractionFrom{TaskID: ch.task.ID, UpstreamRequestID: q.ID, CreatedAt: ch.now},
	}
	choices, err := encode(i.Choices)
	if err != nil {
		return false, err
	}
	n, err := ch.exec(`INSERT INTO interaction (owner, `+interactionColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (owner, task_id, upstream_request_id) DO NOTHING`,
		ch.owner, i.ID, i.ConversationID, i.RunID, i.Origin.TaskID, i.AgentID, i.Kind, i.Resolved, i.ResponseState,
		i.Origin.UpstreamRequestID, i.Origin.CreatedAt, i.Message, choices, i.Answer)
	if err != nil || n == 0 {
		return false, err
	}
	return true, ch.changed(workspace.InteractionChanged(i))
}

// CloseQuestion stores that a question of a task is no longer open upstream.
// Answered says that it was closed by its answer: one that is being sent here is
// then for [Store.Responded] to decide about.
func (s *Store) CloseQuestion(ctx context.Context, ref Ref, upstreamID string, answered bool) error {
	return s.change(ctx, ref, "closing a question", func(ch *change) error {
		open, err := ch.openQuestions()
		if err != nil {
			return err
		}
		for _, i := range open {
			if i.Origin.UpstreamRequestID != upstreamID || answered && i.ResponseState == workspace.ResponseSending {
				continue
			}
			if err := ch.saveInteraction(i.Close()); err != nil {
				return err
			}
		}
		return ch.afterQuestions()
	})
}

// openQuestions returns the questions of the task that have no final answer.
func (ch *change) openQuestions() ([]workspace.Interaction, error) {
	return all(ch.view, scanInteraction, `SELECT `+interactionColumns+` FROM interaction
		WHERE owner = ? AND task_id = ? AND conversation_id = ? AND resolved = 0 ORDER BY created_at, id`, ch.owner, ch.task.ID, ch.task.ConversationID)
}

// afterQuestions makes a waiting task running again once its last question is
// closed (section 6.2).
func (ch *change) afterQuestions() error {
	if ch.task.Status != workspace.TaskWaiting {
		return nil
	}
	open, err := ch.openQuestions()
	if err != nil || len(open) > 0 {
		return err
	}
	return ch.become(workspace.TaskRunning)
}

// answered moves the task of a question that its user has answered
// (sections 6.2 and 6.8).
func (t *tx) answered(i workspace.Interaction) error {
	task, err := found(one(t.view, scanTask, `SELECT `+taskColumns+` FROM task WHERE owner = ? AND id = ?`, t.owner, i.Origin.TaskID))
	if err != nil {
		return err
	}
	ch, err := t.open(RefOf(task))
	if err != nil || ch.task.Status.Terminal() {
		return err
	}
	ch.task.HadInteraction = true
	if err := ch.afterQuestions(); err != nil {
		return err
	}
	return ch.save()
}
