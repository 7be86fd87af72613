package hermestest

import (
	"context"
	"regexp"
	"strings"
	"time"
)

// Step is one thing that a turn does. It reports whether the turn goes on.
type Step func(r *run) bool

// run is a turn that executes its script.
type run struct {
	s    *Server
	live *session
	turn *turn
	ctx  context.Context
}

// Gate holds a turn until a test lets it go on.
type Gate struct {
	reached chan struct{}
	open    chan struct{}
}

// NewGate returns a closed gate, for one turn.
func NewGate() *Gate { return &Gate{reached: make(chan struct{}), open: make(chan struct{})} }

// Reached is closed once a turn stands at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open lets the turn go on.
func (g *Gate) Open() { close(g.open) }

// Script sets what the next turn of a profile does. More scripts are for the
// turns after it. Without one a turn answers "ok".
func (s *Server) Script(profile string, steps ...Step) { s.script("profile "+profile, steps) }

// ScriptSession sets what the next turn of a stored session does; it comes before
// those of its profile.
func (s *Server) ScriptSession(storedID string, steps ...Step) { s.script("session "+storedID, steps) }

func (s *Server) script(key string, steps []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[key] = append(s.scripts[key], steps)
}

// nextScript takes the script of a session's next turn. The lock is held.
func (s *Server) nextScript(live *session) []Step {
	for _, key := range []string{"session " + live.storedID, "profile " + live.profile} {
		if waiting := s.scripts[key]; len(waiting) > 0 {
			s.scripts[key] = waiting[1:]
			return waiting[0]
		}
	}
	return []Step{Delta("ok"), Complete("")}
}

// start begins a turn. The lock is held.
func (s *Server) start(live *session, text string) {
	stored := s.stored[live.storedID]
	if stored == nil {
		stored = &storedSession{id: live.storedID, profile: live.profile, source: live.source, title: live.title, hidden: live.hidden}
		s.stored[live.storedID] = stored
	}
	s.add(stored, Message{Role: "user", Content: text})
	s.prompts = append(s.prompts, Prompt{StoredID: live.storedID, Profile: live.profile, Text: s.expand(text), Images: live.images})
	live.images = 0
	s.execute(live, text, s.nextScript(live))
}

// execute runs a turn's script. The lock is held.
func (s *Server) execute(live *session, user string, steps []Step) {
	ctx, cancel := context.WithCancel(s.ctx)
	live.turn = &turn{user: user, cancel: cancel}
	r := &run{s: s, live: live, turn: live.turn, ctx: ctx}
	s.spawn(func() { defer cancel(); r.execute(steps) })
}

// reference is what the server expands in a prompt.
var reference = regexp.MustCompile(`(?i)@(file|folder|url|git):("[^"]*"|\S+)|@(diff|staged)\b`)

// expand replaces references by what they name: a file's content, or a canary.
// The lock is held.
func (s *Server) expand(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		name := strings.Trim(ref[strings.Index(ref, ":")+1:], `"`)
		if data, ok := s.files[name]; ok {
			return "<file>" + string(data) + "</file>"
		}
		return Canary
	})
}

// Canary is what a reference expands to that names no file of the server.
const Canary = "CANARY-OF-THE-HOST"

// execute runs the steps and ends the turn.
func (r *run) execute(steps []Step) {
	r.do(func() {
		r.s.event(r.live, "message.start", nil)
		if r.s.dialect == Dialect019 {
			r.s.event(r.live, "thinking.delta", object{"text": "( ͡° ͜ʖ ͡°) contemplating..."})
		}
	})
	for _, step := range steps {
		if !step(r) {
			return
		}
	}
	Complete("")(r)
}

// do runs f under the lock, unless the turn was stopped; then the turn ends as
// an interrupted one, and do reports false.
func (r *run) do(f func()) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.sessions[r.live.runtime] != r.live || r.live.turn != r.turn {
		return false // the process restarted
	}
	if r.ctx.Err() != nil {
		r.s.storePartial(r.live.storedID, r.turn.text)
		r.finish(object{"text": r.turn.text, "status": "interrupted", "usage": object{}}, "")
		return false
	}
	f()
	return true
}

// finish sends the terminal event, stores the answer, and starts what is queued.
// The lock is held.
func (r *run) finish(payload object, store string) {
	s, live := r.s, r.live
	if store != "" {
		s.add(s.stored[live.storedID], Message{Role: "assistant", Content: store, FinishReason: "stop"})
	}
	live.turn, live.recovered = nil, false
	if payload != nil {
		s.event(live, "message.complete", payload)
	}
	s.event(live, "session.info", s.info(live))
	if len(live.queued) > 0 {
		text := strings.Join(live.queued, "\n\n")
		live.queued = nil
		s.start(live, text)
	}
}

// storePartial stores what an interrupted turn had said, which has no reason why
// it ended. The lock is held.
func (s *Server) storePartial(storedID, text string) {
	if text != "" {
		s.add(s.stored[storedID], Message{Role: "assistant", Content: text})
	}
}

// emit returns a step that sends an event.
func emit(kind string, payload object) Step {
	return func(r *run) bool { return r.do(func() { r.s.event(r.live, kind, payload) }) }
}

// Delta streams text.
func Delta(text string) Step {
	return func(r *run) bool {
		return r.do(func() {
			r.turn.text += text
			r.s.event(r.live, "message.delta", object{"text": text})
		})
	}
}

// Reasoning streams text that is no answer.
func Reasoning(text string) Step { return emit("reasoning.delta", object{"text": text}) }

// Interim parts the text before a tool from the text after it.
func Interim(text string, streamed bool) Step {
	return emit("message.interim", object{"text": text, "already_streamed": streamed})
}

// Event sends any event of the session.
func Event(kind string, payload map[string]any) Step { return emit(kind, payload) }

// Tool uses a tool, whose call and result are stored.
func Tool(id, name, summary string) Step {
	return func(r *run) bool {
		return r.do(func() {
			s, stored := r.s, r.s.stored[r.live.storedID]
			s.event(r.live, "tool.start", object{"tool_id": id, "name": name, "context": summary})
			s.add(stored, Message{Role: "assistant", Content: r.turn.text, ToolCalls: []object{{"id": id, "function": object{"name": name}}}, FinishReason: "tool_calls"})
			s.event(r.live, "tool.complete", object{"tool_id": id, "name": name, "duration_s": 0.25, "summary": summary})
			s.add(stored, Message{Role: "tool", Content: "secret result"})
		})
	}
}

// Hold stops at a gate until it is opened or the turn is stopped.
func Hold(gate *Gate) Step {
	return func(r *run) bool { r.hold(gate); return r.do(func() {}) }
}

// HoldOn is Hold for a turn that goes on to its next step though it is stopped.
func HoldOn(gate *Gate) Step { return func(r *run) bool { r.hold(gate); return true } }

func (r *run) hold(gate *Gate) {
	close(gate.reached)
	select {
	case <-gate.open:
	case <-r.ctx.Done():
	}
}

// Wait lets time pass.
func Wait(d time.Duration) Step {
	return func(r *run) bool { r.s.wait(r.ctx, d); return r.do(func() {}) }
}

// Act does what the test wants, outside of every lock.
func Act(f func()) Step { return func(*run) bool { f(); return true } }

// Complete ends the turn with its answer, which is the streamed text if it is
// empty.
func Complete(text string) Step {
	return func(r *run) bool {
		r.do(func() {
			if text == "" {
				text = r.turn.text
			}
			r.s.event(r.live, "reasoning.available", object{"text": text})
			r.finish(object{"text": text, "status": "complete", "usage": usage()}, text)
		})
		return false
	}
}

// CompleteAs ends the turn with a payload of the test's own, and stores text.
func CompleteAs(payload map[string]any, text string) Step {
	return func(r *run) bool { r.do(func() { r.finish(payload, text) }); return false }
}

// Fail ends the turn as one that failed.
func Fail(message string, retryable bool) Step {
	return CompleteAs(object{
		"text": "Error: " + message, "status": "error", "error": message,
		"error_surface": object{"layer": "provider", "code": "provider_error", "retryable": retryable},
	}, "")
}

// ErrorAlone ends the turn by an error event and nothing else, as builds do whose
// agent could not be made.
func ErrorAlone(message string) Step {
	return func(r *run) bool {
		r.do(func() { r.s.event(r.live, "error", object{"message": message}); r.finish(nil, "") })
		return false
	}
}

// Vanish ends the turn without a word, as one that is interrupted before its
// agent was built.
func Vanish() Step {
	return func(r *run) bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		if r.live.turn == r.turn {
			r.live.turn = nil
		}
		return false
	}
}

// Cut drops the connection of the session's client, after what was sent before.
func Cut() Step {
	return func(r *run) bool {
		return r.do(func() {
			if r.live.conn != nil {
				r.live.conn.sendRaw(nil)
				r.live.conn = nil
			}
		})
	}
}

// Raw sends a frame as it is; one that begins with a NUL is binary.
func Raw(data string) Step {
	return func(r *run) bool {
		return r.do(func() {
			if r.live.conn != nil {
				r.live.conn.sendRaw([]byte(strings.ReplaceAll(data, "$SESSION", r.live.runtime)))
			}
		})
	}
}

// Rotate continues the session in another stored one, as compression does, and
// tells the client if told is set.
func Rotate(id string, told bool) Step {
	return func(r *run) bool {
		return r.do(func() {
			s, before := r.s, r.s.stored[r.live.storedID]
			next := &storedSession{id: id, profile: before.profile, source: before.source, hidden: before.hidden}
			before.continued = id
			next.messages = append(next.messages, before.messages...)
			s.stored[id] = next
			r.live.storedID = id
			if told {
				s.event(r.live, "session.info", s.info(r.live))
			}
		})
	}
}

// Skip makes a gap in the numbers of the session's events.
func Skip(n int) Step {
	return func(r *run) bool { return r.do(func() { r.live.seq += n }) }
}

func usage() object {
	return object{"model": "scripted", "input": 11, "output": 7, "total": 18, "context_used": 900, "context_max": 128000}
}
