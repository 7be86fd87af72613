package hermestest

import (
	"context"
	"encoding/json"
	"time"
)

// Bounds of the real server.
const (
	orphanGrace  = 20 * time.Second
	ringEvents   = 512
	approvalLife = 300 * time.Second
	clarifyLife  = 3600 * time.Second
)

// session is a live session.
type session struct {
	runtime   string
	storedID  string
	profile   string
	conn      *conn // the client that hears its events, or nil
	seq       int
	ring      []object
	cut       bool // events fell off the ring
	images    int
	title     string
	source    string
	hidden    bool
	turn      *turn
	queued    []string
	open      []*question
	recovered bool // a turn goes on that a crash had cut off
}

// turn is a turn that executes.
type turn struct {
	user   string
	text   string
	cancel context.CancelFunc
}

// question is an open question. Its answer goes through the channel.
type question struct {
	id      string
	kind    string
	params  object
	session *session
	answer  chan object
}

// running reports whether the session executes.
func (l *session) running() bool { return l.turn != nil }

// end stops the session's turn without a word. The lock is held.
func (l *session) end() {
	if l.turn != nil {
		l.turn.cancel()
	}
}

// status is the live state as resume reports it.
func (l *session) status() string {
	switch {
	case len(l.open) > 0:
		return "waiting"
	case l.running() || l.recovered:
		return "streaming"
	default:
		return "idle"
	}
}

// event sends an event of the session, or keeps it for a client to come. The
// lock is held.
func (s *Server) event(live *session, kind string, payload object) {
	params := object{"type": kind, "session_id": live.runtime}
	if payload != nil {
		params["payload"] = payload
	}
	if s.strict() {
		live.seq++
		params["seq"] = live.seq
		live.ring = append(live.ring, params)
		if len(live.ring) > s.ringSize {
			live.ring, live.cut = live.ring[len(live.ring)-s.ringSize:], true
		}
	}
	if live.conn != nil {
		live.conn.send(object{"jsonrpc": "2.0", "method": "event", "params": params})
	}
}

// byStored returns the live session of a stored id, or nil. The lock is held.
func (s *Server) byStored(id string) *session {
	for _, live := range s.sessions {
		if live.storedID == id {
			return live
		}
	}
	return nil
}

// reapLater ends a session that nobody came back to. The lock is held.
func (s *Server) reapLater(live *session) {
	volatile := s.epoch
	s.spawn(func() {
		if !s.wait(s.ctx, orphanGrace) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.epoch != volatile || live.conn != nil || s.sessions[live.runtime] != live {
			return
		}
		if !live.running() {
			delete(s.sessions, live.runtime)
			return
		}
		if s.oldOrphans {
			s.interrupt(live)
		}
	})
}

// Reclaim closes a session as the server does with idle ones, for a reason such
// as "idle_timeout" or "lru_evict", and tells its client.
func (s *Server) Reclaim(storedID, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.byStored(storedID)
	if live == nil {
		return
	}
	s.event(live, "session.reclaimed", object{"session_id": live.runtime, "stored_session_id": live.storedID, "reason": reason})
	delete(s.sessions, live.runtime)
}

// interrupt stops a session's turn as session.interrupt does. The lock is held.
func (s *Server) interrupt(live *session) {
	live.queued = nil
	for _, q := range live.open {
		s.closeQuestion(q, "interrupted")
	}
	if live.turn != nil {
		live.turn.cancel()
	}
}

// ask opens a question and shows it to the client, if there is one that can
// answer. The lock is held.
func (s *Server) ask(live *session, kind string, params object) *question {
	q := &question{id: s.questionID(), kind: kind, params: params, session: live, answer: make(chan object, 1)}
	if kind == "approval" && s.dialect != Dialect019 || !s.strict() && kind != "approval" {
		params["request_id"] = q.id
	}
	if s.strict() {
		params["session_id"] = live.runtime
	}
	s.questions[q.id] = q
	live.open = append(live.open, q)
	s.show(q)
	return q
}

func (s *Server) questionID() string {
	if s.strict() {
		return "srq-" + hex(12)
	}
	return hex(8)
}

// show sends a question. A gated build withdraws it at once when the client that
// is there has not announced that it can answer. The lock is held.
func (s *Server) show(q *question) {
	live := q.session
	if live.conn == nil {
		return
	}
	if s.dialect == DialectGated && !live.conn.announced {
		s.closeQuestion(q, "no capable client")
		return
	}
	if s.strict() {
		live.conn.send(object{"jsonrpc": "2.0", "id": q.id, "method": q.kind, "params": q.params})
		return
	}
	if !s.loseQuestions {
		s.event(live, q.kind+".request", q.params)
	}
}

// closeQuestion withdraws a question. The lock is held.
func (s *Server) closeQuestion(q *question, reason string) {
	s.forget(q)
	close(q.answer)
	switch {
	case s.strict():
		s.event(q.session, "request.cancel", object{"id": q.id, "method": q.kind, "reason": reason})
	case reason == "timeout" && s.dialect == DialectOld:
		s.event(q.session, q.kind+".expire", object{"request_id": q.id})
	}
}

// forget removes a question from the open ones. The lock is held.
func (s *Server) forget(q *question) {
	delete(s.questions, q.id)
	for i, other := range q.session.open {
		if other == q {
			q.session.open = append(q.session.open[:i:i], q.session.open[i+1:]...)
			return
		}
	}
}

// resolve gives a question its answer. The lock is held.
func (s *Server) resolve(q *question, answer object) {
	s.forget(q)
	q.answer <- answer
}

// answered takes the result frame of a server request. Late and unknown ones are
// dropped.
func (s *Server) answered(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var id string
	if json.Unmarshal(f.ID, &id) != nil {
		return
	}
	q := s.questions[id]
	if q == nil {
		return
	}
	if f.Error != nil {
		s.resolve(q, object{"error": f.Error.Code})
		return
	}
	s.resolve(q, f.Result)
}
