package hermestest

import (
	"encoding/json"
	"fmt"
	"time"
)

// Item is one question of a clarification.
type Item struct {
	ID       string
	Text     string
	Choices  []string
	Multiple bool
}

// Approval asks whether a command may run, and goes on when it was answered. The
// answer becomes text of the turn: "[approval: once]".
func Approval(command string, choices ...string) Step {
	return asking("approval", approvalLife, func(*Server) object {
		return object{
			"command": command, "description": "runs a shell command", "pattern_key": "shell", "pattern_keys": []string{"shell"},
			"choices": choices, "allow_permanent": true, "tool_name": "terminal",
		}
	})
}

// Clarify asks one question or several. The answers become text of the turn.
func Clarify(items ...Item) Step {
	return asking("clarify", clarifyLife, func(s *Server) object {
		if !s.strict() && len(items) == 1 {
			return object{"question": items[0].Text, "choices": items[0].Choices}
		}
		rows := []object{}
		for _, item := range items {
			rows = append(rows, object{"qid": item.ID, "question": item.Text, "choices": item.Choices, "multi_select": item.Multiple})
		}
		return object{"questions": rows}
	})
}

// Ask asks something that is not for people, such as "sudo". A refusal becomes
// text of the turn: "[sudo: error -32601]".
func Ask(kind string) Step {
	return asking(kind, approvalLife, func(*Server) object { return object{"prompt": "password"} })
}

// asking returns a step that asks and waits for the answer, the end of the
// question's life, or the end of the turn.
func asking(kind string, life time.Duration, params func(*Server) object) Step {
	return func(r *run) bool {
		var q *question
		if !r.do(func() { q = r.s.ask(r.live, kind, params(r.s)) }) {
			return false
		}
		timer := time.NewTimer(life)
		defer timer.Stop()
		answer := object(nil)
		select {
		case answer = <-q.answer:
		case <-timer.C:
			r.do(func() {
				if r.s.questions[q.id] == q {
					r.s.closeQuestion(q, "timeout")
				}
			})
		case <-r.ctx.Done():
		}
		return Delta(fmt.Sprintf("[%s: %s]", kind, spell(answer)))(r)
	}
}

// spell writes an answer for a turn's text.
func spell(answer object) string {
	if answer == nil {
		return "none"
	}
	if code, ok := answer["error"]; ok {
		return fmt.Sprintf("error %v", code)
	}
	if choice, ok := answer["choice"]; ok {
		return fmt.Sprint(choice)
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
