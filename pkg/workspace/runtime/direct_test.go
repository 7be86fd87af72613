package runtime_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

func decode(data []byte, into any) bool { return json.Unmarshal(data, into) == nil }

// Ensures that a message of a direct chat is answered by one prompt, that the
// chat's next one goes to the same session, and that clients see neither prompt
// nor marker (sections 6.1, 6.12 and 9.4).
func TestDirect(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.answers("A", "hello", "again")
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		r.ends(r.send(chat, "more"), workspace.RunComplete)
		r.wantSays(chat, "user: hi", "A: hello", "user: more", "A: again")
		if got := r.prompts(); got != "AA" {
			t.Errorf("prompted %s", got)
		}
		if ids := r.fake.StoredIDs(); len(ids) != 1 {
			t.Errorf("there are the sessions %v", ids)
		}
		if p := r.prompt("A", 1); !strings.Contains(p, "rules of A") || !strings.HasSuffix(p, "more") || strings.Contains(p, "hi\n") {
			t.Errorf("the prompt is\n%s", p)
		}
		for _, e := range r.events() {
			if strings.Contains(string(e.Data), "relay-run") || e.Type != workspace.EventAgent && strings.Contains(string(e.Data), "rules of A") {
				t.Errorf("an event tells of the prompt: %s", e.Data)
			}
		}
	})
}

// Ensures section 6.14: a reply is seen while it streams, its tools with it.
func TestDirect_Streaming(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		gate := hermestest.NewGate()
		r.script("A", hermestest.Reasoning("hm"), hermestest.Delta("one "), hermestest.Tool("t1", "look", "a file"), hermestest.Delta("two"), hermestest.Hold(gate), hermestest.Complete("done"))
		chat := r.direct("A")
		run := r.send(chat, "hi")
		r.reached(gate)
		r.until("the text is seen", func() bool { return strings.Contains(strings.Join(r.says(chat), "|"), "A: one two (streaming)") })
		m := r.detail(chat).Messages[1]
		if m.Reasoning != "hm" || len(m.Tools) != 1 || !strings.Contains(string(m.Tools[0]), `"status":"tool.complete"`) {
			t.Errorf("the row is %+v", m)
		}
		gate.Open()
		r.ends(run, workspace.RunComplete)
		r.wantSays(chat, "user: hi", "A: done")
		if usage := r.detail(chat).Context; usage == nil {
			t.Error("the usage of the context is not known")
		}
	})
}
