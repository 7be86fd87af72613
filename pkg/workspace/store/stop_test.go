package store

import (
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// setTasks moves the tasks of a run to a state, as a runtime would.
func setTasks(t testing.TB, s *Store, owner workspace.OwnerID, run workspace.RunID, status workspace.TaskStatus) {
	t.Helper()
	if err := s.write(t.Context(), owner, "test", func(t *tx) error {
		stored, err := t.run(run)
		if err != nil {
			return err
		}
		c, err := t.chat(stored.ConversationID)
		if err != nil {
			return err
		}
		tasks, err := tasksOf(t.view, owner, run)
		if err != nil {
			return err
		}
		for i := range tasks {
			tasks[i].Status, tasks[i].Submitted = status, status.Occupied()
			if err := t.saveTask(tasks[i]); err != nil {
				return err
			}
		}
		if err := t.saveRun(&c, stored, stored.Run, tasks); err != nil {
			return err
		}
		return t.saveActivity(&c)
	}); err != nil {
		t.Fatal(err)
	}
}

// Ensures section 6.9: stopping a run ends its queued tasks at once and names
// those that must be interrupted upstream; stopping it again, once it is over,
// has no effect (section 3.5).
func TestStopRun(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
	first, second := mustSend(t, s, ann, direct.ID, text(1, "one")), mustSend(t, s, ann, direct.ID, text(2, "two"))
	stopped, err := s.StopRun(t.Context(), ann, second.ID)
	if err != nil || len(stopped.Interrupt) != 0 {
		t.Fatalf("stopping a queued run gives %+v, %v", stopped, err)
	}
	c := mustDetail(t, s, ann, direct.ID).Conversation
	if c.ActiveRunID != first.ID || c.QueuedMessageCount != 1 {
		t.Errorf("the chat is %+v", c)
	}
	mark := mustList(t, s, ann).Cursor
	if _, err := s.StopRun(t.Context(), ann, second.ID); err != nil {
		t.Fatal(err)
	}
	if events := mustEvents(t, s, ann, mark); len(events) != 0 {
		t.Errorf("stopping again appended %s", types(events))
	}
	setTasks(t, s, ann, first.ID, workspace.TaskRunning)
	stopped, err = s.StopRun(t.Context(), ann, first.ID)
	if err != nil || len(stopped.Interrupt) != 1 || !stopped.Interrupt[0].CancelRequested {
		t.Errorf("stopping a running run gives %+v, %v", stopped, err)
	}
	d := mustDetail(t, s, ann, direct.ID)
	if d.Run == nil || !d.Run.StopRequested || d.Run.Status != workspace.RunRunning {
		t.Errorf("the running run is %+v", d.Run)
	}
	_, err = s.StopRun(t.Context(), ann, id[workspace.RunID](1))
	wantCode(t, err, workspace.CodeRowNotFound)
}

// Ensures sections 3.5 and 6.9: a member's stop ends that member's tasks only,
// and a non-member is refused.
func TestStopMember(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a, b, c := mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B"), mustAgent(t, s, ann, "C")
	g := mustGroup(t, s, ann, workspace.ModeFree, a, b)
	mustSend(t, s, ann, g.ID, text(1, "@A @B"))
	_, err := s.StopMember(t.Context(), ann, g.ID, c.ID)
	wantCode(t, err, workspace.CodeInvalidMembers)
	if _, err := s.StopMember(t.Context(), ann, g.ID, a.ID); err != nil {
		t.Fatal(err)
	}
	run := mustDetail(t, s, ann, g.ID).Run
	if run == nil || run.ActiveAgentID != b.ID {
		t.Errorf("the run is %+v", run)
	}
	if n := count(t, s, `SELECT count(*) FROM task WHERE status = 'interrupted' AND planned = 1 AND agent_id = ?`, a.ID); n != 1 {
		t.Errorf("%d tasks are interrupted and planned", n)
	}
}

// Ensures section 6.6, step 7, for tasks that never start: when the last of a
// batch is removed while queued, its one review is created in the same
// transaction, and planning again creates no second one (section 2.17).
func TestPlan_ReviewOfASettledBatch(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a, b, c := mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B"), mustAgent(t, s, ann, "C")
	g := mustGroup(t, s, ann, workspace.ModeHost, a, b, c)
	run := mustSend(t, s, ann, g.ID, text(1, "do it"))
	reply(t, s, ann, run.ID, "@B and @C, please")
	if n := count(t, s, `SELECT count(*) FROM task WHERE status = 'queued' AND depth = 1`); n != 2 {
		t.Fatalf("%d tasks were delegated", n)
	}
	if _, _, err := s.EditConversation(t.Context(), ann, g.ID, workspace.ConversationPatch{MemberIDs: workspace.Some([]workspace.AgentID{a.ID, b.ID})}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.StopMember(t.Context(), ann, g.ID, b.ID); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, `SELECT count(*) FROM task WHERE review_of IS NOT NULL AND status = 'queued' AND agent_id = ?`, a.ID); n != 1 {
		t.Errorf("there are %d reviews", n)
	}
	checkActivity(t, s, g.ID)
	err := s.write(t.Context(), ann, "test", func(t *tx) error {
		_, err := t.exec(`INSERT INTO task SELECT owner, 'other', run_id, conversation_id, agent_id, message_id, trigger_seq, depth, batch_id, review_of,
			reply_mode, required_reply, status, current_message_id, submitted, cancel_requested, planned, silent, had_interaction, error,
			context_through_seq, attempt, created_at, launch FROM task WHERE review_of IS NOT NULL`)
		return err
	})
	if !isTaken(err) {
		t.Errorf("a second review gives %v", err)
	}
}

// reply completes the run's first task with a text and plans what follows.
func reply(t testing.TB, s *Store, owner workspace.OwnerID, id workspace.RunID, content string) {
	t.Helper()
	if err := s.write(t.Context(), owner, "test", func(t *tx) error {
		run, err := t.run(id)
		if err != nil {
			return err
		}
		c, err := t.chat(run.ConversationID)
		if err != nil {
			return err
		}
		tasks, err := tasksOf(t.view, owner, id)
		if err != nil {
			return err
		}
		var m workspace.Message
		c.Conversation, m = c.Append(workspace.Message{
			ID: workspace.MessageID(t.newID()), ConversationID: c.ID, Role: workspace.RoleAssistant, AgentID: tasks[0].AgentID, RunID: id,
			Content: content, Status: workspace.MessageComplete, Attachments: []workspace.File{}, Tools: []workspace.Tool{}, CreatedAt: t.now,
		})
		if err := t.addMessage(&c, m); err != nil {
			return err
		}
		tasks[0].Status, tasks[0].CurrentMessageID = workspace.TaskComplete, m.ID
		if err := t.saveTask(tasks[0]); err != nil {
			return err
		}
		if err := t.plan(&c, run); err != nil {
			return err
		}
		return t.saveActivity(&c)
	}); err != nil {
		t.Fatal(err)
	}
}

// Ensures section 6.7, step 5: the notice that the limit of rounds was reached
// appears once in a run.
func TestPlan_OneLimitNotice(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a, b := mustAgent(t, s, ann, "A"), mustAgent(t, s, ann, "B")
	g := mustGroup(t, s, ann, workspace.ModeFree, a, b)
	if _, _, err := s.EditConversation(t.Context(), ann, g.ID, workspace.ConversationPatch{MaxReplyRounds: workspace.Some(1)}); err != nil {
		t.Fatal(err)
	}
	run := mustSend(t, s, ann, g.ID, text(1, "@A"))
	for range 2 {
		reply(t, s, ann, run.ID, "@B, go on")
		mustExec(t, s, ann, `UPDATE task SET planned = 0`)
	}
	notices := 0
	for _, m := range mustDetail(t, s, ann, g.ID).Messages {
		if m.Role == workspace.RoleSystem && m.Content == workspace.LimitNotice {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("there are %d notices", notices)
	}
}

// Ensures section 3.5: what has to be checked upstream is the run's uncertain
// tasks; a run without any is harmless.
func TestUncertainTasks(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
	run := mustSend(t, s, ann, direct.ID, text(1, "one"))
	for status, want := range map[workspace.TaskStatus]int{workspace.TaskQueued: 0, workspace.TaskUncertain: 1} {
		setTasks(t, s, ann, run.ID, status)
		tasks, err := s.UncertainTasks(t.Context(), ann, run.ID)
		if err != nil || len(tasks) != want {
			t.Errorf("%s: %d tasks, %v", status, len(tasks), err)
		}
	}
}

// Ensures section 6.11: an answer is stored as sending before the upstream is
// called, the same one again calls nothing, another is a conflict, one whose
// fate is unknown is never sent again, and each step is told.
func TestRespond(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
	run := mustSend(t, s, ann, direct.ID, text(1, "one"))
	question := ask(t, s, ann, run, 1)
	yes := func(workspace.Interaction) bool { return true }
	no := func(workspace.Interaction) bool { return false }
	respond := func(answer string, online func(workspace.Interaction) bool) (workspace.Interaction, bool, error) {
		return s.Respond(t.Context(), ann, question, workspace.AnswerInteraction{Answer: workspace.Some(answer)}, online)
	}
	_, _, err := respond("once", no)
	wantCode(t, err, workspace.CodeAnswerOffline)
	_, _, err = respond("perhaps", yes)
	wantCode(t, err, workspace.CodeInvalidApproval)
	mark := mustList(t, s, ann).Cursor
	i, call, err := respond("once", yes)
	if err != nil || !call || i.ResponseState != workspace.ResponseSending {
		t.Errorf("the first answer gives %+v, %v, %v", i, call, err)
	}
	_, _, err = respond("once", yes)
	wantCode(t, err, workspace.CodeAnswerUncertain)
	if _, err := s.Responded(t.Context(), ann, question, workspace.Interaction.Rejected); err != nil {
		t.Fatal(err)
	}
	if _, call, err := respond("deny", yes); err != nil || !call {
		t.Errorf("after a rejection: %v, %v", call, err)
	}
	if _, err := s.Responded(t.Context(), ann, question, workspace.Interaction.Sent); err != nil {
		t.Fatal(err)
	}
	if _, call, err := respond("deny", no); err != nil || call {
		t.Errorf("the same answer again: %v, %v", call, err)
	}
	_, _, err = respond("once", yes)
	wantCode(t, err, workspace.CodeAnswerConflict)
	if got := types(mustEvents(t, s, ann, mark)); got != "interaction interaction interaction interaction" {
		t.Errorf("the events are %s", got)
	}
	if open := mustDetail(t, s, ann, direct.ID).Interactions; len(open) != 0 {
		t.Errorf("open questions: %+v", open)
	}
}
