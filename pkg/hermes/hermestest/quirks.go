package hermestest

import (
	"sync/atomic"
	"time"
)

// quirks are what a test makes the server do wrong, or do as other builds do.
type quirks struct {
	silent        atomic.Bool
	readyDelay    time.Duration
	wrongProfile  string
	hostOnly      string
	oldOrphans    bool
	loseQuestions bool
	ringSize      int
	recoveries    map[string][]Step
	forgotten     map[string]bool
}

// SetSilent makes the server take every frame and answer none.
func (s *Server) SetSilent(silent bool) { s.silent.Store(silent) }

// SetReadyDelay makes new connections wait for their first frame; a negative
// delay is for ever.
func (s *Server) SetReadyDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readyDelay = d
}

// SetWrongProfile makes every session claim to be of a profile.
func (s *Server) SetWrongProfile(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrongProfile = name
}

// SetHost makes the server take WebSocket connections for one host alone.
func (s *Server) SetHost(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostOnly = host
}

// SetOldOrphans makes the server interrupt running turns whose client is gone,
// as older builds did.
func (s *Server) SetOldOrphans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldOrphans = true
}

// SetLoseQuestions makes the events of questions get lost, as older builds did
// at times.
func (s *Server) SetLoseQuestions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseQuestions = true
}

// SetRing sets how many events a session keeps for a client that comes back.
func (s *Server) SetRing(events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ringSize = events
}

// ExpireSignIns makes every cookie and ticket invalid.
func (s *Server) ExpireSignIns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.cookies)
	clear(s.tickets)
}

// ContinueAfterRestart makes the server go on by itself with a session's turn
// that a restart cut off, once it is resumed.
func (s *Server) ContinueAfterRestart(storedID string, steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recoveries[storedID] = steps
}

// takeRecovery reports whether a session's turn goes on by itself. The lock is
// held.
func (s *Server) takeRecovery(storedID string) bool {
	_, ok := s.recoveries[storedID]
	return ok
}

// recover goes on with the turn that was cut off. The lock is held.
func (s *Server) recover(live *session) {
	steps := s.recoveries[live.storedID]
	delete(s.recoveries, live.storedID)
	user := ""
	for _, m := range s.stored[live.storedID].messages {
		if m.Role == "user" {
			user, _ = m.Content.(string)
		}
	}
	s.execute(live, user, steps)
}

// SetGate puts the server behind its sign-in, or takes it away.
func (s *Server) SetGate(gate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = gate
}

// Forget makes a method refuse parameters that it declares otherwise.
func (s *Server) Forget(method string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.forgotten[method+" "+key] = true
	}
}
