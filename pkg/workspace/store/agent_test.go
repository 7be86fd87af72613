package store

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensures section 3.1: creating an agent makes exactly one direct chat with it,
// and both events, in one transaction.
func TestCreateAgent_WithItsOneDirectChat(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a := mustAgent(t, s, ann, "竹儿")
	list := mustList(t, s, ann)
	if len(list.Conversations) != 1 {
		t.Fatalf("there are %d conversations", len(list.Conversations))
	}
	c := list.Conversations[0]
	if c.Kind != workspace.Direct || c.AdministratorID != a.ID || !cmp.Equal(c.MemberIDs, []workspace.AgentID{a.ID}) || c.Name != a.Name {
		t.Errorf("the direct chat is %+v", c)
	}
	if a.Avatar == "" || c.Avatar != a.Avatar { // scenario 10
		t.Errorf("the portraits are %q and %q", a.Avatar, c.Avatar)
	}
	events := mustEvents(t, s, ann, 0)
	if types(events) != "agent conversation" || list.Cursor != events[1].Seq {
		t.Errorf("the events are %s, the cursor is %d", types(events), list.Cursor)
	}
	// A second chat with the same agent is impossible, whoever tries.
	err := s.write(t.Context(), ann, "test", func(t *tx) error {
		second := c
		second.ID = id[workspace.ConversationID](9)
		return t.insertChat(second)
	})
	if !isTaken(err) {
		t.Errorf("a second direct chat gives %v", err)
	}
}

// Ensures sections 2.1 and 5.2: names are unique among an owner's agents by case
// and Unicode form, archived ones included, also when many are created at once;
// another owner may have the same (scenario 7).
func TestAgents_NamesAreUnique(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	first := mustAgent(t, s, ann, "Ann")
	other := mustAgent(t, s, ann, "Other")
	archived := workspace.AgentPatch{Archived: workspace.Some(true)}
	if _, _, err := s.EditAgent(t.Context(), ann, first.ID, archived); err != nil {
		t.Fatal(err)
	}
	before := mustList(t, s, ann)
	for _, name := range []string{"ann", " ANN ", "aNN"} {
		_, err := s.CreateAgent(t.Context(), ann, newAgent(name), sources)
		wantCode(t, err, workspace.CodeDuplicateName)
		_, _, err = s.EditAgent(t.Context(), ann, other.ID, workspace.AgentPatch{Name: workspace.Some(name)})
		wantCode(t, err, workspace.CodeDuplicateName)
	}
	if after := mustList(t, s, ann); !cmp.Equal(before, after) {
		t.Errorf("a refused name changed something:\n%s", cmp.Diff(before, after))
	}
	mustAgent(t, s, bob, "ann")

	var created sync.Map
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			a, err := s.CreateAgent(context.Background(), ann, newAgent("é"), sources)
			if err == nil {
				created.Store(a.ID, true)
			} else {
				wantCode(t, err, workspace.CodeDuplicateName)
			}
		})
	}
	group.Wait()
	n := 0
	created.Range(func(any, any) bool { n++; return true })
	_, err := s.CreateAgent(t.Context(), ann, newAgent("É"), sources)
	if n != 1 || workspace.CodeOf(err) != workspace.CodeDuplicateName {
		t.Errorf("%d agents have the name, and the other case gives %v", n, err)
	}
}

// Ensures scenario 8: an agent on a source that is not live leaves no rows.
func TestCreateAgent_NeedsItsSource(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	in := newAgent("Ann")
	in.Profile = workspace.Some("gone")
	_, err := s.CreateAgent(t.Context(), ann, in, sources)
	wantCode(t, err, workspace.CodeSourceUnavailable)
	if list := mustList(t, s, ann); len(list.Conversations) != 0 || list.Cursor != 0 {
		t.Errorf("there is %+v", list)
	}
}

// Ensures section 3.1: an edit counts as a revision, leaves what is absent, is
// mirrored onto the direct chat, and appends both events; an empty one does
// nothing (section 11, item 32).
func TestEditAgent_MirrorsOntoTheDirectChat(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := mustOpen(t, withClock(c))
	in := newAgent("Ann")
	in.Avatar = workspace.Some("builtin:team-animal:fox")
	a, err := s.CreateAgent(t.Context(), ann, in, sources)
	if err != nil {
		t.Fatal(err)
	}
	mark := mustList(t, s, ann).Cursor
	if _, _, err := s.EditAgent(t.Context(), ann, a.ID, workspace.AgentPatch{}); err != nil {
		t.Fatal(err)
	}
	if events := mustEvents(t, s, ann, mark); len(events) != 0 {
		t.Errorf("an empty edit appended %s", types(events))
	}
	c.advance(time.Second)
	edited, _, err := s.EditAgent(t.Context(), ann, a.ID, workspace.AgentPatch{Name: workspace.Some("Anna"), Instructions: workspace.Some("be brief")})
	if err != nil {
		t.Fatal(err)
	}
	want := a
	want.Name, want.Instructions, want.Revision, want.UpdatedAt = "Anna", "be brief", 2, c.millis()
	if diff := cmp.Diff(want, edited); diff != "" {
		t.Errorf("the agent (-want +got):\n%s", diff)
	}
	stored, err := s.Agents(t.Context(), ann)
	if err != nil || !cmp.Equal(stored, []workspace.Agent{want}) {
		t.Errorf("stored is %+v, %v", stored, err)
	}
	direct := mustDirect(t, s, ann, a.ID)
	if direct.Name != "Anna" || direct.Avatar != "builtin:team-animal:fox" || direct.Archived {
		t.Errorf("the direct chat is %+v", direct)
	}
	if events := mustEvents(t, s, ann, mark); types(events) != "agent conversation" {
		t.Errorf("the edit appended %s", types(events))
	}
}

// Ensures sections 3.1 and 5.5: archiving an agent stops its direct chat, which
// refuses messages until it is restored.
func TestEditAgent_ArchivingStopsItsChat(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a := mustAgent(t, s, ann, "Ann")
	direct := mustDirect(t, s, ann, a.ID)
	mustSend(t, s, ann, direct.ID, text(1, "hello"))
	archive := func(archived bool) {
		t.Helper()
		if _, _, err := s.EditAgent(t.Context(), ann, a.ID, workspace.AgentPatch{Archived: workspace.Some(archived)}); err != nil {
			t.Fatal(err)
		}
	}
	archive(true)
	d := mustDetail(t, s, ann, direct.ID)
	if !d.Conversation.Archived || d.Run != nil || d.Conversation.QueuedMessageCount != 0 {
		t.Errorf("the archived chat is %+v", d.Conversation)
	}
	if n := count(t, s, `SELECT count(*) FROM run WHERE status = 'interrupted'`); n != 1 {
		t.Errorf("%d runs are interrupted", n)
	}
	_, err := s.Send(t.Context(), ann, direct.ID, text(2, "still there?"))
	wantCode(t, err, workspace.CodeArchived)
	archive(false)
	mustSend(t, s, ann, direct.ID, text(2, "still there?"))
}

// bigPortrait returns a valid portrait of about the given size in bytes.
func bigPortrait(fill string, size int) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, size*3/4/len(fill))))
}

// Ensures that a large portrait arrives whole wherever it is shown, is stored
// once, is not written again with each message, and goes when nothing shows it.
func TestPortraits_AreStoredOnce(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := mustOpen(t, withClock(clock))
	portrait := bigPortrait("a", 200_000)
	in := newAgent("Ann")
	in.Avatar = workspace.Some(portrait)
	a, err := s.CreateAgent(t.Context(), ann, in, sources)
	if err != nil {
		t.Fatal(err)
	}
	direct := mustDirect(t, s, ann, a.ID)
	for n := range 20 {
		mustSend(t, s, ann, direct.ID, text(n, "hello"))
	}
	agents, err := s.Agents(t.Context(), ann)
	if err != nil || agents[0].Avatar != portrait || a.Avatar != portrait || direct.Avatar != portrait {
		t.Errorf("a portrait is not shown whole: %v", err)
	}
	seen := 0
	for _, e := range mustEvents(t, s, ann, 0) {
		seen += strings.Count(string(e.Data), `"avatar":"`+portrait+`"`)
	}
	if seen != 22 {
		t.Errorf("%d events show the portrait, want 22", seen)
	}
	size := count(t, s, `SELECT (SELECT sum(length(data)) FROM event) + (SELECT sum(length(value)) FROM portrait)`)
	if size > 2*len(portrait) {
		t.Errorf("%d bytes are stored for a portrait of %d", size, len(portrait))
	}
	edited, _, err := s.EditAgent(t.Context(), ann, a.ID, workspace.AgentPatch{Name: workspace.Some("Anna")})
	if err != nil || edited.Avatar != portrait {
		t.Errorf("an edit of the name loses the portrait: %v", err)
	}
	if _, _, err := s.EditAgent(t.Context(), ann, a.ID, workspace.AgentPatch{Avatar: workspace.Some("")}); err != nil {
		t.Fatal(err)
	}
	// Events of agents are never pruned; the last that shows it keeps it.
	mustExec(t, s, ann, `DELETE FROM event WHERE type = 'agent.changed'`)
	clock.advance(time.Hour)
	if _, err := s.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, `SELECT count(*) FROM portrait`); n != 0 {
		t.Errorf("%d portraits are kept that nothing shows", n)
	}
}
