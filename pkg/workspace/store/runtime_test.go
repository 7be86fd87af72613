package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// stage is a store with a chat whose tasks a test drives as a runtime would.
type stage struct {
	*testing.T
	s    *Store
	chat workspace.ConversationID
}

// tasks returns all tasks of the stage's chat in the order of their creation.
func (g stage) tasks() []workspace.Task {
	g.Helper()
	var tasks []workspace.Task
	if err := g.s.read(context.Background(), "test", func(v view) (err error) {
		tasks, err = all(v, scanTask, `SELECT `+taskColumns+` FROM task WHERE conversation_id = ? ORDER BY created_at, id`, g.chat)
		return err
	}); err != nil {
		g.Fatal(err)
	}
	return tasks
}

// task returns the oldest task of an agent that is not over, or else its newest.
func (g stage) task(agent workspace.AgentID) workspace.Task {
	g.Helper()
	for _, t := range g.tasks() {
		if t.AgentID == agent && !t.Status.Terminal() {
			return t
		}
	}
	for _, t := range slices.Backward(g.tasks()) {
		if t.AgentID == agent {
			return t
		}
	}
	g.Fatalf("agent %s has no task", agent)
	return workspace.Task{}
}

func (g stage) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// start starts an agent's task.
func (g stage) start(agent workspace.AgentID) Ref {
	g.Helper()
	started, err := g.s.StartTask(g.Context(), RefOf(g.task(agent)))
	g.must(err)
	if started.Ended {
		g.Fatal("the task may not start")
	}
	return RefOf(started.Task)
}

// submit starts and submits an agent's task.
func (g stage) submit(agent workspace.AgentID) (Ref, workspace.Material) {
	g.Helper()
	ref := g.start(agent)
	m, ended, err := g.s.SubmitTask(g.Context(), ref, Session{NodeID: workspace.LocalNode, Profile: "default", StoredID: "s-" + string(agent), RuntimeID: "r"})
	g.must(err)
	if ended {
		g.Fatal("the task may not be submitted")
	}
	return ref, m
}

// finish completes a task with a text.
func (g stage) finish(ref Ref, text string) workspace.Message {
	g.Helper()
	row, err := g.s.Finish(g.Context(), ref, Ending{Status: workspace.TaskComplete, Draft: Draft{Text: text}, Proven: true})
	g.must(err)
	return row
}

func (g stage) detail() ConversationDetail {
	g.Helper()
	return mustDetail(g.T, g.s, ann, g.chat)
}

func directStage(t *testing.T) (stage, workspace.Agent) {
	t.Helper()
	s := mustOpen(t)
	a := mustAgent(t, s, ann, "A")
	return stage{t, s, mustDirect(t, s, ann, a.ID).ID}, a
}

func groupStage(t *testing.T, mode workspace.Mode, names ...string) (stage, []workspace.Agent) {
	t.Helper()
	s := mustOpen(t)
	agents := make([]workspace.Agent, len(names))
	for i, name := range names {
		agents[i] = mustAgent(t, s, ann, name)
	}
	return stage{t, s, mustGroup(t, s, ann, mode, agents...).ID}, agents
}

// Ensures the whole path of a task: it is marked as submitted, with a row and a
// binding, before its prompt can leave; the row streams; and its end, the run's
// and the chat's are one write (sections 6.1, 6.2, 6.10 and 6.14).
func TestTask_FromTheQueueToItsEnd(t *testing.T) {
	t.Parallel()
	g, a := directStage(t)
	run := mustSend(t, g.s, ann, g.chat, text(1, "hello"))
	ref, m := g.submit(a.ID)
	if task := g.task(a.ID); !task.Submitted || task.Attempt != 1 || task.CurrentMessageID == "" || task.CurrentMessageID != m.Task.CurrentMessageID {
		t.Errorf("the task is %+v", task)
	}
	if m.Request.Content != "hello" || m.Agent.Name != "A" {
		t.Errorf("the material is %+v", m)
	}
	b, err := g.s.Binding(t.Context(), ann, g.chat, a.ID)
	g.must(err)
	if b.StoredID == "" || b.TaskID != ref.ID || b.ContextSeq != 0 {
		t.Errorf("the binding is %+v", b)
	}
	g.must(g.s.Acknowledge(t.Context(), ref))
	g.must(g.s.Stream(t.Context(), ref, Draft{Text: "Hi", Reasoning: "well"}))
	if d := g.detail(); d.Run.Status != workspace.RunRunning || d.Messages[1].Content != "Hi" || d.Messages[1].Status != workspace.MessageStreaming || d.Conversation.Preview != "Hi" {
		t.Errorf("while it streams: %+v, %+v", d.Conversation, d.Messages)
	}
	g.finish(ref, "Hi there")
	d := g.detail()
	if d.Run != nil || d.Messages[1].Content != "Hi there" || d.Messages[1].Status != workspace.MessageComplete || d.Conversation.UnreadCount != 1 {
		t.Errorf("at the end: %+v, %+v", d.Conversation, d.Messages)
	}
	if b, err = g.s.Binding(t.Context(), ann, g.chat, a.ID); err != nil || b.ContextSeq != 1 {
		t.Errorf("the binding is %+v, %v", b, err)
	}
	if stored, err := g.s.Send(t.Context(), ann, g.chat, text(1, "hello")); err != nil || stored.ID != run.ID || stored.Status != workspace.RunComplete {
		t.Errorf("the run is %+v, %v", stored, err)
	}
	checkActivity(t, g.s, g.chat)
}

// Ensures section 6.2's guard: a write for an earlier attempt, or for a task that
// is over, changes nothing at all.
func TestTask_StaleWritesChangeNothing(t *testing.T) {
	t.Parallel()
	g, a := directStage(t)
	mustSend(t, g.s, ann, g.chat, text(1, "hello"))
	first := g.start(a.ID)
	g.must(g.s.Abandon(t.Context(), first, "gone"))
	second, _ := g.submit(a.ID)
	g.finish(second, "done")
	mark := mustList(t, g.s, ann).Cursor
	before := g.tasks()
	ctx := t.Context()
	for _, ref := range []Ref{first, second} {
		_, start := g.s.StartTask(ctx, ref)
		_, _, submit := g.s.SubmitTask(ctx, ref, Session{StoredID: "x"})
		_, finish := g.s.Finish(ctx, ref, Ending{Status: workspace.TaskFailed, Error: "late"})
		for what, err := range map[string]error{
			"start": start, "submit": submit, "finish": finish,
			"stream": g.s.Stream(ctx, ref, Draft{Text: "late"}), "lose": g.s.Lose(ctx, ref, "late"), "resume": g.s.Resume(ctx, ref),
			"ask": g.s.Ask(ctx, ref, Question{ID: "q", Kind: workspace.Approval}),
		} {
			if !errors.Is(err, workspace.ErrStale) {
				t.Errorf("%s in attempt %d gives %v", what, ref.Attempt, err)
			}
		}
	}
	if events := mustEvents(t, g.s, ann, mark); len(events) != 0 {
		t.Errorf("stale writes told of %s", types(events))
	}
	if diff := cmp.Diff(before, g.tasks()); diff != "" {
		t.Error(diff)
	}
}

// Ensures section 6.10: a submitted task never goes back to the queue, not by a
// crash and not by somebody who lets go of it; one that was not submitted does.
func TestRecover(t *testing.T) {
	t.Parallel()
	g, a := directStage(t)
	mustSend(t, g.s, ann, g.chat, text(1, "hello"))
	g.start(a.ID)
	g.must(g.s.Recover(t.Context()))
	if task := g.task(a.ID); task.Status != workspace.TaskQueued {
		t.Errorf("not submitted: %s", task.Status)
	}
	ref, _ := g.submit(a.ID)
	g.must(g.s.Ask(t.Context(), ref, Question{ID: "q", Kind: workspace.Approval, Message: "may I?"}))
	question := g.detail().Interactions[0]
	_, _, err := g.s.Respond(t.Context(), ann, question.ID, workspace.AnswerInteraction{Answer: workspace.Some("once")}, func(workspace.Interaction) bool { return true })
	g.must(err)
	for range 2 {
		g.must(g.s.Recover(t.Context()))
	}
	task, d := g.task(a.ID), g.detail()
	if task.Status != workspace.TaskUncertain || d.Run.Status != workspace.RunUncertain || d.Run.Error == "" || d.Messages[1].Status != workspace.MessageUncertain {
		t.Errorf("submitted: %+v, %+v", task, d.Run)
	}
	if d.Interactions[0].ResponseState != workspace.ResponseUncertain {
		t.Errorf("the answer is %+v", d.Interactions[0])
	}
	if err := g.s.Refused(t.Context(), ref); err == nil {
		t.Error("an uncertain task went back to the queue")
	}
	g.must(g.s.Resume(t.Context(), ref))
	if task := g.task(a.ID); task.Status != workspace.TaskWaiting || task.Error != "" {
		t.Errorf("resumed with an open question: %+v", task)
	}
}

// Ensures sections 2.6 and 6.8: the row of a task that may be silent shows nothing
// of the token, is revealed at the end of the transcript with its first text, and
// stays hidden when the task is silent.
func TestStream_HiddenRows(t *testing.T) {
	t.Parallel()
	g, agents := groupStage(t, workspace.ModeFree, "A", "B", "C")
	automatic := []workspace.AgentID{agents[1].ID, agents[2].ID}
	_, _, err := g.s.EditConversation(t.Context(), ann, g.chat, workspace.ConversationPatch{AutoReplyIDs: workspace.Some(automatic)})
	g.must(err)
	mustSend(t, g.s, ann, g.chat, text(1, "hello"))
	b, _ := g.submit(agents[1].ID)
	c, _ := g.submit(agents[2].ID)
	if d := g.detail(); len(d.Messages) != 1 || len(d.HiddenMessageIDs) != 2 {
		t.Errorf("before: %d messages, hidden %v", len(d.Messages), d.HiddenMessageIDs)
	}
	g.must(g.s.Stream(t.Context(), b, Draft{Text: workspace.SilenceToken[:5]}))
	if d := g.detail(); len(d.Messages) != 1 {
		t.Errorf("a part of the token is shown: %+v", d.Messages)
	}
	g.must(g.s.Stream(t.Context(), b, Draft{Text: "Yes"}))
	if d := g.detail(); len(d.Messages) != 2 || d.Messages[1].Seq != 4 || d.Conversation.Preview != "Yes" {
		t.Errorf("revealed: %+v", d.Messages)
	}
	g.finish(c, workspace.SilenceToken)
	d := g.detail()
	if len(d.Messages) != 2 || len(d.HiddenMessageIDs) != 1 || d.Conversation.UnreadCount != 0 {
		t.Errorf("silent: %+v", d.Conversation)
	}
	if task := g.task(agents[2].ID); !task.Silent || task.Status != workspace.TaskComplete {
		t.Errorf("the silent task is %+v", task)
	}
	for _, e := range mustEvents(t, g.s, ann, 0) {
		if strings.Contains(string(e.Data), workspace.SilenceToken[:5]) {
			t.Errorf("an event has the token: %s", e.Data)
		}
	}
}

// Ensures sections 7.3 and 11, item 11: a failure before there was a row makes
// exactly one visible one, and a failure ends its direct run as failed.
func TestFinish_FailureIsSeen(t *testing.T) {
	t.Parallel()
	g, a := directStage(t)
	mustSend(t, g.s, ann, g.chat, text(1, "hello"))
	_, err := g.s.Finish(t.Context(), g.start(a.ID), Ending{Status: workspace.TaskFailed, Error: "no server"})
	g.must(err)
	d := g.detail()
	if len(d.Messages) != 2 || d.Messages[1].Role != workspace.RoleSystem || d.Messages[1].Status != workspace.MessageFailed || d.Run != nil {
		t.Errorf("the chat is %+v", d.Messages)
	}
	group, agents := groupStage(t, workspace.ModeFree, "B", "C")
	mustSend(t, group.s, ann, group.chat, text(1, "@C"))
	_, err = group.s.Finish(t.Context(), group.start(agents[1].ID), Ending{Status: workspace.TaskFailed, Error: "no server"})
	group.must(err)
	if d := group.detail(); len(d.Messages) != 2 || d.Messages[1].AgentID != agents[1].ID || d.Messages[1].Error != "no server" {
		t.Errorf("the group is %+v", d.Messages)
	}
}

// Ensures sections 2.9 and 6.2: a repeated question makes no second card, a task
// runs on after the last of its questions only, and all of them end with it.
func TestAsk(t *testing.T) {
	t.Parallel()
	g, a := directStage(t)
	mustSend(t, g.s, ann, g.chat, text(1, "hello"))
	ref, _ := g.submit(a.ID)
	for _, id := range []string{"q1", "q1", "q2"} {
		g.must(g.s.Ask(t.Context(), ref, Question{ID: id, Kind: workspace.Clarification, Message: "which?"}))
	}
	d := g.detail()
	if len(d.Interactions) != 2 || d.Run.Status != workspace.RunWaiting {
		t.Fatalf("%d questions, run %s", len(d.Interactions), d.Run.Status)
	}
	answer := func(i workspace.Interaction) {
		t.Helper()
		_, call, err := g.s.Respond(t.Context(), ann, i.ID, workspace.AnswerInteraction{Answer: workspace.Some("this")}, func(workspace.Interaction) bool { return true })
		if err != nil || !call {
			t.Fatal(call, err)
		}
		_, err = g.s.Responded(t.Context(), ann, i.ID, workspace.Interaction.Sent)
		g.must(err)
	}
	answer(d.Interactions[0])
	if task := g.task(a.ID); task.Status != workspace.TaskWaiting || !task.HadInteraction {
		t.Errorf("after the first answer: %+v", task)
	}
	g.must(g.s.CloseQuestion(t.Context(), ref, "q2", true))
	if task := g.task(a.ID); task.Status != workspace.TaskRunning {
		t.Errorf("after the last: %s", task.Status)
	}
	g.must(g.s.Ask(t.Context(), ref, Question{ID: "q3", Kind: workspace.Approval}))
	g.finish(ref, "done")
	if open := g.detail().Interactions; len(open) != 0 {
		t.Errorf("open questions of a task that is over: %+v", open)
	}
}

// Ensures section 6.13: a member is given what it has not seen, nothing of its
// own, nothing hidden, unfinished or of a later request, and its watermark stops
// before the first of those.
func TestSubmit_TranscriptAndWatermark(t *testing.T) {
	t.Parallel()
	g, agents := groupStage(t, workspace.ModeFree, "A", "B", "C")
	mustSend(t, g.s, ann, g.chat, text(1, "@A @B one"))
	first, m := g.submit(agents[0].ID)
	if got := contents(m.Transcript); got != "@A @B one" {
		t.Errorf("A is given %q", got)
	}
	mustSend(t, g.s, ann, g.chat, text(2, "@C two"))
	g.finish(first, "@B look")
	second, m := g.submit(agents[1].ID)
	if got := contents(m.Transcript); got != "@A @B one" || m.Task.ContextThroughSeq != 1 {
		t.Errorf("B is given %q up to %d", got, m.Task.ContextThroughSeq)
	}
	g.finish(second, "done")
	_, m = g.submit(agents[1].ID)
	if got := contents(m.Transcript); got != "@B look" {
		t.Errorf("B is given %q", got)
	}
	if b, err := g.s.Binding(t.Context(), ann, g.chat, agents[1].ID); err != nil || b.ContextSeq != 1 {
		t.Errorf("the binding is %+v, %v", b, err)
	}
	_, m = g.submit(agents[2].ID)
	if got := contents(m.Transcript); got != "@A @B one|@B look|@C two" {
		t.Errorf("C is given %q", got)
	}
}

func contents(t workspace.Transcript) string {
	texts := make([]string, len(t.Messages))
	for i, m := range t.Messages {
		texts[i] = m.Content
	}
	return strings.Join(texts, "|")
}

// Ensures section 6.4: the scheduler sees the open tasks of all owners, by an
// index, and whether their owner may execute anything.
func TestOpenTasks(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	for _, owner := range []workspace.OwnerID{ann, bob} {
		mustSend(t, s, owner, mustDirect(t, s, owner, mustAgent(t, s, owner, "A").ID).ID, text(1, "hello"))
	}
	mustExec(t, s, ann, `INSERT INTO account (id, username, username_key, role, enabled, must_change_password, digest, auth_version, created_at, updated_at)
		VALUES (?, 'ann', 'ann', 'admin', 1, 0, '', 1, 0, 0)`, ann)
	open, err := s.OpenTasks(t.Context())
	if err != nil || len(open) != 2 {
		t.Fatal(open, err)
	}
	for _, o := range open {
		if o.OwnerEnabled != (o.Owner == ann) || o.MessageSeq != 1 || o.MessageAt == 0 || o.Kind != workspace.Direct || o.AdministratorID != o.AgentID {
			t.Errorf("an open task is %+v", o)
		}
	}
}
