package runtime_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

// Ensures that in administrator mode the first and only task of a message is the
// administrator's, whoever is mentioned; it is told whom (section 6.5).
func TestScenario39_AdministratorFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		r.answers("A", "I do it")
		r.ends(r.send(chat, "@B please"), workspace.RunComplete)
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
		if p := r.prompt("A", 0); !strings.Contains(p, "【用户点名】@B") || !strings.Contains(p, "你是管理员") {
			t.Errorf("the prompt is\n%s", p)
		}
	})
}

// Ensures that members who were delegated to run at the same time, and that after
// both there is exactly one review (section 6.6).
func TestScenario40_Batch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		b, c := hermestest.NewGate(), hermestest.NewGate()
		r.answers("A", "@B and @C, look", "done")
		r.script("B", hermestest.Hold(b), hermestest.Complete("b"))
		r.script("C", hermestest.Hold(c), hermestest.Complete("c"))
		run := r.send(chat, "go")
		r.reached(b, c)
		states := r.detail(chat).Conversation.ActiveAgentStates
		if len(states) != 2 || states[r.agent("B").ID] != workspace.TaskRunning {
			t.Errorf("the active members are %v", states)
		}
		c.Open()
		r.until("C is done", func() bool { return slices.Contains(r.says(chat), "C: c") })
		if got := r.prompts(); len(got) != 3 {
			t.Errorf("prompted %s before the batch was over", got)
		}
		b.Open()
		r.ends(run, workspace.RunComplete)
		if got := r.prompts(); len(got) != 4 || !strings.HasSuffix(got, "A") || r.run(run).Round != 1 {
			t.Errorf("prompted %s, round %d", got, r.run(run).Round)
		}
	})
}

// Ensures that a batch of which one fails is reviewed once, that the review is
// told how each ended, and that the run is complete (section 6.6, step 8).
func TestScenario41_ReviewOfAFailure(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		r.answers("A", "@B @C", "done")
		r.answers("B", "b")
		r.script("C", hermestest.Fail("out of memory", false))
		r.ends(r.send(chat, "go"), workspace.RunComplete)
		p := r.prompt("A", 1)
		if !strings.Contains(p, "- B：已完成") || !strings.Contains(p, "- C：失败（执行失败：out of memory") {
			t.Errorf("the review is told\n%s", p)
		}
		if got := r.prompts(); len(got) != 4 {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that limit 3 lets an administrator delegate twice, one after the other,
// without a notice (section 6.6).
func TestScenario42_SerialDelegation(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		r.answers("A", "@B", "@C", "done")
		r.answers("B", "b")
		r.answers("C", "c")
		r.ends(r.send(chat, "go"), workspace.RunComplete)
		if got := r.prompts(); got != "ABACA" {
			t.Errorf("prompted %s", got)
		}
		r.wantSays(chat, "user: go", "A: @B", "B: b", "A: @C", "C: c", "A: done")
	})
}

// Ensures that limit 2 ends an administrator's delegations with one notice
// (sections 6.6 and 6.7).
func TestScenario43_Limit(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "AB", "", 2)
		r.answers("A", "@B", "@B", "@B")
		r.answers("B", "b", "b")
		r.ends(r.send(chat, "go"), workspace.RunComplete)
		if got := r.prompts(); got != "ABA" {
			t.Errorf("prompted %s", got)
		}
		r.wantSays(chat, "user: go", "A: @B", "B: b", "A: @B", "system: "+workspace.LimitNotice)
	})
}

// Ensures that an administrator who has nothing to say says so publicly, and that
// the token of silence is never shown (section 6.8).
func TestScenario44_Fallback(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{workspace.SilenceToken, " \n"} {
		inBubble(t, func(r *rig) {
			chat := r.group(workspace.ModeHost, "AB", "", 3)
			r.script("A", hermestest.Delta(workspace.SilenceToken), hermestest.Complete(answer))
			r.ends(r.send(chat, "go"), workspace.RunComplete)
			r.wantSays(chat, "user: go", "A: "+workspace.FallbackReply)
			for _, e := range r.events() {
				if strings.Contains(string(e.Data), "[[relay") {
					t.Errorf("an event has the token: %s", e.Data)
				}
			}
		})
	}
}

// Ensures that a second message waits for the first to be over, and that no
// prompt of the first has anything of the second (sections 6.4 and 6.13).
func TestScenario45_MessagesInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "AB", "", 3)
		gate := hermestest.NewGate()
		r.answers("A", "@B", "done", "second done")
		r.script("B", hermestest.Hold(gate), hermestest.Complete("b"))
		first := r.send(chat, "one")
		r.reached(gate)
		second := r.send(chat, "SECRET two")
		if second.Status != workspace.RunQueued || r.detail(chat).Conversation.QueuedMessageCount != 1 {
			t.Errorf("the second run is %+v", second)
		}
		gate.Open()
		r.ends(first, workspace.RunComplete)
		r.ends(second, workspace.RunComplete)
		if got := r.prompts(); got != "ABAA" {
			t.Errorf("prompted %s", got)
		}
		for i, p := range r.fake.Prompts() {
			if has := strings.Contains(p.Text, "SECRET"); has != (i == 3) {
				t.Errorf("prompt %d has the second message: %v", i, has)
			}
		}
	})
}

// Ensures that mentions in the reply of a batch's member start nobody (section
// 6.6, step 6).
func TestScenario46_MembersDoNotDelegate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 9)
		r.answers("A", "@B", "done")
		r.answers("B", "@C please")
		r.ends(r.send(chat, "go"), workspace.RunComplete)
		if got := r.prompts(); got != "ABA" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a reply is understood by the mode and the names that its task
// started with, and that the next prompt has the new ones (sections 2.8, 5.3).
func TestScenario47_Snapshot(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "AB", "", 3)
		gate := hermestest.NewGate()
		r.script("A", hermestest.Hold(gate), hermestest.Complete("@B do it"))
		r.answers("A", "done")
		run := r.send(chat, "go")
		r.reached(gate)
		r.edit(chat, workspace.ConversationPatch{Mode: workspace.Some(workspace.ModeFree), Instructions: workspace.Some("new rules")})
		_, _, err := r.store.EditAgent(r.Context(), ann, r.agent("B").ID, workspace.AgentPatch{Name: workspace.Some("Bea")})
		r.must(err)
		gate.Open()
		r.ends(run, workspace.RunComplete)
		if got := r.prompts(); got != "ABA" {
			t.Errorf("prompted %s", got)
		}
		if p := r.prompt("B", 0); !strings.Contains(p, "“Bea”") || !strings.Contains(p, "new rules") {
			t.Errorf("the prompt is\n%s", p)
		}
	})
}
