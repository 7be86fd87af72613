package workspace

import (
	"cmp"
	"slices"
	"strings"
)

// Ids of the entities. Each is a lower-case UUID; the types keep one kind from
// being taken for another.
type (
	// OwnerID is the id of the local user to whom a row belongs (section 1).
	OwnerID string
	// AgentID names an agent; as a member of a group an agent has the same id.
	AgentID string
	// ConversationID names a direct chat or a group.
	ConversationID string
	// MessageID names a message.
	MessageID string
	// RunID names a root run.
	RunID string
	// TaskID names a task.
	TaskID string
	// InteractionID names an interaction.
	InteractionID string
	// FileID names a file of the library.
	FileID string
	// RequestID is a client's own name for one send (section 3.3).
	RequestID string
	// NodeID names a node: a UUID, or [LocalNode].
	NodeID string
	// BatchID names a set of tasks that were created together: the id of the
	// task whose reply created them, or of the run at admission (section 1.2).
	BatchID string
)

// LocalNode is the node of the built-in upstream (section 1.2).
const LocalNode NodeID = "local"

// legacyName is the name of the retired plugin. It survives in a few wire
// literals, all of which are built from this constant.
const legacyName = "yaoyao"

// Wire literals that carry the retired plugin's name.
const (
	// LegacyName is the word that retired paths contain (section 8).
	LegacyName = legacyName
	// ServerKind is what this server calls itself towards clients (section 1.7).
	ServerKind = legacyName + "-web"
)

// ProtocolVersion is the only version of the protocol (section 1.7).
const ProtocolVersion = 1

// Millis is a point in time in milliseconds since the Unix epoch.
type Millis int64

// ParseID returns s in lower case when it is a UUID in its usual form of 36
// characters. UUIDs are compared in lower case (section 3.3).
func ParseID[ID ~string](s string) (ID, bool) {
	if len(s) != len("00000000-0000-0000-0000-000000000000") {
		return "", false
	}
	for i := range len(s) {
		if !uuidByte(i, s[i]) {
			return "", false
		}
	}
	return ID(strings.ToLower(s)), true
}

func uuidByte(i int, c byte) bool {
	switch i {
	case 8, 13, 18, 23:
		return c == '-'
	}
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// unique returns ids without repetitions, in order of first appearance. The
// result is never nil.
func unique[T cmp.Ordered](ids []T) []T {
	kept := make([]T, 0, len(ids))
	for _, id := range ids {
		if !slices.Contains(kept, id) {
			kept = append(kept, id)
		}
	}
	return kept
}

// without returns the ids that drop does not name. The result is never nil.
func without[T cmp.Ordered](ids []T, drop ...T) []T {
	return keep(ids, func(id T) bool { return !slices.Contains(drop, id) })
}

// keep returns the ids that pass, in their order. The result is never nil.
func keep[T any](ids []T, pass func(T) bool) []T {
	kept := make([]T, 0, len(ids))
	for _, id := range ids {
		if pass(id) {
			kept = append(kept, id)
		}
	}
	return kept
}
