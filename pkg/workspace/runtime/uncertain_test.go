package runtime_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

// wasUncertain reports whether a run of Ann's ever was uncertain.
func (r *rig) wasUncertain(run workspace.Run) bool {
	r.Helper()
	return slices.ContainsFunc(r.events(), func(e workspace.Event) bool {
		var known workspace.Run
		return e.Type == workspace.EventRun && json.Unmarshal(e.Data, &known) == nil && known.ID == run.ID && known.Status == workspace.RunUncertain
	})
}

// Ensures that a connection that is lost with the acknowledgement, or in the midst
// of the turn, makes the run uncertain until the answer is found; the prompt is
// not sent again (section 6.10). In every dialect.
func TestScenario59_ConnectionLost(t *testing.T) {
	t.Parallel()
	for _, dialect := range hermestest.Dialects() {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				chat := r.direct("A")
				r.fake.Inject(hermestest.After("prompt.submit", hermestest.Drop()))
				r.answers("A", "found")
				run := r.send(chat, "hi")
				r.ends(run, workspace.RunComplete)
				r.wantSays(chat, "user: hi", "A: found")
				r.script("A", hermestest.Delta("some"), hermestest.Cut(), hermestest.Wait(5*time.Second), hermestest.Complete("all of it"))
				second := r.send(chat, "more")
				r.ends(second, workspace.RunComplete)
				if !r.wasUncertain(run) || !r.wasUncertain(second) {
					t.Error("a run was never uncertain")
				}
				if got := r.says(chat)[3]; got != "A: all of it" {
					t.Errorf("the answer is %q", got)
				}
				if got := r.prompts(); got != "AA" {
					t.Errorf("prompted %s", got)
				}
			}, hermestest.WithDialect(dialect))
		})
	}
}

// cutOff brings a run to where the upstream restarted in the midst of its turn and
// forgot it: its history has the prompt and nothing else. It returns the session
// and the prompt.
func (r *rig) cutOff(chat workspace.ConversationID) (run workspace.Run, session, prompt string) {
	r.Helper()
	gate := hermestest.NewGate()
	r.script("A", hermestest.Delta("half"), hermestest.Hold(gate))
	run = r.send(chat, "hi")
	r.reached(gate)
	r.fake.Restart()
	r.becomes(run, workspace.RunUncertain)
	prompts := r.fake.Prompts()
	last := prompts[len(prompts)-1]
	return run, last.StoredID, last.Text
}

// Ensures that the answer to a later entry is not taken for the turn's, and that
// the right one is, once it is there (section 6.10, step 3).
func TestScenario60_LaterEntry(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		run, session, prompt := r.cutOff(chat)
		r.fake.Store(session, "a", hermestest.Message{Role: "user", Content: "later"}, hermestest.Message{Role: "assistant", Content: "wrong", FinishReason: "stop"})
		time.Sleep(5 * time.Minute)
		if got := r.run(run); got.Status != workspace.RunUncertain || got.Error == "" {
			t.Errorf("the run is %+v", got)
		}
		r.fake.Store(session, "a", hermestest.Message{Role: "user", Content: prompt}, hermestest.Message{Role: "assistant", Content: "right", FinishReason: "stop"})
		r.reconcile(run.ID)
		r.ends(run, workspace.RunComplete)
		r.wantSays(chat, "user: hi", "A: right")
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a call of a tool or its result is no answer, and that an answer is
// found behind many entries (section 6.10, step 3).
func TestScenario61_ToolsAndPages(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		run, session, _ := r.cutOff(chat)
		calls := []map[string]any{{"id": "1"}}
		for range 400 {
			r.fake.Store(session, "a", hermestest.Message{Role: "assistant", Content: "I look", ToolCalls: calls, FinishReason: "tool_calls"})
			r.fake.Store(session, "a", hermestest.Message{Role: "tool", Content: "result"})
		}
		time.Sleep(5 * time.Minute)
		if got := r.run(run); got.Status != workspace.RunUncertain {
			t.Errorf("with a tool's result it is %s", got.Status)
		}
		r.fake.Store(session, "a", hermestest.Message{Role: "assistant", Content: "found", FinishReason: "stop"})
		r.ends(run, workspace.RunComplete) // by its own retry
		r.wantSays(chat, "user: hi", "A: found")
	})
}

// Ensures that an uncertain run blocks its chat until it is stopped, and that its
// stop is confirmed by a session that is idle (sections 6.9 and 6.10).
func TestUncertainBlocksItsChat(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		run, _, _ := r.cutOff(chat)
		second := r.send(chat, "more")
		time.Sleep(time.Minute)
		if got := r.status(second); got != workspace.RunQueued {
			t.Errorf("the second run is %s", got)
		}
		r.stopRun(run.ID)
		r.ends(run, workspace.RunInterrupted)
		r.ends(second, workspace.RunComplete)
		if got := r.prompts(); got != "AA" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a stop of a run interrupts who runs, starts none of who waits, and
// that nothing follows (section 6.9).
func TestScenario66_StopOfARun(t *testing.T) {
	t.Parallel()
	for _, dialect := range hermestest.Dialects() {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				chat := r.group(workspace.ModeFree, "ABCD", "ABCD", 9)
				gates := []*hermestest.Gate{}
				for _, letter := range []string{"A", "B", "C"} {
					gate := hermestest.NewGate()
					gates = append(gates, gate)
					r.script(letter, hermestest.Delta("part of "+letter), hermestest.Hold(gate))
				}
				run := r.send(chat, "@A @B @C @D")
				r.reached(gates...)
				r.stopRun(run.ID)
				r.ends(run, workspace.RunInterrupted)
				time.Sleep(time.Minute)
				if got := sorted(r.prompts()); got != "ABC" {
					t.Errorf("prompted %s", got)
				}
				if n := len(r.fake.Calls("session.interrupt")); n != 3 {
					t.Errorf("%d interrupts", n)
				}
				for _, line := range r.says(chat)[1:] {
					if !strings.HasSuffix(line, "(interrupted)") || !strings.Contains(line, "part of") {
						t.Errorf("the chat has %q", line)
					}
				}
			}, hermestest.WithDialect(dialect))
		})
	}
}

// Ensures that a stop that the upstream does not confirm is not taken for one, and
// is asked for again (section 6.9).
func TestScenario67_UnconfirmedStop(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		gate := hermestest.NewGate()
		r.script("A", hermestest.Hold(gate))
		r.fake.Inject(hermestest.Before("session.interrupt", hermestest.Answer(4000, "not now")))
		run := r.send(chat, "hi")
		r.reached(gate)
		r.stopRun(run.ID)
		r.ends(run, workspace.RunInterrupted)
		if !r.wasUncertain(run) {
			t.Error("an unconfirmed stop was not told")
		}
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a member's stop leaves the others alone, and that the review is
// told of it (section 6.9).
func TestScenario68_StopOfAMember(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		b, c := hermestest.NewGate(), hermestest.NewGate()
		r.answers("A", "@B @C", "done")
		r.script("B", hermestest.Hold(b))
		r.script("C", hermestest.Hold(c), hermestest.Complete("c"))
		run := r.send(chat, "go")
		r.reached(b, c)
		r.stopMember(chat, "B")
		r.until("B is stopped", func() bool { return len(r.detail(chat).Conversation.ActiveAgentStates) == 1 })
		c.Open()
		r.ends(run, workspace.RunComplete)
		if p := r.prompt("A", 1); !strings.Contains(p, "- B：已中断") || !strings.Contains(p, "- C：已完成") {
			t.Errorf("the review is told\n%s", p)
		}
	})
}

// Ensures that a second stop ends a task of a server that cannot be reached, and
// that the first does so when its node is gone for good (section 6.9; section 11,
// items 9 and 29).
func TestStop_Unreachable(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"down": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				chat := r.direct("A")
				gate := hermestest.NewGate()
				r.script("A", hermestest.Hold(gate))
				run := r.send(chat, "hi")
				r.reached(gate)
				r.fake.SetDown(true)
				r.gone.Store(gone)
				time.Sleep(5 * time.Minute) // the client has given up
				if got := r.status(run); got != workspace.RunUncertain {
					t.Fatalf("the run is %s", got)
				}
				r.stopRun(run.ID)
				if !gone {
					time.Sleep(5 * time.Minute)
					if got := r.status(run); got != workspace.RunUncertain {
						t.Errorf("after one stop the run is %s", got)
					}
					r.stopRun(run.ID)
				}
				r.ends(run, workspace.RunInterrupted)
				if m := r.detail(chat).Messages[1]; !strings.Contains(m.Error, "远端是否仍在执行未知") {
					t.Errorf("the row says %q", m.Error)
				}
				r.fake.SetDown(false)
				r.gone.Store(false)
				gate.Open()
				r.ends(r.send(chat, "again"), workspace.RunComplete)
			})
		})
	}
}

// Ensures that a stop before anything was submitted ends the task without a
// prompt (section 6.4).
func TestStop_BeforeSubmission(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		gate := hermestest.NewGate()
		r.fake.Inject(hermestest.Before("session.create", hermestest.HoldCall(gate)))
		run := r.send(chat, "hi")
		r.reached(gate)
		r.stopRun(run.ID)
		r.ends(run, workspace.RunInterrupted)
		gate.Open()
		time.Sleep(time.Minute)
		if got := r.prompts(); got != "" {
			t.Errorf("prompted %s", got)
		}
		r.wantSays(chat, "user: hi")
		r.ends(r.send(chat, "again"), workspace.RunComplete)
	})
}

// Ensures that a turn that the upstream takes up again after its restart is
// followed to its end (hermes-upstream, W12).
func TestUpstreamContinues(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		gate := hermestest.NewGate()
		r.script("A", hermestest.Delta("half"), hermestest.Hold(gate))
		run := r.send(chat, "hi")
		r.reached(gate)
		r.fake.ContinueAfterRestart(r.fake.Prompts()[0].StoredID, hermestest.Wait(3*time.Second), hermestest.Complete("whole"))
		r.fake.Restart()
		r.ends(run, workspace.RunComplete)
		r.wantSays(chat, "user: hi", "A: whole")
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a prompt that is known not to have arrived fails its run, and is
// not sent again (section 6.10).
func TestNotAccepted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.ends(r.send(chat, "first"), workspace.RunComplete)
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Drop()))
		run := r.send(chat, "hi")
		r.ends(run, workspace.RunFailed)
		if got := r.run(run); !strings.Contains(got.Error, "未送达") || !r.wasUncertain(run) {
			t.Errorf("the run is %+v", got)
		}
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a stop of the daemon leaves the turn running upstream, and that the
// next one finds it again and goes on with it (section 6.1).
func TestRestart_FindsTheTurnAgain(t *testing.T) {
	t.Parallel()
	for _, dialect := range hermestest.Dialects() {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				chat := r.direct("A")
				gate := hermestest.NewGate()
				r.script("A", hermestest.Delta("before "), hermestest.HoldOn(gate), hermestest.Delta("after"), hermestest.Wait(time.Second), hermestest.Complete(""))
				run := r.send(chat, "hi")
				r.reached(gate)
				r.stop()
				r.start()
				r.becomes(run, workspace.RunRunning)
				gate.Open()
				r.ends(run, workspace.RunComplete)
				r.wantSays(chat, "user: hi", "A: before after")
				if got := r.prompts(); got != "A" || len(r.fake.Calls("session.interrupt")) != 0 {
					t.Errorf("prompted %s", got)
				}
			}, hermestest.WithDialect(dialect))
		})
	}
}

// Ensures that a turn that ended while the daemon was away is found in the history.
func TestRestart_FindsTheAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		gate := hermestest.NewGate()
		r.script("A", hermestest.HoldOn(gate), hermestest.Complete("meanwhile"))
		run := r.send(chat, "hi")
		r.reached(gate)
		r.stop()
		gate.Open()
		time.Sleep(time.Hour)
		r.start()
		r.ends(run, workspace.RunComplete)
		r.wantSays(chat, "user: hi", "A: meanwhile")
	})
}
