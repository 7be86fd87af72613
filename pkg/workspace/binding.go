package workspace

import "slices"

// Binding links a member of a conversation to its hidden upstream session
// (section 2.11). It never leaves the server. Its key is the owner, the
// conversation and the agent.
type Binding struct {
	ConversationID ConversationID
	AgentID        AgentID
	NodeID         NodeID
	Profile        string
	// StoredID is the session's durable name upstream, RuntimeID the one of its
	// current life.
	StoredID  string
	RuntimeID string
	// Aliases are all stored ids that the binding ever had before.
	Aliases   []string
	RunID     RunID
	TaskID    TaskID
	MessageID MessageID
	// ContextSeq is the highest sequence that the session was given already.
	ContextSeq int64
}

// Rename returns the binding with another stored id, the old one kept among the
// aliases, so that sessions which the upstream renamed stay protected.
func (b Binding) Rename(storedID string) Binding {
	if storedID == "" || storedID == b.StoredID {
		return b
	}
	aliases := slices.Clone(b.Aliases)
	if b.StoredID != "" && !slices.Contains(aliases, b.StoredID) {
		aliases = append(aliases, b.StoredID)
	}
	b.Aliases, b.StoredID = aliases, storedID
	return b
}

// Names reports whether id is the session's stored or runtime id or one of its
// aliases (section 9.3).
func (b Binding) Names(id string) bool {
	return id != "" && (id == b.StoredID || id == b.RuntimeID || slices.Contains(b.Aliases, id))
}
