package runtime_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

// asked waits until a chat of Ann's has so many open questions, and returns them.
func (r *rig) asked(chat workspace.ConversationID, n int) []workspace.Interaction {
	r.Helper()
	r.until("questions are open", func() bool { return len(r.detail(chat).Interactions) == n })
	return r.detail(chat).Interactions
}

// Ensures that an approval makes its run wait, that its answer reaches the
// upstream once, and what answers after it get (section 6.11). In every dialect.
func TestScenario71_Approval(t *testing.T) {
	t.Parallel()
	for _, dialect := range hermestest.Dialects() {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				chat := r.direct("A")
				r.script("A", hermestest.Approval("rm -r /tmp/x", "once", "session", "deny"), hermestest.Complete(""))
				run := r.send(chat, "hi")
				question := r.asked(chat, 1)[0]
				if r.status(run) != workspace.RunWaiting || question.Kind != workspace.Approval || !strings.Contains(question.Message, "rm -r /tmp/x") || len(question.Choices) == 0 {
					t.Errorf("the run is %s, the question %+v", r.status(run), question)
				}
				r.must(r.respond(question.ID, "once"))
				r.ends(run, workspace.RunComplete)
				if got := r.says(chat)[1]; !strings.Contains(got, "once") {
					t.Errorf("the upstream was told %q", got)
				}
				r.must(r.respond(question.ID, "once"))
				if err := r.respond(question.ID, "deny"); workspace.CodeOf(err) != workspace.CodeAnswerConflict {
					t.Errorf("another answer gives %v", err)
				}
				if got := r.prompts(); got != "A" {
					t.Errorf("prompted %s", got)
				}
			}, hermestest.WithDialect(dialect))
		})
	}
}

// Ensures that two sessions may ask under the same id, and each gets its own
// answer; a repeated question makes no second card (section 2.9). In the oldest
// dialect, approvals have no ids at all.
func TestScenario72_SameRequestID(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "AB", "", 1)
		for _, letter := range []string{"A", "B"} {
			r.script(letter, hermestest.Approval("ask "+letter, "once", "deny"), hermestest.Complete(""))
		}
		run := r.send(chat, "@A @B")
		questions := r.asked(chat, 2)
		if questions[0].Origin.UpstreamRequestID != questions[1].Origin.UpstreamRequestID {
			t.Fatalf("the ids differ: %+v", questions)
		}
		r.fake.DropConnections() // and so both are asked again
		time.Sleep(time.Minute)
		if n := len(r.detail(chat).Interactions); n != 2 {
			t.Errorf("there are %d cards", n)
		}
		words := map[workspace.AgentID]string{r.agent("A").ID: "once", r.agent("B").ID: "deny"}
		for _, q := range questions {
			r.must(r.respond(q.ID, words[q.AgentID]))
		}
		r.ends(run, workspace.RunComplete)
		got := r.says(chat)
		if !slices.Contains(got, "A: [approval: once]") || !slices.Contains(got, "B: [approval: deny]") {
			t.Errorf("the chat has %q", got)
		}
	}, hermestest.WithDialect(hermestest.Dialect019))
}

// Ensures that an answer whose acknowledgement is lost is never sent again
// (section 6.11).
func TestScenario73_LostAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.script("A", hermestest.Approval("x", "once", "deny"), hermestest.Hold(hermestest.NewGate()))
		r.fake.Inject(hermestest.After("approval.respond", hermestest.Mute()))
		run := r.send(chat, "hi")
		question := r.asked(chat, 1)[0]
		if err := r.respond(question.ID, "once"); err == nil {
			t.Error("a lost answer was taken for one")
		}
		if err := r.respond(question.ID, "once"); workspace.CodeOf(err) != workspace.CodeAnswerUncertain {
			t.Errorf("again gives %v", err)
		}
		if n := len(r.fake.Calls("approval.respond")); n != 1 {
			t.Errorf("the upstream was told %d times", n)
		}
		r.stopRun(run.ID)
		r.ends(run, workspace.RunInterrupted)
	}, hermestest.WithDialect(hermestest.DialectOld))
}

// Ensures that a clarification takes free text, in one item and in several, and
// that questions survive a restart of the daemon (section 6.11).
func TestClarification(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.script("A", hermestest.Clarify(hermestest.Item{ID: "q", Text: "Which?", Choices: []string{"x", "y"}}),
			hermestest.Clarify(hermestest.Item{ID: "one", Text: "First?"}, hermestest.Item{ID: "two", Text: "Second?", Choices: []string{"a", "b"}, Multiple: true}),
			hermestest.Complete(""))
		run := r.send(chat, "hi")
		first := r.asked(chat, 1)[0]
		if first.Message != "Which?" || !slices.Equal(first.Choices, []string{"x", "y"}) {
			t.Errorf("the question is %+v", first)
		}
		r.restart()
		r.until("it is asked on the new connection", func() bool { return r.runtime.Online(r.detail(chat).Interactions[0]) })
		if got := r.status(run); got != workspace.RunWaiting {
			t.Errorf("the run is %s", got)
		}
		r.must(r.respond(first.ID, "neither"))
		r.until("the next question is open", func() bool {
			open := r.detail(chat).Interactions
			return len(open) == 1 && open[0].ID != first.ID
		})
		second := r.asked(chat, 1)[0]
		if second.Message != "1. First?\n2. Second?（a / b）" {
			t.Errorf("the question is %q", second.Message)
		}
		r.must(r.respond(second.ID, "1. this\n2. a, b"))
		r.ends(run, workspace.RunComplete)
		got := r.says(chat)[1]
		for _, part := range []string{`"q":"neither"`, `"one":"this"`, `"two":"[\"a\",\"b\"]"`} {
			if !strings.Contains(got, part) {
				t.Errorf("%s is missing in %s", part, got)
			}
		}
	})
}

// Ensures that a question is offline without a live connection, and closed once
// the upstream gave it up (section 6.11).
func TestQuestion_OfflineAndExpired(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.script("A", hermestest.Approval("x", "once", "deny"), hermestest.Wait(time.Second), hermestest.Complete("went on"))
		run := r.send(chat, "hi")
		question := r.asked(chat, 1)[0]
		r.fake.SetDown(true)
		r.until("the connection is seen to be lost", func() bool { return r.status(run) == workspace.RunUncertain })
		if err := r.respond(question.ID, "once"); workspace.CodeOf(err) != workspace.CodeAnswerOffline {
			t.Errorf("offline gives %v", err)
		}
		r.fake.SetDown(false)
		r.until("it is online again", func() bool { return r.runtime.Online(question) })
		r.ends(run, workspace.RunComplete) // it expired
		if open := r.detail(chat).Interactions; len(open) != 0 {
			t.Errorf("open questions: %+v", open)
		}
	})
}

// Ensures that a refused answer leaves the question open for another one (section
// 6.11).
func TestQuestion_RefusedAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.script("A", hermestest.Approval("x", "once", "deny"), hermestest.Complete(""))
		r.fake.Inject(hermestest.Before("approval.respond", hermestest.Answer(4000, "not that")))
		run := r.send(chat, "hi")
		question := r.asked(chat, 1)[0]
		if err := r.respond(question.ID, "allow"); err == nil || errors.Is(err, workspace.Fail(workspace.CodeAnswerConflict)) {
			t.Errorf("a refused answer gives %v", err)
		}
		r.must(r.respond(question.ID, "always"))
		r.ends(run, workspace.RunComplete)
		for _, call := range r.fake.Calls("approval.respond") {
			if call.Params["choice"] == "always" {
				t.Error("an answer was sent that outlives the session")
			}
		}
	}, hermestest.WithDialect(hermestest.DialectOld))
}
