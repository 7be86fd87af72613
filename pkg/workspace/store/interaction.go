package store

import (
	"context"

	"github.com/newos4/relay/pkg/workspace"
)

const interactionColumns = `id, conversation_id, run_id, task_id, agent_id, kind, resolved, response_state, upstream_request_id, created_at,
	message, choices, answer`

func scanInteraction(r row) (workspace.Interaction, error) {
	var i workspace.Interaction
	var choices string
	err := r.Scan((*string)(&i.ID), (*string)(&i.ConversationID), (*string)(&i.RunID), (*string)(&i.Origin.TaskID), (*string)(&i.AgentID),
		(*string)(&i.Kind), &i.Resolved, (*string)(&i.ResponseState), &i.Origin.UpstreamRequestID, (*int64)(&i.Origin.CreatedAt),
		&i.Message, &choices, &i.Answer)
	if err != nil {
		return i, err
	}
	i.Choices, err = decodeList[string](choices)
	return i, err
}

// Respond decides about a user's answer to an interaction and stores it as
// sending (section 6.11). Online says whether there is a live connection of
// exactly the interaction's task; it is asked inside the transaction and must
// not wait. Call says that the upstream has to be called now, and
// [Store.Responded] afterwards; otherwise the answer was given before.
func (s *Store) Respond(ctx context.Context, owner workspace.OwnerID, id workspace.InteractionID, in workspace.AnswerInteraction,
	online func(workspace.Interaction) bool) (i workspace.Interaction, call bool, err error) {
	answer, err := workspace.CheckAnswer(in)
	if err != nil {
		return i, false, err
	}
	err = s.write(ctx, owner, "answering a question", func(t *tx) error {
		if i, err = t.interaction(id); err != nil {
			return err
		}
		if i, call, err = i.Respond(answer, online(i)); err != nil || !call {
			return err
		}
		return t.saveInteraction(i)
	})
	return i, call, err
}

// Responded stores how the upstream took an answer: change is one of
// [workspace.Interaction.Sent], Lost and Rejected as a method expression.
func (s *Store) Responded(ctx context.Context, owner workspace.OwnerID, id workspace.InteractionID,
	change func(workspace.Interaction) workspace.Interaction) (i workspace.Interaction, err error) {
	err = s.write(ctx, owner, "storing what became of an answer", func(t *tx) error {
		if i, err = t.interaction(id); err != nil {
			return err
		}
		if i.Resolved {
			return nil // its task ended meanwhile
		}
		i = change(i)
		if err := t.saveInteraction(i); err != nil || !i.Resolved {
			return err
		}
		return t.answered(i)
	})
	return i, err
}

func (t *tx) interaction(id workspace.InteractionID) (workspace.Interaction, error) {
	return found(one(t.view, scanInteraction, `SELECT `+interactionColumns+` FROM interaction WHERE owner = ? AND id = ?`, t.owner, id))
}

func (t *tx) saveInteraction(i workspace.Interaction) error {
	_, err := t.exec(`UPDATE interaction SET resolved = ?, response_state = ?, answer = ? WHERE owner = ? AND id = ?`,
		i.Resolved, i.ResponseState, i.Answer, t.owner, i.ID)
	if err != nil {
		return err
	}
	return t.changed(workspace.InteractionChanged(i))
}
