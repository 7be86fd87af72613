package workspace

// Run is the execution record of one user message (section 2.7). Its JSON form
// is what clients see. Status, Round, Error and ActiveAgentID follow from its
// tasks (section 6.3).
type Run struct {
	ID             RunID          `json:"id"`
	ConversationID ConversationID `json:"conversationId"`
	MessageID      MessageID      `json:"messageId"`
	// MentionIDs are the members whom the user named, in order.
	MentionIDs    []AgentID `json:"mentionIds"`
	ActiveAgentID AgentID   `json:"activeAgentId,omitzero"`
	Status        RunStatus `json:"status"`
	// Round is the highest depth of its tasks so far.
	Round         int    `json:"round"`
	Error         string `json:"error,omitzero"`
	StopRequested bool   `json:"stopRequested,omitzero"`
	CreatedAt     Millis `json:"createdAt"`
	UpdatedAt     Millis `json:"updatedAt"`
}
