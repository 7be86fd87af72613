package store

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensures section 3.2: the list is ordered by pin, last message and id, has the
// cursor of its own moment, and its order is not moved by edits (scenario 28).
func TestConversations_Order(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := mustOpen(t, withClock(c))
	r := rand.New(rand.NewPCG(1, 1))
	var chats []workspace.ConversationID
	for i := range 12 {
		a := mustAgent(t, s, ann, string(rune('a'+i)))
		chats = append(chats, mustDirect(t, s, ann, a.ID).ID)
	}
	for n := range 40 {
		to := chats[r.IntN(len(chats))]
		switch r.IntN(3) {
		case 0:
			c.advance(time.Duration(r.IntN(2)) * time.Millisecond)
			mustSend(t, s, ann, to, text(n, "hello"))
		case 1:
			pin := workspace.ConversationPatch{Pinned: workspace.Some(r.IntN(3) == 0)}
			if _, _, err := s.EditConversation(t.Context(), ann, to, pin); err != nil {
				t.Fatal(err)
			}
		case 2:
			if _, err := s.MarkRead(t.Context(), ann, to, workspace.ReadMarker{Seq: workspace.Some(r.Int64N(3))}); err != nil {
				t.Fatal(err)
			}
		}
		list := mustList(t, s, ann)
		byRule := func(a, b workspace.ConversationSummary) int {
			return workspace.CompareConversations(a.Conversation, b.Conversation)
		}
		if !slices.IsSortedFunc(list.Conversations, byRule) {
			t.Fatalf("step %d: the order is not that of the rule", n)
		}
		if events := mustEvents(t, s, ann, 0); list.Cursor != events[len(events)-1].Seq {
			t.Fatalf("step %d: the cursor is %d", n, list.Cursor)
		}
	}
}

// Ensures section 3.2: the statements of the list and of the history are read
// from indices in their order, so that their cost does not follow the number of
// messages, hidden ones included.
func TestQueries_UseTheirIndices(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	plans := map[string]string{
		"conversation_list": shownChat + `ORDER BY pinned DESC, coalesce(last_message_at, created_at) DESC, id`,
		"message_visible":   `SELECT id FROM message WHERE owner = ? AND conversation_id = 'c' AND hidden = 0 AND seq < 9 ORDER BY seq DESC LIMIT 100`,
		"message_unread": `SELECT count(*) FROM message WHERE owner = ? AND conversation_id = 'c' AND seq > 0
			AND hidden = 0 AND role <> 'user' AND status IN ('complete', 'failed', 'interrupted')`,
		"run_live": `SELECT id FROM run WHERE owner = ? AND conversation_id = 'c'
			AND status NOT IN ('complete', 'failed', 'interrupted') ORDER BY message_seq LIMIT 1`,
		"task_occupied": `SELECT id FROM task WHERE owner = ? AND conversation_id = 'c' AND status IN ('running', 'waiting', 'uncertain')`,
		"event_entity": `DELETE FROM event WHERE owner = ? AND type = 'message.changed' AND entity_id = 'e' AND created_at < 9
			AND type IN ('message.changed', 'conversation.changed')`,
		"file_list": `SELECT id FROM file WHERE file.owner = ? ORDER BY file.created_at DESC, file.id LIMIT 50`,
	}
	for index, query := range plans {
		var steps []string
		if err := s.read(t.Context(), "test", func(v view) error {
			return each(v, func(r row) error {
				var a, b, c int
				var step string
				err := r.Scan(&a, &b, &c, &step)
				steps = append(steps, step)
				return err
			}, "EXPLAIN QUERY PLAN "+query, ann)
		}); err != nil {
			t.Fatal(err)
		}
		uses := func(step string) bool { return slices.Contains(strings.Fields(step), index) }
		if !slices.ContainsFunc(steps, uses) || slices.Contains(steps, "USE TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%s is not used as it should be: %q", index, steps)
		}
	}
}

// Ensures sections 3.2 and 5.1: members must be the owner's and not archived
// when they are added (scenario 14); removing one cleans up after it, keeps the
// messages and does not move the chat (scenarios 13 and 15).
func TestEditConversation_Members(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a, b, gone := mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B"), mustAgent(t, s, ann, "Gone")
	foreign := mustAgent(t, s, bob, "Foreign")
	g := mustGroup(t, s, ann, workspace.ModeFree, a, b, gone)
	if _, _, err := s.EditAgent(t.Context(), ann, gone.ID, workspace.AgentPatch{Archived: workspace.Some(true)}); err != nil {
		t.Fatal(err)
	}
	edit := func(p workspace.ConversationPatch) (workspace.ConversationSummary, error) {
		edited, _, err := s.EditConversation(t.Context(), ann, g.ID, p)
		return edited, err
	}
	members := func(ids ...workspace.AgentID) workspace.ConversationPatch {
		return workspace.ConversationPatch{MemberIDs: workspace.Some(ids)}
	}
	if _, err := edit(members(a.ID, b.ID, gone.ID)); err != nil {
		t.Errorf("an archived member may not stay: %v", err)
	}
	if _, err := edit(members(a.ID, b.ID)); err != nil {
		t.Fatal(err)
	}
	_, err := edit(members(a.ID, b.ID, gone.ID))
	wantCode(t, err, workspace.CodeAgentArchived)
	_, err = edit(members(a.ID, b.ID, foreign.ID))
	wantCode(t, err, workspace.CodeRowNotFound)
	_, err = edit(members(b.ID))
	wantCode(t, err, workspace.CodeAdminRequired)

	roles := workspace.ConversationPatch{
		AutoReplyIDs: workspace.Some([]workspace.AgentID{b.ID}),
		MemberRoles:  workspace.Some(map[workspace.AgentID]workspace.Role{b.ID: {Name: "Writer"}}),
	}
	if _, err := edit(roles); err != nil {
		t.Fatal(err)
	}
	binding := workspace.Binding{ConversationID: g.ID, AgentID: b.ID, StoredID: "s1", RuntimeID: "r1", Aliases: []string{"s0"}}
	if err := s.SaveBinding(t.Context(), ann, binding); err != nil {
		t.Fatal(err)
	}
	mustSend(t, s, ann, g.ID, text(1, "@B please"))
	before := mustDetail(t, s, ann, g.ID)
	edited, err := edit(members(a.ID))
	if err != nil {
		t.Fatal(err)
	}
	after := mustDetail(t, s, ann, g.ID)
	if len(edited.AutoReplyIDs) != 0 || len(edited.MemberRoles) != 0 || !cmp.Equal(after.Conversation, edited) {
		t.Errorf("the group is %+v", edited)
	}
	if !cmp.Equal(before.Messages, after.Messages) || *before.Conversation.LastMessageAt != *after.Conversation.LastMessageAt {
		t.Error("the history was touched")
	}
	if after.Run != nil { // its only task was B's, and queued (section 5.6)
		t.Errorf("the run of a removed member is %+v", after.Run)
	}
	kept, err := s.Binding(t.Context(), ann, g.ID, b.ID)
	if err != nil || !cmp.Equal(kept, binding) {
		t.Errorf("the binding is %+v, %v", kept, err)
	}
}

// Ensures scenarios 16 and 80: of a direct chat only the pin can be edited, and
// an archived group refuses messages, its runs stopped, until it is restored.
func TestEditConversation_DirectAndArchived(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a, b := mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B")
	direct := mustDirect(t, s, ann, a.ID)
	_, _, err := s.EditConversation(t.Context(), ann, direct.ID, workspace.ConversationPatch{Name: workspace.Some("A")})
	wantCode(t, err, workspace.CodeEditAgentInstead)
	g := mustGroup(t, s, ann, workspace.ModeHost, a, b)
	mustSend(t, s, ann, g.ID, text(1, "one"))
	mustSend(t, s, ann, g.ID, text(2, "two"))
	archived, _, err := s.EditConversation(t.Context(), ann, g.ID, workspace.ConversationPatch{Archived: workspace.Some(true)})
	if err != nil || archived.ActiveRunID != "" || archived.QueuedMessageCount != 0 {
		t.Errorf("the archived group is %+v, %v", archived, err)
	}
	_, err = s.Send(t.Context(), ann, g.ID, text(3, "three"))
	wantCode(t, err, workspace.CodeArchived)
	if _, _, err := s.EditConversation(t.Context(), ann, g.ID, workspace.ConversationPatch{Archived: workspace.Some(false)}); err != nil {
		t.Fatal(err)
	}
	mustSend(t, s, ann, g.ID, text(3, "three"))
}

// Ensures section 3.2: the detail has the newest 100 visible messages ascending,
// the ids of hidden ones, the active run, open questions in their order and the
// usage, and section 3.3: pages go on without gap (scenario 27).
func TestConversation_DetailAndPages(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := mustOpen(t, withClock(c))
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
	first := mustSend(t, s, ann, direct.ID, text(0, "message 0"))
	say(t, s, direct.ID, 229)
	hidden := hide(t, s, ann, direct.ID, 17)
	if err := s.SetUsage(t.Context(), ann, direct.ID, []byte(`{"usedTokens":5}`)); err != nil {
		t.Fatal(err)
	}
	ask(t, s, ann, first, 2)
	ask(t, s, ann, first, 1)
	d := mustDetail(t, s, ann, direct.ID)
	if len(d.Messages) != 100 || d.Messages[0].Seq != 131 || d.Messages[99].Seq != 230 {
		t.Fatalf("the detail has %d messages from %d", len(d.Messages), d.Messages[0].Seq)
	}
	if !cmp.Equal(d.HiddenMessageIDs, []workspace.MessageID{hidden}) || d.Run == nil || d.Run.ID != first.ID || string(d.Context) != `{"usedTokens":5}` {
		t.Errorf("the detail has hidden %v, run %+v, context %s", d.HiddenMessageIDs, d.Run, d.Context)
	}
	if len(d.Interactions) != 2 || d.Interactions[0].ID != id[workspace.InteractionID](2) {
		t.Errorf("the questions are %+v", d.Interactions)
	}
	var seqs []int64
	for before := int64(0); ; {
		page, err := s.Messages(t.Context(), ann, direct.ID, before, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range slices.Backward(page) {
			seqs = append(seqs, m.Seq)
		}
		if len(page) < 100 {
			break
		}
		before = page[0].Seq
	}
	if len(seqs) != 229 || slices.Contains(seqs, 17) || !slices.IsSortedFunc(seqs, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("the pages have %d messages: %v", len(seqs), seqs)
	}
	page, err := s.Messages(t.Context(), ann, direct.ID, 0, 10_000)
	if err != nil || len(page) != workspace.MaxHistoryPage {
		t.Errorf("a page has %d messages, %v", len(page), err)
	}
}

// hide hides the message with the sequence and returns its id.
func hide(t testing.TB, s *Store, owner workspace.OwnerID, c workspace.ConversationID, seq int64) (hidden workspace.MessageID) {
	t.Helper()
	mustExec(t, s, owner, `UPDATE message SET hidden = 1 WHERE owner = ? AND conversation_id = ? AND seq = ?`, owner, c, seq)
	if err := s.read(t.Context(), "test", func(v view) (err error) {
		hidden, err = one(v, scalar[workspace.MessageID], `SELECT id FROM message WHERE owner = ? AND conversation_id = ? AND seq = ?`, owner, c, seq)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return hidden
}

// ask stores an open question of the run's first task, as a runtime would.
func ask(t testing.TB, s *Store, owner workspace.OwnerID, run workspace.Run, n int) workspace.InteractionID {
	t.Helper()
	i := id[workspace.InteractionID](n)
	mustExec(t, s, owner, `INSERT INTO interaction (owner, id, conversation_id, run_id, task_id, agent_id, kind, resolved, response_state,
		upstream_request_id, created_at, message, choices, answer)
		SELECT owner, ?, conversation_id, run_id, id, agent_id, 'approval', 0, '', ?, ?, 'may I?', '["once","deny"]', ''
		FROM task WHERE owner = ? AND run_id = ?`, i, "request-"+string(i), 10-n, owner, run.ID)
	return i
}

// Ensures section 3.4: the read marker never goes back, is clamped, tells
// nothing when nothing changed, and counts what is unread (section 11, item 7).
func TestMarkRead(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
	mustSend(t, s, ann, direct.ID, text(1, "hello"))
	say(t, s, direct.ID, 8)
	mark := func(seq int64) workspace.ConversationSummary {
		t.Helper()
		c, err := s.MarkRead(t.Context(), ann, direct.ID, workspace.ReadMarker{Seq: workspace.Some(seq)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := mustDetail(t, s, ann, direct.ID).Conversation; c.ReadSeq != 1 || c.UnreadCount != 8 {
		t.Errorf("before reading: read %d, unread %d", c.ReadSeq, c.UnreadCount)
	}
	if c := mark(5); c.ReadSeq != 5 || c.UnreadCount != 4 {
		t.Errorf("after reading up to 5: %d, unread %d", c.ReadSeq, c.UnreadCount)
	}
	cursor := mustList(t, s, ann).Cursor
	if c := mark(3); c.ReadSeq != 5 || mustList(t, s, ann).Cursor != cursor {
		t.Errorf("the marker went back to %d", c.ReadSeq)
	}
	if c := mark(1000); c.ReadSeq != 9 || c.UnreadCount != 0 {
		t.Errorf("the marker is %d, unread %d", c.ReadSeq, c.UnreadCount)
	}
	_, err := s.MarkRead(t.Context(), ann, direct.ID, workspace.ReadMarker{Seq: workspace.Some(int64(-1))})
	wantCode(t, err, workspace.CodeInvalidRequest)
}

// say appends n visible final messages of the chat's administrator.
func say(t testing.TB, s *Store, to workspace.ConversationID, n int) {
	t.Helper()
	if err := s.write(context.Background(), ann, "test", func(t *tx) error {
		c, err := t.chat(to)
		if err != nil {
			return err
		}
		for range n {
			var m workspace.Message
			c.Conversation, m = c.Append(workspace.Message{
				ID: workspace.MessageID(t.newID()), ConversationID: to, Role: workspace.RoleAssistant, AgentID: c.AdministratorID,
				Content: "an answer", Status: workspace.MessageComplete, Attachments: []workspace.File{}, Tools: []workspace.Tool{}, CreatedAt: t.now,
			})
			if err := t.addMessage(&c, m); err != nil {
				return err
			}
		}
		return t.saveActivity(&c)
	}); err != nil {
		t.Fatal(err)
	}
}
