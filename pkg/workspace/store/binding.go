package store

import (
	"context"
	"slices"

	"github.com/newos4/relay/pkg/workspace"
)

// SaveBinding stores which upstream session a member has (section 2.11). All ids
// that the session ever had stay protected.
func (s *Store) SaveBinding(ctx context.Context, owner workspace.OwnerID, b workspace.Binding) error {
	return s.write(ctx, owner, "storing a binding", func(t *tx) error {
		if err := exists(t.view, owner, b.ConversationID); err != nil {
			return err
		}
		return t.saveBinding(b)
	})
}

// protect makes the binding's ids known to the guard of section 9.3.
func (t *tx) protect(b workspace.Binding) error {
	for _, id := range append(slices.Clone(b.Aliases), b.StoredID, b.RuntimeID) {
		if id == "" {
			continue
		}
		_, err := t.exec(`INSERT INTO binding_session (owner, conversation_id, agent_id, session_id) VALUES (?, ?, ?, ?)
			ON CONFLICT DO NOTHING`, t.owner, b.ConversationID, b.AgentID, id)
		if err != nil {
			return err
		}
	}
	return nil
}

// Binding returns the session of a member, or an error with code
// [workspace.CodeRowNotFound].
func (s *Store) Binding(ctx context.Context, owner workspace.OwnerID, c workspace.ConversationID, a workspace.AgentID) (b workspace.Binding, err error) {
	err = s.peek(ctx, "reading a binding", func(v view) error {
		b, err = found(one(v, scanBinding, `SELECT conversation_id, agent_id, node_id, profile, stored_id, runtime_id, aliases,
			run_id, task_id, message_id, context_seq FROM binding WHERE owner = ? AND conversation_id = ? AND agent_id = ?`, owner, c, a))
		return err
	})
	return b, err
}

func scanBinding(r row) (workspace.Binding, error) {
	var b workspace.Binding
	var aliases string
	err := r.Scan((*string)(&b.ConversationID), (*string)(&b.AgentID), (*string)(&b.NodeID), &b.Profile, &b.StoredID, &b.RuntimeID,
		&aliases, (*string)(&b.RunID), (*string)(&b.TaskID), (*string)(&b.MessageID), &b.ContextSeq)
	if err != nil {
		return b, err
	}
	b.Aliases, err = decodeList[string](aliases)
	return b, err
}

// IsHiddenSession reports whether any of the ids names, or ever named, a session
// of any owner's binding (section 9.3). It looks at all owners.
func (s *Store) IsHiddenSession(ctx context.Context, ids ...string) (hidden bool, err error) {
	list, err := encode(ids)
	if err != nil {
		return false, err
	}
	err = s.peek(ctx, "looking for a hidden session", func(v view) error {
		hidden, err = one(v, scalar[bool], `SELECT EXISTS (SELECT 1 FROM binding_session
			WHERE session_id IN (SELECT value FROM json_each(?)))`, list)
		return err
	})
	return hidden, err
}
