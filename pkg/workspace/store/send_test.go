package store

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensures sections 3.3 and 6.1: a send stores the message, its run, its tasks,
// the command and the events in one transaction, and marks what was read.
func TestSend_StoresAllOfIt(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := mustOpen(t, withClock(c))
	a, b := mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B")
	g := mustGroup(t, s, ann, workspace.ModeFree, a, b)
	mark := mustList(t, s, ann).Cursor
	in := text(1, "  @B and @A, please\n")
	in.MentionIDs = workspace.Some([]workspace.AgentID{a.ID})
	run := mustSend(t, s, ann, g.ID, in)
	d := mustDetail(t, s, ann, g.ID)
	wantRun := workspace.Run{
		ID: run.ID, ConversationID: g.ID, MessageID: d.Messages[0].ID, MentionIDs: []workspace.AgentID{a.ID, b.ID},
		ActiveAgentID: a.ID, Status: workspace.RunQueued, CreatedAt: c.millis(), UpdatedAt: c.millis(),
	}
	if diff := cmp.Diff(wantRun, run); diff != "" || !cmp.Equal(d.Run, &run) {
		t.Errorf("the run (-want +got):\n%s\nstored: %+v", diff, d.Run)
	}
	m := d.Messages[0]
	if m.Content != "@B and @A, please" || m.Seq != 1 || m.RunID != run.ID || m.Role != workspace.RoleUser || m.Status != workspace.MessageComplete {
		t.Errorf("the message is %+v", m)
	}
	if v := d.Conversation; v.LastSeq != 1 || v.ReadSeq != 1 || v.UnreadCount != 0 || *v.LastMessageAt != c.millis() || v.Preview == "" ||
		v.ActiveRunID != run.ID || v.ActiveRunStatus != workspace.RunQueued || v.ActiveAgentID != a.ID || v.QueuedMessageCount != 1 {
		t.Errorf("the conversation is %+v", v)
	}
	if n := count(t, s, `SELECT count(*) FROM task WHERE run_id = ? AND status = 'queued' AND reply_mode = 'mentioned'`, run.ID); n != 2 {
		t.Errorf("%d tasks are queued", n)
	}
	events := mustEvents(t, s, ann, mark)
	if types(events) != "message run conversation" {
		t.Errorf("the events are %s", types(events))
	}
	if strings.Contains(string(events[2].Data), "unreadCount") { // section 4.3
		t.Errorf("the event of a conversation counts unread messages: %s", events[2].Data)
	}
}

// Ensures section 3.3: the same request gives the same run in its present state,
// also many times at once and after the chat was archived; other content under
// its id is a conflict; a refused request leaves its id unused (19, 20, 21).
func TestSend_Idempotent(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a, b := mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B")
	g := mustGroup(t, s, ann, workspace.ModeHost, a, b)
	other := mustDirect(t, s, ann, a.ID)
	blank := text(1, " \n")
	_, err := s.Send(t.Context(), ann, g.ID, blank)
	wantCode(t, err, workspace.CodeInvalidRequest)
	bad := text(1, "hello")
	bad.MentionIDs = workspace.Some([]workspace.AgentID{id[workspace.AgentID](99)})
	_, err = s.Send(t.Context(), ann, g.ID, bad)
	wantCode(t, err, workspace.CodeInvalidMentions)

	runs := make([]workspace.Run, 8)
	var group sync.WaitGroup
	for i := range runs {
		group.Go(func() {
			var err error
			in := text(1, "hello")
			if i%2 == 0 { // ids are compared in lower case
				in.RequestID = workspace.Some(workspace.RequestID(strings.ToUpper(string(id[workspace.RequestID](1)))))
			}
			if runs[i], err = s.Send(context.Background(), ann, g.ID, in); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, run := range runs {
		if run.ID != runs[0].ID {
			t.Errorf("one request gave two runs")
		}
	}
	if d := mustDetail(t, s, ann, g.ID); len(d.Messages) != 1 || d.Conversation.QueuedMessageCount != 1 {
		t.Errorf("there are %d messages and %d queued", len(d.Messages), d.Conversation.QueuedMessageCount)
	}
	mention, file := text(1, "hello"), text(1, "hello")
	mention.MentionIDs = workspace.Some([]workspace.AgentID{a.ID})
	file.FileIDs = workspace.Some([]workspace.FileID{id[workspace.FileID](5)})
	for _, in := range []workspace.SendMessage{text(1, "hello!"), mention, file} {
		_, err := s.Send(t.Context(), ann, g.ID, in)
		wantCode(t, err, workspace.CodeIdempotency)
	}
	_, err = s.Send(t.Context(), ann, other.ID, text(1, "hello"))
	wantCode(t, err, workspace.CodeIdempotency)
	if _, _, err := s.EditConversation(t.Context(), ann, g.ID, workspace.ConversationPatch{Archived: workspace.Some(true)}); err != nil {
		t.Fatal(err)
	}
	again := mustSend(t, s, ann, g.ID, text(1, "hello"))
	if again.ID != runs[0].ID || again.Status != workspace.RunInterrupted {
		t.Errorf("the repeated request gives %+v", again)
	}
}

// Ensures section 3.3 and scenario 29: files must be the owner's, are linked to
// message and chat, and are shown by the first of several messages.
func TestSend_LinksFiles(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
	mine, theirs := mustFiles(t, s, ann, "a.txt", "b.png"), mustFiles(t, s, bob, "c.txt")
	send := func(n int, content string, ids ...workspace.FileID) (workspace.Run, error) {
		in := text(n, content)
		in.FileIDs = workspace.Some(ids)
		return s.Send(t.Context(), ann, direct.ID, in)
	}
	_, err := send(1, "look", theirs[0].ID)
	wantCode(t, err, workspace.CodeUploadNotFound)
	mark := mustList(t, s, ann).Cursor
	if _, err := send(1, "", mine[1].ID, mine[0].ID); err != nil { // scenario 23
		t.Fatal(err)
	}
	if _, err := send(2, "again", mine[0].ID); err != nil {
		t.Fatal(err)
	}
	d := mustDetail(t, s, ann, direct.ID)
	first := d.Messages[0]
	if len(first.Attachments) != 2 || first.Attachments[0].ID != mine[1].ID || first.Attachments[0].MessageID != first.ID || first.Attachments[0].ConversationID != direct.ID {
		t.Errorf("the message carries %+v", first.Attachments)
	}
	if again := d.Messages[1].Attachments; len(again) != 1 || again[0].MessageID != first.ID {
		t.Errorf("the second message carries %+v", again)
	}
	stored, err := s.File(t.Context(), ann, string(mine[0].ID))
	if err != nil || stored.MessageID != first.ID {
		t.Errorf("the file is %+v, %v", stored, err)
	}
	files, err := s.MessageFiles(t.Context(), ann, []workspace.MessageID{first.ID, d.Messages[1].ID, "12"})
	if err != nil || len(files) != 2 || len(files[first.ID]) != 2 || files[first.ID][0].ID != mine[1].ID {
		t.Errorf("the files of the messages are %+v, %v", files, err)
	}
	want := "message files files run conversation message run conversation"
	if got := types(mustEvents(t, s, ann, mark)); got != want {
		t.Errorf("the events are %s, want %s", got, want)
	}
}

// Ensures section 6.3: whatever is sent, stopped, removed and archived, what a
// chat says of its activity and of unread messages is what the rules say of all
// of its rows, though it is kept step by step.
func TestActivity_IsThatOfTheRules(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for range 3 {
		c := newClock()
		s := mustOpen(t, withClock(c))
		members := []workspace.Agent{mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B"), mustAgent(t, s, ann, "C")}
		g := mustGroup(t, s, ann, workspace.ModeFree, members...)
		var runs []workspace.Run
		for n := range 40 {
			c.advance(time.Duration(r.IntN(3)) * time.Millisecond)
			randomStep(t, r, s, g.ID, members, &runs, n)
			checkActivity(t, s, g.ID)
		}
	}
}

func randomStep(t *testing.T, r *rand.Rand, s *Store, g workspace.ConversationID, members []workspace.Agent, runs *[]workspace.Run, n int) {
	t.Helper()
	var err error
	switch r.IntN(8) {
	case 0, 1, 2, 3:
		run := mustSend(t, s, ann, g, text(n, "@"+members[r.IntN(3)].Name+" @"+members[r.IntN(3)].Name))
		*runs = append(*runs, run)
	case 4:
		if len(*runs) > 0 {
			_, err = s.StopRun(t.Context(), ann, (*runs)[r.IntN(len(*runs))].ID)
		}
	case 5:
		_, err = s.StopMember(t.Context(), ann, g, members[r.IntN(3)].ID)
		if workspace.CodeOf(err) == workspace.CodeInvalidMembers {
			err = nil
		}
	case 6:
		say(t, s, g, r.IntN(3))
		_, err = s.MarkRead(t.Context(), ann, g, workspace.ReadMarker{Seq: workspace.Some(r.Int64N(60))})
	case 7:
		ids := []workspace.AgentID{members[0].ID, members[1].ID, members[2].ID}[:1+r.IntN(3)]
		_, _, err = s.EditConversation(t.Context(), ann, g, workspace.ConversationPatch{MemberIDs: workspace.Some(ids)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkActivity compares a chat with what the rules say of all of its rows.
func checkActivity(t *testing.T, s *Store, g workspace.ConversationID) {
	t.Helper()
	got := mustDetail(t, s, ann, g).Conversation
	var live []workspace.LiveRun
	var messages []workspace.Message
	if err := s.read(t.Context(), "test", func(v view) (err error) {
		runs, err := all(v, scanRun, `SELECT `+runColumns+` FROM run WHERE conversation_id = ?`, g)
		if err != nil {
			return err
		}
		for _, run := range runs {
			tasks, err := tasksOf(v, ann, run.ID)
			if err != nil {
				return err
			}
			if derived := run.Derive(workspace.Group, tasks, run.UpdatedAt); !cmp.Equal(derived, run.Run) {
				t.Errorf("a run is not what its tasks say:\n%s", cmp.Diff(derived, run.Run))
			}
			if !run.Status.Terminal() {
				live = append(live, workspace.LiveRun{Run: run.Run, MessageSeq: run.messageSeq, Tasks: tasks})
			}
		}
		messages, err = all(v, scanMessage, `SELECT `+messageColumns+` FROM message WHERE conversation_id = ?`, g)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(workspace.ActivityOf(live), got.Activity); diff != "" {
		t.Fatalf("the activity (-rules +stored):\n%s", diff)
	}
	if want := workspace.Unread(messages, got.ReadSeq); got.UnreadCount != want {
		t.Fatalf("%d messages are unread, the rules say %d", got.UnreadCount, want)
	}
}
