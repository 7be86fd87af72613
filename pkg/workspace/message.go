package workspace

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// MessageRole says who speaks in a message.
type MessageRole string

// The roles of a message (section 2.5).
const (
	RoleUser      MessageRole = "user"
	RoleAssistant MessageRole = "assistant"
	RoleSystem    MessageRole = "system"
)

// Message is one row of a conversation (section 2.5). Its JSON form is what
// clients see.
type Message struct {
	ID             MessageID      `json:"id"`
	ConversationID ConversationID `json:"conversationId"`
	// Seq is at least 1 and unique in the conversation; a row gets a new one
	// when it becomes visible (section 2.6).
	Seq  int64       `json:"seq"`
	Role MessageRole `json:"role"`
	// AgentID and AgentName are set on assistant rows only; the name is the one
	// at the time of the execution.
	AgentID     AgentID       `json:"agentId,omitzero"`
	AgentName   string        `json:"agentName,omitzero"`
	Content     string        `json:"content"`
	Reasoning   string        `json:"reasoning"`
	RunID       RunID         `json:"runId,omitzero"`
	TaskID      TaskID        `json:"taskId,omitzero"`
	Hidden      Hidden        `json:"visible,omitzero"`
	Error       string        `json:"error,omitzero"`
	Status      MessageStatus `json:"status"`
	Attachments []File        `json:"attachments"`
	Tools       []Tool        `json:"tools"`
	CreatedAt   Millis        `json:"createdAt"`
}

// Tool is what became of one tool call: a JSON object with at least "id" and
// "status", and with the upstream's own members (section 2.5).
type Tool = jsontext.Value

// Hidden marks a message that clients do not show. On the wire it is the member
// "visible": false when hidden, missing when not.
type Hidden bool

var (
	wireFalse = []byte("false")
	wireTrue  = []byte("true")
)

// MarshalJSON writes the wire form, which is the opposite word.
func (h Hidden) MarshalJSON() ([]byte, error) {
	if h {
		return wireFalse, nil
	}
	return wireTrue, nil
}

// UnmarshalJSON reads the wire form.
func (h *Hidden) UnmarshalJSON(text []byte) error {
	switch {
	case bytes.Equal(text, wireFalse):
		*h = true
	case bytes.Equal(text, wireTrue):
		*h = false
	default:
		return errors.New("visible is neither true nor false")
	}
	return nil
}

// SendMessage is the body of a request that sends a message (section 3.3).
type SendMessage struct {
	RequestID  Optional[RequestID] `json:"requestId,omitzero"`
	Content    Optional[string]    `json:"content,omitzero"`
	MentionIDs Optional[[]AgentID] `json:"mentionIds,omitzero"`
	FileIDs    Optional[[]FileID]  `json:"fileIds,omitzero"`
}

// ReadMarker is the body of a request that marks messages as read (section 3.4).
type ReadMarker struct {
	Seq Optional[int64] `json:"seq,omitzero"`
}
