package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/newos4/relay/pkg/workspace"
)

// Started is a task that was started, with what is needed to open its session.
type Started struct {
	Task workspace.Task
	// Ended says that the task may not be executed any more and is interrupted.
	Ended bool
	Agent workspace.Agent
	Chat  workspace.Conversation
	// Binding is the member's session, or has no StoredID.
	Binding workspace.Binding
	// Files are those of the run's user message, to be handed over.
	Files []StoredFile
}

// StartTask starts a queued task: it goes to the agent that has to execute it now
// and keeps how the group is set. A task that nobody may execute any more is
// interrupted (section 6.4).
func (s *Store) StartTask(ctx context.Context, ref Ref) (started Started, err error) {
	err = s.change(ctx, ref, "starting a task", func(ch *change) error {
		if err := ch.expect(workspace.TaskQueued); err != nil {
			return err
		}
		if started.Ended = !ch.task.MayStart(ch.chat.Conversation, ch.run.Run); started.Ended {
			return ch.endNow(workspace.TaskInterrupted)
		}
		return ch.start(&started)
	})
	return started, err
}

func (ch *change) start(started *Started) error {
	members, err := ch.agents(ch.chat.MemberIDs)
	if err != nil {
		return err
	}
	ch.task.AgentID = ch.task.FirstAgent(ch.chat.Conversation)
	launch := workspace.Snapshot(ch.chat.Conversation, members)
	ch.task.Launch = &launch
	ch.task.Error = ""
	if err := ch.become(workspace.TaskRunning); err != nil {
		return err
	}
	return ch.describe(started, members[ch.task.AgentID])
}

// describe fills in what is needed to open the task's session.
func (ch *change) describe(started *Started, agent workspace.Agent) (err error) {
	started.Task, started.Agent, started.Chat = ch.task, agent, ch.chat.Conversation
	if started.Binding, err = ch.binding(); err != nil {
		return err
	}
	started.Files, err = all(ch.view, scanFile, `SELECT `+fileColumns+` FROM message_file AS link
		JOIN file ON file.owner = link.owner AND file.id = link.file_id
		WHERE link.owner = ? AND link.message_id = ? ORDER BY link.ordinal`, ch.owner, ch.task.MessageID)
	return err
}

// binding returns the session of the task's member, or one without an id.
func (ch *change) binding() (workspace.Binding, error) {
	b, ok, err := maybe(one(ch.view, scanBinding, `SELECT conversation_id, agent_id, node_id, profile, stored_id, runtime_id, aliases,
		run_id, task_id, message_id, context_seq FROM binding WHERE owner = ? AND conversation_id = ? AND agent_id = ?`,
		ch.owner, ch.task.ConversationID, ch.task.AgentID))
	if err != nil || ok {
		return b, err
	}
	return workspace.Binding{ConversationID: ch.task.ConversationID, AgentID: ch.task.AgentID, Aliases: []string{}}, nil
}

// Session is what the upstream says a member's session is.
type Session struct {
	NodeID    workspace.NodeID
	Profile   string
	StoredID  string
	RuntimeID string
	Aliases   []string
	// Fresh says that the session was made now and knows nothing of the chat.
	Fresh bool
}

// on returns the binding with the session's ids; all that it ever had stay among
// its aliases.
func (in Session) on(b workspace.Binding) workspace.Binding {
	for _, id := range slices.Concat(in.Aliases, []string{in.StoredID}) {
		b = b.Rename(id)
	}
	if in.RuntimeID != "" {
		b.RuntimeID = in.RuntimeID
	}
	if in.Fresh {
		b.ContextSeq = 0
	}
	b.NodeID, b.Profile = in.NodeID, in.Profile
	return b
}

// SubmitTask stores that a task's prompt is about to leave: after it the prompt is
// never sent again, whatever happens (section 6.10). In the same transaction the
// member's binding goes to the task, its reply gets a row, and the prompt's
// material is read. Ended says that the task may not be executed any more and is
// interrupted.
func (s *Store) SubmitTask(ctx context.Context, ref Ref, session Session) (m workspace.Material, ended bool, err error) {
	err = s.change(ctx, ref, "marking a task as submitted", func(ch *change) error {
		if err := ch.expect(workspace.TaskRunning); err != nil {
			return err
		}
		if ch.task.Submitted {
			return fmt.Errorf("task %s was submitted: %w", ch.task.ID, workspace.ErrStale)
		}
		if ended = !ch.maySubmit(); ended {
			return ch.interruptUnsubmitted()
		}
		m, err = ch.submit(session)
		return err
	})
	return m, ended, err
}

// maySubmit is the second look at what MayStart asked (section 5.6).
func (ch *change) maySubmit() bool {
	return !ch.chat.Archived && !ch.run.StopRequested && !ch.task.CancelRequested && ch.chat.HasMember(ch.task.AgentID)
}

func (ch *change) interruptUnsubmitted() error {
	if err := ch.rowBecomes(workspace.MessageInterrupted); err != nil {
		return err
	}
	return ch.endNow(workspace.TaskInterrupted)
}

func (ch *change) submit(session Session) (m workspace.Material, err error) {
	b, err := ch.binding()
	if err != nil {
		return m, err
	}
	b = session.on(b)
	if m, err = ch.material(b.ContextSeq); err != nil {
		return m, err
	}
	if err := ch.addReplyRow(m.Agent); err != nil {
		return m, err
	}
	ch.task.Submitted = true
	b.RunID, b.TaskID, b.MessageID = ch.task.RunID, ch.task.ID, ch.task.CurrentMessageID
	m.Task = ch.task
	return m, ch.saveBinding(b)
}

// addReplyRow gives the task the row of its reply, unless it has one from an
// attempt that the upstream refused.
func (ch *change) addReplyRow(agent workspace.Agent) error {
	if ch.row.ID != "" {
		return nil
	}
	row := ch.newRow(agent)
	row.Hidden = workspace.Hidden(ch.task.StartsHidden())
	row.Status = workspace.MessageQueued
	return ch.appendRow(row)
}

// newRow returns an empty message of the task's agent.
func (ch *change) newRow(agent workspace.Agent) workspace.Message {
	return workspace.Message{
		ID:             workspace.MessageID(ch.newID()),
		ConversationID: ch.chat.ID,
		Role:           workspace.RoleAssistant,
		AgentID:        ch.task.AgentID,
		AgentName:      agent.Name,
		RunID:          ch.task.RunID,
		TaskID:         ch.task.ID,
		Attachments:    []workspace.File{},
		Tools:          []workspace.Tool{},
		CreatedAt:      ch.now,
	}
}

// appendRow stores the task's row as the chat's newest.
func (ch *change) appendRow(row workspace.Message) error {
	ch.chat.Conversation, ch.row = ch.chat.Append(row)
	ch.task.CurrentMessageID = ch.row.ID
	ch.chatTouched = true
	return ch.addMessage(&ch.chat, ch.row)
}

// saveBinding stores a binding and makes all of its ids known to the guard.
func (t *tx) saveBinding(b workspace.Binding) error {
	aliases, err := encode(b.Aliases)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO binding (owner, conversation_id, agent_id, node_id, profile, stored_id, runtime_id, aliases,
		run_id, task_id, message_id, context_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (owner, conversation_id, agent_id) DO UPDATE SET node_id = excluded.node_id, profile = excluded.profile,
		stored_id = excluded.stored_id, runtime_id = excluded.runtime_id, aliases = excluded.aliases, run_id = excluded.run_id,
		task_id = excluded.task_id, message_id = excluded.message_id, context_seq = excluded.context_seq`,
		t.owner, b.ConversationID, b.AgentID, b.NodeID, b.Profile, b.StoredID, b.RuntimeID, aliases,
		b.RunID, b.TaskID, b.MessageID, b.ContextSeq)
	if err != nil {
		return err
	}
	return t.protect(b)
}

// Refused stores that the upstream definitely did not take a task's prompt, and
// puts the task back into the queue (section 7.3).
func (s *Store) Refused(ctx context.Context, ref Ref) error {
	return s.change(ctx, ref, "putting a refused task back into the queue", func(ch *change) error {
		ch.task.Submitted = false
		return ch.requeue()
	})
}
