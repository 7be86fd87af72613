package workspace

// Kind tells a direct chat from a group (section 1.2).
type Kind string

// The kinds of conversation.
const (
	Direct Kind = "direct"
	Group  Kind = "group"
)

// Mode is how a group works together (section 2.3).
type Mode string

// The modes of a group.
const (
	// ModeHost is administrator mode: the administrator coordinates (6.6).
	ModeHost Mode = "host"
	// ModeFree is free mode: members answer on their own (6.7).
	ModeFree Mode = "free"
)

// Role is what a member is called and does in one group (section 2.4). It
// changes neither the agent's name nor its instructions.
type Role struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Conversation is a direct chat or a group (section 2.3). Its JSON form is what
// clients see; [ConversationSummary] adds the count of unread messages.
type Conversation struct {
	ID        ConversationID `json:"id"`
	Kind      Kind           `json:"kind"`
	Name      string         `json:"name"`
	Avatar    string         `json:"avatar"`
	MemberIDs []AgentID      `json:"memberIds"`
	// MemberRoles is nil in a direct chat and never nil in a group.
	MemberRoles     map[AgentID]Role `json:"memberRoles,omitzero"`
	Instructions    string           `json:"instructions"`
	AdministratorID AgentID          `json:"administratorId"`
	Mode            Mode             `json:"mode"`
	AutoReplyIDs    []AgentID        `json:"autoReplyIds"`
	// MaxReplyRounds is 1 to 100, or [UnlimitedRounds].
	MaxReplyRounds int   `json:"maxReplyRounds"`
	Archived       bool  `json:"archived"`
	Pinned         bool  `json:"pinned"`
	ReadSeq        int64 `json:"readSeq"`
	// LastSeq is the highest sequence ever assigned here, hidden rows included.
	LastSeq int64 `json:"lastSeq"`
	// LastMessageAt is when the newest visible message that is not empty was
	// created, or nil; 0 is a valid time.
	LastMessageAt *Millis `json:"lastMessageAt,omitzero"`
	Preview       string  `json:"preview"`
	Activity
	CreatedAt Millis `json:"createdAt"`
	UpdatedAt Millis `json:"updatedAt"`
}

// Activity is the part of a conversation that follows from its runs and tasks
// (sections 2.3 and 6.3). The first three fields are absent when it is idle.
type Activity struct {
	ActiveRunID     RunID     `json:"activeRunId,omitzero"`
	ActiveAgentID   AgentID   `json:"activeAgentId,omitzero"`
	ActiveRunStatus RunStatus `json:"activeRunStatus,omitzero"`
	// ActiveAgentStates has one entry for each member that holds a slot.
	ActiveAgentStates  map[AgentID]TaskStatus `json:"activeAgentStates"`
	QueuedMessageCount int                    `json:"queuedMessageCount"`
}

// ConversationSummary is a conversation as lists and answers show it, with the
// count of unread messages, which events leave out (section 4.3).
type ConversationSummary struct {
	Conversation
	UnreadCount int `json:"unreadCount"`
}

// NewGroup is the body of a request that creates a group (section 3.2).
type NewGroup struct {
	Name            Optional[string]           `json:"name,omitzero"`
	Avatar          Optional[string]           `json:"avatar,omitzero"`
	MemberIDs       Optional[[]AgentID]        `json:"memberIds,omitzero"`
	MemberRoles     Optional[map[AgentID]Role] `json:"memberRoles,omitzero"`
	Instructions    Optional[string]           `json:"instructions,omitzero"`
	AdministratorID Optional[AgentID]          `json:"administratorId,omitzero"`
	Mode            Optional[Mode]             `json:"mode,omitzero"`
	AutoReplyIDs    Optional[[]AgentID]        `json:"autoReplyIds,omitzero"`
	MaxReplyRounds  Optional[int]              `json:"maxReplyRounds,omitzero"`
}

// ConversationPatch is the body of a request that edits a conversation
// (section 3.2).
type ConversationPatch struct {
	Name            Optional[string]           `json:"name,omitzero"`
	Avatar          Optional[string]           `json:"avatar,omitzero"`
	Instructions    Optional[string]           `json:"instructions,omitzero"`
	MemberIDs       Optional[[]AgentID]        `json:"memberIds,omitzero"`
	MemberRoles     Optional[map[AgentID]Role] `json:"memberRoles,omitzero"`
	AdministratorID Optional[AgentID]          `json:"administratorId,omitzero"`
	Mode            Optional[Mode]             `json:"mode,omitzero"`
	AutoReplyIDs    Optional[[]AgentID]        `json:"autoReplyIds,omitzero"`
	MaxReplyRounds  Optional[int]              `json:"maxReplyRounds,omitzero"`
	Archived        Optional[bool]             `json:"archived,omitzero"`
	Pinned          Optional[bool]             `json:"pinned,omitzero"`
}
