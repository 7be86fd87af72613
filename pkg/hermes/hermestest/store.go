package hermestest

import (
	"maps"
	"slices"
	"time"
)

// durable is what survives a restart.
type durable struct {
	stored map[string]*storedSession
	lastID int64
	files  map[string][]byte
	token  string
	// scripts wait for the next turns of a profile, or of a session.
	scripts map[string][][]Step
}

func newDurable() durable {
	return durable{
		stored: make(map[string]*storedSession), files: make(map[string][]byte), token: Token, scripts: make(map[string][][]Step),
	}
}

// storedSession is a row of the session table with its messages. It exists from
// the first prompt on.
type storedSession struct {
	id, profile, source, title string
	hidden                     bool
	messages                   []Message
	continued                  string // where compression went on
}

// Message is a stored message.
type Message struct {
	ID           int64     `json:"id"`
	Role         string    `json:"role"`
	Content      any       `json:"content"`
	ToolCalls    any       `json:"tool_calls,omitempty"`
	FinishReason string    `json:"finish_reason,omitempty"`
	Timestamp    float64   `json:"timestamp"`
	Compacted    bool      `json:"-"`
	At           time.Time `json:"-"`
}

// rows returns copies of the messages that are listed.
func (s *storedSession) rows(compacted bool) []Message {
	rows := slices.Clone(s.messages)
	if !compacted {
		rows = slices.DeleteFunc(rows, func(m Message) bool { return m.Compacted })
	}
	return rows
}

// find returns the tip of a stored session of a profile, or nil. The lock is
// held.
func (s *Server) find(id, profile string) *storedSession {
	if profile == "" || !s.hasProfile(profile) {
		profile = Launch
	}
	stored := s.stored[id]
	for stored != nil && stored.continued != "" {
		stored = s.stored[stored.continued]
	}
	if stored == nil || stored.profile != profile {
		return nil
	}
	return stored
}

// add appends a message to a stored session. The lock is held.
func (s *Server) add(stored *storedSession, message Message) {
	s.lastID++
	message.ID, message.At = s.lastID, time.Now()
	message.Timestamp = float64(message.At.UnixMilli()) / 1000
	stored.messages = append(stored.messages, message)
}

// Store puts messages into a stored session, which is made if need be.
func (s *Server) Store(id, profile string, messages ...Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.stored[id]
	if stored == nil {
		stored = &storedSession{id: id, profile: profile}
		s.stored[id] = stored
	}
	for _, message := range messages {
		s.add(stored, message)
	}
}

// Messages returns a stored session's messages, the oldest first.
func (s *Server) Messages(id string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored := s.stored[id]; stored != nil {
		return slices.Clone(stored.messages)
	}
	return nil
}

// StoredIDs returns the ids of all stored sessions.
func (s *Server) StoredIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.stored))
}

// PutFile puts a file on the server's host, for downloads and for the references
// that it expands in prompts.
func (s *Server) PutFile(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
}

// SetToken changes the token, as a restart does when no operator fixed it.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}
