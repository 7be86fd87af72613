package store

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/workspace"
)

// millisPerSecond turns the store's times into the snapshots' seconds.
const millisPerSecond = 1000

func snapshotOf(v view, owner workspace.OwnerID, profile, session string) (*workspace.SessionSnapshot, error) {
	snapshot, ok, err := maybe(one(v, func(r row) (workspace.SessionSnapshot, error) {
		s := workspace.SessionSnapshot{SessionID: session}
		var data string
		if err := r.Scan(&s.UpdatedAt, &data); err != nil {
			return s, err
		}
		return s, decode(data, &s.SessionContext)
	}, `SELECT updated_at, data FROM session_context WHERE owner = ? AND profile = ? AND session_id = ?`, owner, profile, session))
	if err != nil || !ok {
		return nil, err
	}
	return &snapshot, nil
}

// SessionContext returns the owner's snapshot of a native session under the
// profile, or nil (section 3.10).
func (s *Store) SessionContext(ctx context.Context, owner workspace.OwnerID, profile, session string) (snapshot *workspace.SessionSnapshot, err error) {
	err = s.peek(ctx, "reading a session's context", func(v view) error {
		snapshot, err = snapshotOf(v, owner, profile, session)
		return err
	})
	return snapshot, err
}

// PutSessionContext stores a snapshot unless the stored one was observed later,
// and returns the one that is stored then (section 3.10).
func (s *Store) PutSessionContext(ctx context.Context, owner workspace.OwnerID, profile, session string, in workspace.SessionContext) (snapshot workspace.SessionSnapshot, err error) {
	if err := workspace.CheckSessionContext(in); err != nil {
		return snapshot, err
	}
	err = s.write(ctx, owner, "storing a session's context", func(t *tx) error {
		stored, err := snapshotOf(t.view, owner, profile, session)
		if err != nil {
			return err
		}
		if stored != nil && !in.Replaces(stored.SessionContext) {
			snapshot = *stored
			return nil
		}
		snapshot = workspace.SessionSnapshot{SessionID: session, SessionContext: in, UpdatedAt: float64(t.now) / millisPerSecond}
		return t.putSnapshot(profile, snapshot)
	})
	return snapshot, err
}

func (t *tx) putSnapshot(profile string, s workspace.SessionSnapshot) error {
	data, err := encode(s.SessionContext)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO session_context (owner, profile, session_id, observed_at, updated_at, data) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (owner, profile, session_id) DO UPDATE SET
			observed_at = excluded.observed_at, updated_at = excluded.updated_at, data = excluded.data`,
		t.owner, profile, s.SessionID, s.ObservedAt.Or(0), s.UpdatedAt, data)
	return err
}

// SetUsage stores the usage record of a conversation's context (section 2.16).
func (s *Store) SetUsage(ctx context.Context, owner workspace.OwnerID, id workspace.ConversationID, usage jsontext.Value) error {
	return s.write(ctx, owner, "storing a conversation's usage", func(t *tx) error {
		if err := exists(t.view, owner, id); err != nil {
			return err
		}
		_, err := t.exec(`INSERT INTO context_usage (owner, conversation_id, data) VALUES (?, ?, ?)
			ON CONFLICT (owner, conversation_id) DO UPDATE SET data = excluded.data`, owner, id, string(usage))
		if err != nil {
			return err
		}
		return t.changed(workspace.ContextChanged(id, usage))
	})
}
