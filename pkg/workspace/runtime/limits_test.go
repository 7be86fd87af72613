package runtime_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

// Ensures that a group executes at most three tasks and the server four, that the
// next starts when one ends, and that all finish (section 6.4).
func TestScenario53_Slots(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "ABCD", "", 1)
		gates := map[string]*hermestest.Gate{}
		for _, letter := range letters {
			gates[letter] = hermestest.NewGate()
			r.script(letter, hermestest.Hold(gates[letter]), hermestest.Complete(letter))
		}
		group := r.send(chat, "@A @B @C @D")
		direct := r.send(r.direct("E"), "hello")
		r.reached(gates["A"], gates["B"], gates["C"], gates["E"])
		if got := sorted(r.prompts()); got != "ABCE" {
			t.Errorf("prompted %s", got)
		}
		gates["B"].Open()
		r.reached(gates["D"])
		if got := sorted(r.prompts()); got != "ABCDE" {
			t.Errorf("prompted %s", got)
		}
		for _, letter := range []string{"A", "C", "D", "E"} {
			gates[letter].Open()
		}
		r.ends(group, workspace.RunComplete)
		r.ends(direct, workspace.RunComplete)
	})
}

func sorted(text string) string {
	letters := strings.Split(text, "")
	slices.Sort(letters)
	return strings.Join(letters, "")
}

// Ensures that two messages for the same member are executed one after the other,
// also in free mode (section 6.4).
func TestScenario54_MemberSerial(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "AB", "", 1)
		gate := hermestest.NewGate()
		r.script("B", hermestest.Hold(gate), hermestest.Complete("first"))
		r.answers("B", "second")
		first := r.send(chat, "@B one")
		r.reached(gate)
		second := r.send(chat, "@B two")
		third := r.send(chat, "@A three")
		r.ends(third, workspace.RunComplete) // those of others overlap
		if got := r.prompts(); got != "BA" {
			t.Errorf("prompted %s", got)
		}
		gate.Open()
		r.ends(first, workspace.RunComplete)
		r.ends(second, workspace.RunComplete)
		if got := r.prompts(); got != "BAB" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that an agent has another session in each chat, and that neither knows
// the other's text (section 7.5).
func TestScenario55_SessionsApart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		direct, group := r.direct("A"), r.group(workspace.ModeFree, "AB", "", 1)
		r.ends(r.send(direct, "PRIVATE"), workspace.RunComplete)
		r.ends(r.send(group, "@A PUBLIC"), workspace.RunComplete)
		prompts := r.fake.Prompts()
		if prompts[0].StoredID == prompts[1].StoredID {
			t.Error("both chats have one session")
		}
		if strings.Contains(prompts[1].Text, "PRIVATE") {
			t.Errorf("the group is told of the direct chat:\n%s", prompts[1].Text)
		}
		for _, p := range prompts {
			hidden, err := r.store.IsHiddenSession(r.Context(), p.StoredID)
			if err != nil || !hidden {
				t.Errorf("session %s is not hidden: %v", p.StoredID, err)
			}
		}
	})
}

// Ensures that an owner whose account is disabled or gone is held, and goes on
// once it is enabled (section 6.4).
func TestHeldOwner(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.directOf(bob, r.agentOf(bob, "B"))
		r.sendAs(bob, chat, "hello")
		r.ends(r.send(r.direct("A"), "hello"), workspace.RunComplete)
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
		r.enable(bob)
		r.until("Bob is answered", func() bool { return r.prompts() == "AB" })
	})
}
