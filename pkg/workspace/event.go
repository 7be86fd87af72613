package workspace

import "github.com/go-json-experiment/json/jsontext"

// EventType is what an event tells of (section 4.3).
type EventType string

// The types of event.
const (
	EventAgent        EventType = "agent.changed"
	EventConversation EventType = "conversation.changed"
	EventMessage      EventType = "message.changed"
	EventRun          EventType = "run.changed"
	EventInteraction  EventType = "interaction.changed"
	EventContext      EventType = "context.changed"
	EventFiles        EventType = "files.changed"
	EventNodes        EventType = "nodes.changed"
)

// Event is one row of the durable log of an owner (section 4). Its JSON form is
// what clients see.
type Event struct {
	// Seq comes from one counter of the whole server and is never reused.
	Seq            int64          `json:"seq"`
	Type           EventType      `json:"type"`
	ConversationID ConversationID `json:"conversationId,omitzero"`
	Data           jsontext.Value `json:"data"`
}

// Change is an event that has no sequence yet: what a write has to append to
// the log in its own transaction.
type Change struct {
	Type           EventType
	ConversationID ConversationID
	// EntityID names the entity among those of its type.
	EntityID string
	// Data is the whole entity as clients see it.
	Data any
}

// AgentChanged returns the event of a changed agent, its portrait filled in.
func AgentChanged(a Agent) Change {
	return Change{Type: EventAgent, EntityID: string(a.ID), Data: a.Public()}
}

// ConversationChanged returns the event of a changed conversation, without the
// count of unread messages.
func ConversationChanged(c Conversation) Change {
	return Change{Type: EventConversation, ConversationID: c.ID, EntityID: string(c.ID), Data: c.Public()}
}

// MessageChanged returns the event of a changed message, hidden ones included.
func MessageChanged(m Message) Change {
	return Change{Type: EventMessage, ConversationID: m.ConversationID, EntityID: string(m.ID), Data: m}
}

// RunChanged returns the event of a changed run.
func RunChanged(r Run) Change {
	return Change{Type: EventRun, ConversationID: r.ConversationID, EntityID: string(r.ID), Data: r}
}

// InteractionChanged returns the event of a changed interaction.
func InteractionChanged(i Interaction) Change {
	return Change{Type: EventInteraction, ConversationID: i.ConversationID, EntityID: string(i.ID), Data: i}
}

// ContextChanged returns the event of a changed usage record of a conversation.
func ContextChanged(id ConversationID, usage jsontext.Value) Change {
	return Change{Type: EventContext, ConversationID: id, EntityID: string(id), Data: usage}
}

// FilesChanged returns the event of a file that was added or linked.
func FilesChanged(f File) Change {
	return Change{Type: EventFiles, ConversationID: f.ConversationID, EntityID: string(f.ID), Data: f}
}

// NodesChanged returns the event of a changed list of nodes.
func NodesChanged() Change { return Change{Type: EventNodes, Data: struct{}{}} }

// EventRow is what decides whether an event may be pruned.
type EventRow struct {
	Seq       int64
	Owner     OwnerID
	Type      EventType
	EntityID  string
	CreatedAt Millis
}

// Prunable reports whether events of this type may go once superseded. The
// others are few, and stay (section 4.4).
func (t EventType) Prunable() bool { return t == EventMessage || t == EventConversation }

// Superseded returns the sequences of the rows that may be deleted at the given
// time: those of a prunable type that are older than [SupersededAge] and have a
// newer row of the same owner's same entity among rows (section 4.4). The
// newest row of each entity stays, so that a client with any old cursor still
// sees its last state.
func Superseded(rows []EventRow, now Millis) []int64 {
	type entity struct {
		owner OwnerID
		kind  EventType
		id    string
	}
	newest := make(map[entity]int64)
	for _, r := range rows {
		key := entity{r.Owner, r.Type, r.EntityID}
		newest[key] = max(newest[key], r.Seq)
	}
	var seqs []int64
	for _, r := range rows {
		old := now-r.CreatedAt > SupersededAge
		if r.Type.Prunable() && old && r.Seq < newest[entity{r.Owner, r.Type, r.EntityID}] {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}
