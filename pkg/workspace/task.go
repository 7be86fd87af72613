package workspace

// ReplyMode says why a task was created.
type ReplyMode string

// The modes of reply (section 2.8).
const (
	// ReplyMentioned is the mode of a task that somebody asked for by name.
	ReplyMentioned ReplyMode = "mentioned"
	// ReplyAutomatic is the mode of a task that nobody asked for by name.
	ReplyAutomatic ReplyMode = "automatic"
)

// Task is one agent's single turn inside a run (section 2.8). No endpoint
// serves it; its JSON form is for storage.
type Task struct {
	ID             TaskID         `json:"id"`
	Owner          OwnerID        `json:"owner"`
	RunID          RunID          `json:"runId"`
	ConversationID ConversationID `json:"conversationId"`
	AgentID        AgentID        `json:"agentId"`
	// MessageID is the user message of the run.
	MessageID MessageID `json:"messageId"`
	// TriggerSeq is the sequence of the message that the task answers.
	TriggerSeq int64 `json:"triggerSeq"`
	// Depth is 0 for tasks of the user message and grows with each relay.
	Depth   int     `json:"depth"`
	BatchID BatchID `json:"batchId"`
	// ReviewOf is the batch that the task reviews, or empty. A review belongs
	// to the batch it reviews without being one of its members.
	ReviewOf      BatchID    `json:"reviewOf,omitzero"`
	ReplyMode     ReplyMode  `json:"replyMode"`
	RequiredReply bool       `json:"requiredReply"`
	Status        TaskStatus `json:"status"`
	// CurrentMessageID is the row that the task writes, once there is one.
	CurrentMessageID MessageID `json:"currentMessageId,omitzero"`
	// Submitted is stored before the prompt leaves the process (section 6.10).
	Submitted       bool `json:"submitted"`
	CancelRequested bool `json:"cancelRequested"`
	// Planned is set once, together with what follows from a terminal task.
	Planned        bool   `json:"planned"`
	Silent         bool   `json:"silent"`
	HadInteraction bool   `json:"hadInteraction"`
	Error          string `json:"error,omitzero"`
	// ContextThroughSeq is the watermark that its submission reached.
	ContextThroughSeq int64 `json:"contextThroughSeq,omitzero"`
	// Launch is how the group was set when the task started, or nil before.
	Launch *Launch `json:"launchConfig,omitzero"`
	// Attempt counts how often the task was started. What arrives for another
	// attempt is stale.
	Attempt   int    `json:"attempt"`
	CreatedAt Millis `json:"createdAt"`
}

// Launch is a snapshot of a conversation at the start of a task (section 2.8).
type Launch struct {
	Mode            Mode          `json:"mode"`
	AdministratorID AgentID       `json:"administratorId"`
	Roster          []RosterEntry `json:"roster"`
}

// RosterEntry is a member by id and name.
type RosterEntry struct {
	ID   AgentID `json:"id"`
	Name string  `json:"name"`
}
