package runtime_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to break the database from outside

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// Ensures that a member that is removed while it runs may finish, that no later
// relay starts it, and that naming it is refused from then on (section 5.6).
func TestScenario56_RemovedWhileRunning(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "AB", "", 9)
		gate := hermestest.NewGate()
		r.answers("A", "@B", "@B again")
		r.script("B", hermestest.Hold(gate), hermestest.Complete("b"))
		run := r.send(chat, "go")
		r.reached(gate)
		r.edit(chat, workspace.ConversationPatch{MemberIDs: workspace.Some(r.ids("A"))})
		gate.Open()
		r.ends(run, workspace.RunComplete)
		if got := r.prompts(); got != "ABA" {
			t.Errorf("prompted %s", got)
		}
		r.wantSays(chat, "user: go", "A: @B", "B: b", "A: @B again")
		_, err := r.store.Send(r.Context(), ann, chat, workspace.SendMessage{
			RequestID: workspace.Some(workspace.RequestID("00000000-0000-4000-8000-00000000ffff")), Content: workspace.Some("x"), MentionIDs: workspace.Some(r.ids("B")),
		})
		if workspace.CodeOf(err) != workspace.CodeInvalidMentions {
			t.Errorf("naming B gives %v", err)
		}
	})
}

// Ensures that a queued member that is removed never reaches the upstream, and
// that its batch is reviewed all the same (section 5.6).
func TestScenario57_RemovedWhileQueued(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 9)
		gates := map[string]*hermestest.Gate{}
		for _, letter := range []string{"C", "D", "E"} {
			gates[letter] = hermestest.NewGate()
			r.script(letter, hermestest.Hold(gates[letter]), hermestest.Complete("held"))
		}
		chatOfBob := r.directOf(bob, r.agentOf(bob, "E"))
		r.send(r.direct("D"), "x")
		r.send(r.direct("E"), "x")
		r.reached(gates["D"], gates["E"])
		held := hermestest.NewGate()
		r.script("E", hermestest.Hold(held), hermestest.Complete("held"))
		r.enable(bob)
		r.sendAs(bob, chatOfBob, "x")
		r.reached(held)
		r.answers("A", "@C @B", "done")
		run := r.send(chat, "go")
		r.reached(gates["C"]) // the fourth; B waits for a slot
		r.edit(chat, workspace.ConversationPatch{MemberIDs: workspace.Some(r.ids("AC"))})
		for _, gate := range gates {
			gate.Open()
		}
		r.ends(run, workspace.RunComplete)
		if got := r.prompts(); strings.Contains(got, "B") || strings.Count(got, "A") != 2 {
			t.Errorf("prompted %s", got)
		}
		if p := r.prompt("A", 1); !strings.Contains(p, "B：已中断") {
			t.Errorf("the review is told\n%s", p)
		}
		held.Open()
	})
}

// Ensures that a run goes on when the client that sent its message is gone
// (section 6.1).
func TestScenario58_ClientLeaves(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.script("A", hermestest.Wait(time.Minute), hermestest.Complete("done"))
		run := r.send(chat, "hi")
		time.Sleep(10 * time.Minute) // nobody asks
		r.ends(run, workspace.RunComplete)
		r.wantSays(chat, "user: hi", "A: done")
	})
}

// Ensures that a restart in the midst of a batch submits nobody again, finds who
// still executes, and leads to one review (sections 6.6 and 6.10).
func TestScenario62_RestartInABatch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		gate := hermestest.NewGate()
		r.answers("A", "@B @C", "done")
		r.answers("B", "b")
		r.script("C", hermestest.Delta("so far"), hermestest.Hold(gate), hermestest.Complete("c"))
		run := r.send(chat, "go")
		r.reached(gate)
		r.until("B is done", func() bool { return slices.Contains(r.says(chat), "B: b") })
		r.restart()
		r.becomes(run, workspace.RunRunning)
		gate.Open()
		r.ends(run, workspace.RunComplete)
		if got := sorted(r.prompts()); got != "AABC" {
			t.Errorf("prompted %s", got)
		}
		r.restart()
		time.Sleep(time.Minute)
		if got := r.says(chat); len(got) != 5 || got[4] != "A: done" {
			t.Errorf("the chat has %q", got)
		}
	})
}

// Ensures that a restart between a reply and what follows from it loses nothing
// and makes nothing twice (section 6.2).
func TestScenario63_RestartBeforePlanning(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "AB", "", 3)
		r.fake.PutFile("/tmp/plan.md", []byte("plan"))
		r.answers("A", "[plan](/tmp/plan.md) @B", "done")
		r.answers("B", "b")
		r.files.hold()
		run := r.send(chat, "go")
		r.until("the reply is there", func() bool { return len(r.says(chat)) == 2 })
		if got := r.says(chat)[1]; got != "A: [plan](/tmp/plan.md) @B" || r.prompts() != "A" || r.status(run) != workspace.RunRunning {
			t.Fatalf("the chat has %q", got)
		}
		r.restart()
		r.ends(run, workspace.RunComplete)
		if got := r.prompts(); got != "ABA" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a store that fails while follow-ups are written costs nothing but
// time (section 6.2).
func TestScenario64_StorageFailsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		gate := hermestest.NewGate()
		r.script("A", hermestest.Hold(gate), hermestest.Complete("@B @C"))
		r.answers("A", "done")
		run := r.send(chat, "go")
		r.reached(gate)
		r.outside(`CREATE TRIGGER broken BEFORE INSERT ON task BEGIN SELECT RAISE(ABORT, 'broken'); END`)
		gate.Open()
		time.Sleep(3 * time.Second)
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s with a broken store", got)
		}
		r.outside(`DROP TRIGGER broken`)
		r.ends(run, workspace.RunComplete)
		if got := sorted(r.prompts()); got != "AABC" {
			t.Errorf("prompted %s", got)
		}
		if got := r.says(chat); len(got) != 5 {
			t.Errorf("the chat has %q", got)
		}
	})
}

// outside runs a statement on the database as another process would.
func (r *rig) outside(statement string) {
	r.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, store.FileName))
	r.must(err)
	_, err = db.ExecContext(r.Context(), statement)
	r.must(err)
	r.must(db.Close())
}

// Ensures that a rejected submission fails its run and frees the chat (section
// 6.10).
func TestScenario65_Rejected(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Answer(4000, "no such thing")))
		r.ends(r.send(chat, "hi"), workspace.RunFailed)
		if got := r.says(chat); len(got) != 2 || !strings.HasSuffix(got[1], "(failed)") {
			t.Errorf("the chat has %q", got)
		}
		if m := r.detail(chat).Messages[1]; !strings.HasPrefix(m.Error, "上游拒绝了请求") {
			t.Errorf("the row says %q", m.Error)
		}
		r.ends(r.send(chat, "again"), workspace.RunComplete)
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that a node that is gone is seen in the chat, which is usable again once
// it is back (section 7.3).
func TestScenario69_NodeGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.gone.Store(true)
		r.ends(r.send(chat, "hi"), workspace.RunFailed)
		r.wantSays(chat, "user: hi", "system: 节点已不存在 (failed)")
		r.gone.Store(false)
		r.fake.SetDown(true)
		r.ends(r.send(chat, "hi"), workspace.RunFailed)
		r.fake.SetDown(false)
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
	})
}

// Ensures that a completion without a session, or of another one, ends nothing
// (section 6.10).
func TestScenario70_ForeignFrames(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		forged := func(session string) hermestest.Step {
			return hermestest.Raw(`{"jsonrpc":"2.0","method":"event","params":{"type":"message.complete",` + session + `"payload":{"text":"forged","status":"complete"}}}`)
		}
		r.script("A", forged(``), forged(`"session_id":"00000000",`), hermestest.Wait(time.Second), hermestest.Complete("real"))
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		r.wantSays(chat, "user: hi", "A: real")
	})
}
