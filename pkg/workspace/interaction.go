package workspace

// InteractionKind is what an agent asks for.
type InteractionKind string

// The kinds of interaction (section 2.9).
const (
	Approval      InteractionKind = "approval"
	Clarification InteractionKind = "clarification"
)

// Interaction is a question of an agent to its user (section 2.9). Its JSON
// form is what clients see.
type Interaction struct {
	ID             InteractionID   `json:"id"`
	ConversationID ConversationID  `json:"conversationId"`
	RunID          RunID           `json:"runId"`
	AgentID        AgentID         `json:"agentId"`
	Kind           InteractionKind `json:"kind"`
	Message        string          `json:"message"`
	Choices        []string        `json:"choices"`
	Resolved       bool            `json:"resolved"`
	Answer         string          `json:"answer,omitzero"`
	ResponseState  ResponseState   `json:"responseState,omitzero"`
	Origin         InteractionFrom `json:"-"`
}

// InteractionFrom is where a question came from. It stays on the server; task
// and upstream request together are unique (section 2.9).
type InteractionFrom struct {
	TaskID            TaskID
	UpstreamRequestID string
	CreatedAt         Millis
}

// AnswerInteraction is the body of a request that answers an interaction
// (section 3.6).
type AnswerInteraction struct {
	Answer Optional[string] `json:"answer,omitzero"`
}
