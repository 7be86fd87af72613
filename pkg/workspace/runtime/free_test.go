package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

// Ensures that in free mode only those answer who were mentioned (section 6.5).
func TestScenario48_Mentioned(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "ABC", "", 3)
		r.answers("B", "b")
		r.ends(r.send(chat, "@B hello"), workspace.RunComplete)
		r.wantSays(chat, "user: @B hello", "B: b")
		if got := r.prompts(); got != "B" {
			t.Errorf("prompted %s", got)
		}
	})
}

// Ensures that without a mention the administrator and the automatic members
// answer, and that one who is silent leaves nothing to see (sections 2.6, 6.5).
func TestScenario49_SilentMember(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "ABC", "BC", 1)
		r.answers("A", "a")
		r.answers("B", "b")
		r.script("C", hermestest.Delta(workspace.SilenceToken[:7]), hermestest.Delta(workspace.SilenceToken[7:]), hermestest.Complete(""))
		r.ends(r.send(chat, "hello"), workspace.RunComplete)
		if got := strings.Join(r.says(chat), "|"); strings.Contains(got, "C:") || !strings.Contains(got, "A: a") || !strings.Contains(got, "B: b") {
			t.Errorf("the chat has %s", got)
		}
		if hidden := r.detail(chat).HiddenMessageIDs; len(hidden) != 1 {
			t.Errorf("hidden are %v", hidden)
		}
		for _, e := range r.events() {
			if strings.Contains(string(e.Data), "[[relay") {
				t.Errorf("an event has the token: %s", e.Data)
			}
		}
	})
}

// Ensures that a reply without a mention goes on to the automatic members but its
// speaker, until the limit, which is told once (section 6.7).
func TestScenario50_Relay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "ABC", "BC", 3)
		for _, letter := range []string{"A", "B", "C"} {
			r.answers(letter, "1 of "+letter, "2 of "+letter, "3 of "+letter)
		}
		r.ends(r.send(chat, "@A begin"), workspace.RunComplete)
		got := r.prompts()
		if len(got) != 5 || strings.Count(got, "B") != 2 || strings.Count(got, "C") != 2 {
			t.Errorf("prompted %s", got)
		}
		if notices := strings.Count(strings.Join(r.says(chat), "|"), workspace.LimitNotice); notices != 1 {
			t.Errorf("%d notices", notices)
		}
	})
}

// Ensures that a discussion without a limit goes on past 100 rounds, and that a
// stop ends it (section 6.7).
func TestScenario51_Unlimited(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "AB", "AB", workspace.UnlimitedRounds)
		for range 100 { // turns that take no time would leave none for the stop
			r.script("A", hermestest.Wait(time.Second), hermestest.Complete("more"))
			r.script("B", hermestest.Wait(time.Second), hermestest.Complete("more"))
		}
		run := r.send(chat, "@A begin")
		r.until("more than 100 rounds", func() bool { return r.run(run).Round > 100 })
		r.stopRun(run.ID)
		r.ends(run, workspace.RunInterrupted)
		n := len(r.prompts())
		r.send(r.direct("C"), "meanwhile")
		r.until("somebody else has answered", func() bool { return len(r.prompts()) > n })
		if got := r.prompts(); len(got) != n+1 {
			t.Errorf("it went on: %s", got[n:])
		}
	})
}

// Ensures that a member that was asked by name may say the very token (section
// 6.8, step 2).
func TestScenario52_TokenOnRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "AB", "", 3)
		r.answers("B", workspace.SilenceToken)
		r.ends(r.send(chat, "@B print it"), workspace.RunComplete)
		r.wantSays(chat, "user: @B print it", "B: "+workspace.SilenceToken)
	})
}
