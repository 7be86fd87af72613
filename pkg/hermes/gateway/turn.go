package gateway

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/hermes"
)

// maxParked is how many frames wait until the session is known.
const maxParked = 4096

// maxPreview is how much of a preview is kept, in bytes.
const maxPreview = 8 << 20

// receive takes events and requests from the link's reader.
func (s *session) receive(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parking {
		if len(s.parked) < maxParked {
			s.parked = append(s.parked, f)
		}
		return
	}
	s.handle(f)
}

// handle handles one event or request. The lock is held.
func (s *session) handle(f frame) {
	if len(f.ID) > 0 && string(f.ID) != "null" {
		s.requested(f)
		return
	}
	var e event
	if f.Method != "event" || json.Unmarshal(f.Params, &e) != nil {
		return
	}
	if e.SessionID != s.state.RuntimeID || s.repeated(e) {
		return
	}
	s.link.heard.Store(time.Now().UnixNano())
	s.happened(e)
}

// repeated reports whether an event was handled before. The lock is held.
func (s *session) repeated(e event) bool {
	if e.Seq == 0 {
		return false
	}
	if e.Seq <= s.seq {
		return true
	}
	s.seq = e.Seq
	return false
}

// payload is what the events have that matter here.
type payload struct {
	Text            string          `json:"text"`
	AlreadyStreamed bool            `json:"already_streamed"`
	Status          string          `json:"status"`
	Error           json.RawMessage `json:"error"`
	Message         string          `json:"message"`
	Warning         string          `json:"warning"`
	Partial         bool            `json:"partial"`
	FailureReason   string          `json:"failure_reason"`
	ErrorSurface    *struct {
		Code      string `json:"code"`
		Retryable bool   `json:"retryable"`
	} `json:"error_surface"`
	Usage           usage   `json:"usage"`
	ToolID          string  `json:"tool_id"`
	Name            string  `json:"name"`
	Context         string  `json:"context"`
	Summary         string  `json:"summary"`
	Duration        float64 `json:"duration_s"`
	StoredSessionID string  `json:"stored_session_id"`
	ID              string  `json:"id"`
	RequestID       string  `json:"request_id"`
	Reason          string  `json:"reason"`
}

// happened handles an event of the session. Those that nobody knows are ignored.
// The lock is held.
func (s *session) happened(e event) {
	var p payload
	if len(e.Payload) > 0 && json.Unmarshal(e.Payload, &p) != nil {
		return
	}
	switch e.Type {
	case "session.info":
		if s.renamed(p.StoredSessionID) {
			s.queue.add(hermes.Rebound{State: s.snapshot()})
		}
	case "session.reclaimed":
		s.poke()
	case "request.cancel":
		s.closeQuestion(p.ID, p.Reason)
	case "approval.expire", "clarify.expire", "approval.expired", "clarify.expired":
		s.closeQuestion(p.RequestID, "timeout")
	case "approval.request", "approval.requested":
		s.ask(approvalOf(e.Payload, form{event: true}))
	case "clarify.request", "clarify.requested":
		s.ask(clarificationOf(e.Payload, form{event: true}))
	default:
		s.progress(e.Type, p)
	}
}

// progress handles an event of the turn. What comes outside of our turn belongs
// to another one. The lock is held.
func (s *session) progress(kind string, p payload) {
	if s.phase == behind && kind == "message.start" && s.foreignOver {
		s.phase = executing
	}
	if s.phase == behind && kind == "message.complete" {
		s.foreignOver = true
	}
	if s.phase != submitting && s.phase != executing {
		return
	}
	switch kind {
	case "message.start":
		s.queue.add(hermes.Started{})
	case "message.delta":
		s.append(p.Text)
	case "message.interim":
		s.interim(p)
	case "reasoning.delta": // thinking.delta is a spinner, reasoning.available repeats the answer
		s.queue.add(hermes.Reasoning{Text: p.Text})
	case "tool.start", "tool.progress", "tool.complete":
		s.tool(kind, p)
	case "session.usage":
		s.queue.add(hermes.Used{Usage: p.Usage.public()})
	case "message.complete":
		s.complete(p)
	case "error":
		s.failing(p)
	}
}

// append adds to the preview. The lock is held.
func (s *session) append(text string) {
	if s.previewed += len(text); s.previewed > maxPreview {
		return
	}
	if shown := s.scrub.feed(text); shown != "" {
		s.queue.add(hermes.Delta{Text: shown})
	}
}

// interim parts the text before a tool from the text after it. The lock is held.
func (s *session) interim(p payload) {
	if !p.AlreadyStreamed {
		s.append(p.Text)
	}
	s.queue.add(hermes.Break{})
}

// tool tells of the use of a tool; of its arguments and result nothing is kept.
// The lock is held.
func (s *session) tool(kind string, p payload) {
	summary := p.Summary
	if summary == "" {
		summary = p.Context
	}
	s.queue.add(hermes.Tool{
		ID: p.ToolID, Name: s.client.safe(p.Name), Summary: s.client.safe(s.scrub.scrub(summary)),
		Done: kind == "tool.complete", Duration: time.Duration(p.Duration * float64(time.Second)),
	})
}

// complete ends the turn. The lock is held.
func (s *session) complete(p payload) {
	text := s.scrub.scrub(p.Text)
	switch p.Status {
	case "interrupted", "cancelled":
		s.finishLocked(hermes.Interrupted{Text: text})
	case "error", "failed":
		s.finishLocked(hermes.Failed{Err: s.modelFailure(p)})
	default:
		s.finishLocked(hermes.Completed{
			Text: text, Truncated: p.Partial || p.FailureReason == "length", Warning: s.client.safe(p.Warning), Usage: p.Usage.public(),
		})
	}
}

// modelFailure returns why a turn failed.
func (s *session) modelFailure(p payload) *hermes.Error {
	failure := &hermes.Error{Kind: hermes.KindModel, Doing: "run the turn"}
	var cause string
	_ = json.Unmarshal(p.Error, &cause)
	for _, text := range []string{cause, p.Message, strings.TrimPrefix(p.Text, "Error: "), p.FailureReason, "the turn failed"} {
		if failure.Text = s.client.safe(s.scrub.scrub(text)); failure.Text != "" {
			break
		}
	}
	failure.Retryable = p.ErrorSurface != nil && p.ErrorSurface.Retryable
	return failure
}

// failing notes an error event. Alone it ends the turn, but its completion may
// yet follow, so the supervisor looks in a moment. The lock is held.
func (s *session) failing(p payload) {
	s.failure = s.modelFailure(p)
	s.poke()
}

// usage is a session's usage as the server tells it.
type usage struct {
	Model       string `json:"model"`
	Input       int64  `json:"input"`
	Output      int64  `json:"output"`
	ContextUsed int64  `json:"context_used"`
	ContextMax  int64  `json:"context_max"`
}

// public returns the usage for others.
func (u usage) public() hermes.Usage {
	return hermes.Usage{Used: u.ContextUsed, Max: u.ContextMax, Input: u.Input, Output: u.Output, Model: u.Model}
}
