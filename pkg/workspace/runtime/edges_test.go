package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

// held begins a turn of A's direct chat that stands at a gate.
func (r *rig) held() (workspace.ConversationID, workspace.Run, *hermestest.Gate) {
	r.Helper()
	chat, gate := r.direct("A"), hermestest.NewGate()
	r.script("A", hermestest.Delta("part"), hermestest.Hold(gate), hermestest.Complete("whole"))
	run := r.send(chat, "hi")
	r.reached(gate)
	return chat, run, gate
}

// Ensures that a second stop ends a task whose connection is just being restored,
// and one whose stop is refused, at once (section 6.9).
func TestStop_SecondIsFinal(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(r *rig){
		"no connection": func(r *rig) { r.fake.SetDown(true) },
		"refused": func(r *rig) {
			for range 50 {
				r.fake.Inject(hermestest.Before("session.interrupt", hermestest.Answer(4000, "no")))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				chat, run, _ := r.held()
				damage(r)
				r.stopRun(run.ID)
				r.becomes(run, workspace.RunUncertain)
				r.stopRun(run.ID)
				time.Sleep(100 * time.Millisecond)
				r.ends(run, workspace.RunInterrupted)
				if m := r.detail(chat).Messages[1]; m.Content != "part" || !strings.Contains(m.Error, "未知") {
					t.Errorf("the row is %+v", m)
				}
				r.fake.SetDown(false)
			})
		})
	}
}

// Ensures that a task whose stop was agreed to is interrupted although its turn
// never tells so (section 6.9).
func TestStop_AgreedWithoutAnEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		_, run, _ := r.held()
		r.fake.Inject(hermestest.Before("session.interrupt", hermestest.Result(map[string]any{"status": "interrupted"})))
		r.stopRun(run.ID)
		r.ends(run, workspace.RunInterrupted)
	})
}

// Ensures that an answer which comes before the stop is kept, in a run that counts
// as interrupted all the same (sections 6.2 and 6.3).
func TestStop_TooLate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat, run, gate := r.held()
		hold := hermestest.NewGate()
		r.fake.Inject(hermestest.Before("session.interrupt", hermestest.HoldCall(hold)))
		r.stopRun(run.ID)
		r.reached(hold)
		gate.Open()
		r.ends(run, workspace.RunInterrupted)
		r.wantSays(chat, "user: hi", "A: whole")
		hold.Open()
	})
}

// Ensures that archiving a group stops what runs in it, queued and running, and
// that it works again when it is back (section 5.5, scenario 80).
func TestScenario80_Archive(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat, gate := r.group(workspace.ModeHost, "AB", "", 3), hermestest.NewGate()
		r.script("A", hermestest.Hold(gate))
		running := r.send(chat, "one")
		r.reached(gate)
		queued := r.send(chat, "two")
		r.edit(chat, workspace.ConversationPatch{Archived: workspace.Some(true)})
		r.ends(running, workspace.RunInterrupted)
		r.ends(queued, workspace.RunInterrupted)
		r.edit(chat, workspace.ConversationPatch{Archived: workspace.Some(false)})
		r.ends(r.send(chat, "three"), workspace.RunComplete)
		if got := r.prompts(); got != "AA" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a session which executes somebody else's turn is waited for
// (section 7.3).
func TestBusy_ForeignTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		gate := hermestest.NewGate()
		r.script("A", hermestest.Hold(gate), hermestest.Complete("foreign"))
		other, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: "a", StoredID: r.fake.StoredIDs()[0]})
		r.must(err)
		marker, err := hermes.NewMarker("other", "other")
		r.must(err)
		r.must(other.Submit(r.Context(), hermes.Prompt{Marker: marker, Text: "foreign"}))
		r.reached(gate)
		run := r.send(chat, "more")
		time.Sleep(3 * time.Second)
		if got := r.status(run); got != workspace.RunQueued && got != workspace.RunRunning {
			t.Errorf("the run is %s", got)
		}
		gate.Open()
		r.ends(run, workspace.RunComplete)
		if got := r.says(chat); len(got) != 4 || got[3] != "A: ok" {
			t.Errorf("the chat has %q", got)
		}
	})
}

// Ensures section 6.4, step 1: a task that looks as if somebody executed it, which
// nobody does, is executed after all when it was not submitted.
func TestRepair(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.directOf(bob, r.agentOf(bob, "B"))
		r.sendAs(bob, chat, "hi")
		r.outside(`UPDATE task SET status = 'running', attempt = 1`)
		r.runtime.Wake()
		time.Sleep(time.Second)
		r.enable(bob)
		r.until("Bob is answered", func() bool { return r.prompts() == "B" })
	})
}

// Ensures that a turn which fails, is cut or says nothing is told as what it is
// (sections 6.8 and 7.3).
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps []hermestest.Step
		run   workspace.RunStatus
		row   string // its text, state and error
	}{
		"failed":      {[]hermestest.Step{hermestest.Delta("part"), hermestest.Fail("no credit", false)}, workspace.RunFailed, "part failed 执行失败：no credit"},
		"nothing":     {[]hermestest.Step{hermestest.Complete(" ")}, workspace.RunFailed, " failed " + workspace.NoReply},
		"cut":         {[]hermestest.Step{hermestest.CompleteAs(map[string]any{"text": "half", "status": "complete", "partial": true}, "half")}, workspace.RunComplete, "half complete 答复不完整，已被截断"},
		"interrupted": {[]hermestest.Step{hermestest.CompleteAs(map[string]any{"text": "half", "status": "interrupted"}, "")}, workspace.RunInterrupted, "half interrupted "},
		"tool open":   {[]hermestest.Step{hermestest.Event("tool.start", map[string]any{"tool_id": "1", "name": "x"}), hermestest.Fail("broken", false)}, workspace.RunFailed, " failed 执行失败：broken"},
		"break":       {[]hermestest.Step{hermestest.Delta("one"), hermestest.Interim("", true), hermestest.Delta("two"), hermestest.Fail("broken", false)}, workspace.RunFailed, "one\n\ntwo failed 执行失败：broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				chat := r.direct("A")
				r.script("A", test.steps...)
				r.ends(r.send(chat, "hi"), test.run)
				m := r.detail(chat).Messages[1]
				if got := m.Content + " " + string(m.Status) + " " + m.Error; got != test.row {
					t.Errorf("the row is %q, want %q", got, test.row)
				}
				for _, tool := range m.Tools {
					if !strings.Contains(string(tool), `"status":"tool.error"`) {
						t.Errorf("a tool is left open: %s", tool)
					}
				}
			})
		})
	}
}

// Ensures section 6.14: a long reply is written less often as it grows, so that
// the bytes written stay in proportion to the time that it streams.
func TestStreaming_BytesWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		const size, seconds = 1 << 20, 10
		chat := r.direct("A")
		steps := []hermestest.Step{}
		piece := strings.Repeat("x", size/seconds/100)
		for range seconds * 100 {
			steps = append(steps, hermestest.Delta(piece), hermestest.Wait(10*time.Millisecond))
		}
		r.script("A", append(steps, hermestest.Complete(""))...)
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		written, events := 0, 0
		for _, e := range r.events() {
			if e.Type == workspace.EventMessage {
				written += len(e.Data)
				events++
			}
		}
		t.Logf("%d events of %.1f times the reply's size", events, float64(written)/size)
		if written > 6*size || events < 10 {
			t.Errorf("%d events have %d bytes for a reply of %d", events, written, size)
		}
	})
}
