package store

import (
	"github.com/newos4/relay/pkg/workspace"
)

// runRow is a run with what only the store needs of it.
type runRow struct {
	workspace.Run
	// messageSeq is the sequence of its user message, which orders runs.
	messageSeq int64
}

const runColumns = `id, conversation_id, message_id, message_seq, mention_ids, active_agent_id, status, round, error, stop_requested, created_at, updated_at`

func scanRun(r row) (runRow, error) {
	var run runRow
	var mentions string
	err := r.Scan((*string)(&run.ID), (*string)(&run.ConversationID), (*string)(&run.MessageID), &run.messageSeq, &mentions,
		(*string)(&run.ActiveAgentID), (*string)(&run.Status), &run.Round, &run.Error, &run.StopRequested,
		(*int64)(&run.CreatedAt), (*int64)(&run.UpdatedAt))
	run.MentionIDs = decodeIDs[workspace.AgentID](mentions)
	return run, err
}

const taskColumns = `id, owner, run_id, conversation_id, agent_id, message_id, trigger_seq, depth, batch_id, coalesce(review_of, ''),
	reply_mode, required_reply, status, current_message_id, submitted, cancel_requested, planned, silent, had_interaction,
	error, context_through_seq, attempt, created_at, launch`

func scanTask(r row) (workspace.Task, error) {
	var t workspace.Task
	var launch string
	err := r.Scan((*string)(&t.ID), (*string)(&t.Owner), (*string)(&t.RunID), (*string)(&t.ConversationID), (*string)(&t.AgentID),
		(*string)(&t.MessageID), &t.TriggerSeq, &t.Depth, (*string)(&t.BatchID), (*string)(&t.ReviewOf), (*string)(&t.ReplyMode),
		&t.RequiredReply, (*string)(&t.Status), (*string)(&t.CurrentMessageID), &t.Submitted, &t.CancelRequested, &t.Planned,
		&t.Silent, &t.HadInteraction, &t.Error, &t.ContextThroughSeq, &t.Attempt, (*int64)(&t.CreatedAt), &launch)
	if err != nil || launch == "" {
		return t, err
	}
	t.Launch = new(workspace.Launch)
	return t, decode(launch, t.Launch)
}

func (t *tx) run(id workspace.RunID) (runRow, error) {
	return found(one(t.view, scanRun, `SELECT `+runColumns+` FROM run WHERE owner = ? AND id = ?`, t.owner, id))
}

// tasksOf returns all tasks of a run in the order of their creation.
func tasksOf(v view, owner workspace.OwnerID, run workspace.RunID) ([]workspace.Task, error) {
	return all(v, scanTask, `SELECT `+taskColumns+` FROM task WHERE owner = ? AND run_id = ? ORDER BY created_at, id`, owner, run)
}

func (t *tx) addTask(task workspace.Task) error {
	launch, review, err := encodeTask(task)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO task (id, owner, run_id, conversation_id, agent_id, message_id, trigger_seq, depth, batch_id, review_of,
		reply_mode, required_reply, status, current_message_id, submitted, cancel_requested, planned, silent, had_interaction,
		error, context_through_seq, attempt, created_at, launch)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		task.ID, t.owner, task.RunID, task.ConversationID, task.AgentID, task.MessageID, task.TriggerSeq, task.Depth, task.BatchID, review,
		task.ReplyMode, task.RequiredReply, task.Status, task.CurrentMessageID, task.Submitted, task.CancelRequested, task.Planned,
		task.Silent, task.HadInteraction, task.Error, task.ContextThroughSeq, task.Attempt, task.CreatedAt, launch)
	return err
}

// saveTask writes what may change of a task.
func (t *tx) saveTask(task workspace.Task) error {
	launch, _, err := encodeTask(task)
	if err != nil {
		return err
	}
	_, err = t.exec(`UPDATE task SET agent_id = ?, trigger_seq = ?, reply_mode = ?, status = ?, current_message_id = ?, submitted = ?,
		cancel_requested = ?, planned = ?, silent = ?, had_interaction = ?, error = ?, context_through_seq = ?, attempt = ?, launch = ?
		WHERE owner = ? AND id = ?`,
		task.AgentID, task.TriggerSeq, task.ReplyMode, task.Status, task.CurrentMessageID, task.Submitted,
		task.CancelRequested, task.Planned, task.Silent, task.HadInteraction, task.Error, task.ContextThroughSeq, task.Attempt, launch,
		t.owner, task.ID)
	return err
}

// encodeTask returns a task's launch snapshot as text, and the batch it reviews
// or NULL: only reviews are unique.
func encodeTask(task workspace.Task) (launch string, review any, err error) {
	if task.ReviewOf != "" {
		review = task.ReviewOf
	}
	if task.Launch != nil {
		launch, err = encode(*task.Launch)
	}
	return launch, review, err
}

// addRun stores a new run and counts it in its chat.
func (t *tx) addRun(c *chat, run runRow) error {
	_, err := t.exec(`INSERT INTO run (owner, `+runColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.owner, run.ID, run.ConversationID, run.MessageID, run.messageSeq, encodeIDs(run.MentionIDs), run.ActiveAgentID, run.Status,
		run.Round, run.Error, run.StopRequested, run.CreatedAt, run.UpdatedAt)
	c.QueuedMessageCount += queued(run.Status)
	return err
}

// saveRun derives the run from its tasks, stores it and appends its event if it
// changed (section 6.3). The chat's activity is the caller's to refresh.
func (t *tx) saveRun(c *chat, before runRow, after workspace.Run, tasks []workspace.Task) error {
	after = after.Derive(c.Kind, tasks, t.now)
	if same(before.Run, after) {
		return nil
	}
	_, err := t.exec(`UPDATE run SET active_agent_id = ?, status = ?, round = ?, error = ?, stop_requested = ?, updated_at = ?
		WHERE owner = ? AND id = ?`,
		after.ActiveAgentID, after.Status, after.Round, after.Error, after.StopRequested, after.UpdatedAt, t.owner, after.ID)
	if err != nil {
		return err
	}
	c.QueuedMessageCount += queued(after.Status) - queued(before.Status)
	return t.changed(workspace.RunChanged(after))
}

// same reports whether nothing that may change of a run has changed.
func same(a, b workspace.Run) bool {
	return a.Status == b.Status && a.ActiveAgentID == b.ActiveAgentID && a.Round == b.Round &&
		a.Error == b.Error && a.StopRequested == b.StopRequested
}

func queued(status workspace.RunStatus) int {
	if status == workspace.RunQueued {
		return 1
	}
	return 0
}

// refresh sets what follows in a chat from its runs and tasks: what
// [workspace.ActivityOf] says of all of them, found without reading all of them.
// The count of queued messages is kept by addRun and saveRun.
func (t *tx) refresh(c *chat) error {
	count := c.QueuedMessageCount
	c.Activity = workspace.Activity{QueuedMessageCount: count, ActiveAgentStates: make(map[workspace.AgentID]workspace.TaskStatus)}
	oldest, live, err := maybe(one(t.view, scanRun, `SELECT `+runColumns+` FROM run WHERE owner = ? AND conversation_id = ?
		AND status NOT IN ('complete', 'failed', 'interrupted') ORDER BY message_seq LIMIT 1`, t.owner, c.ID))
	if err != nil || !live {
		return err
	}
	c.ActiveRunID, c.ActiveAgentID, c.ActiveRunStatus = oldest.ID, oldest.ActiveAgentID, oldest.Status
	occupied, err := all(t.view, scanTask, `SELECT `+taskColumns+` FROM task WHERE owner = ? AND conversation_id = ?
		AND status IN ('running', 'waiting', 'uncertain')`, t.owner, c.ID)
	for _, task := range occupied {
		c.ActiveAgentStates[task.AgentID] = task.Status
	}
	return err
}

// saveActivity refreshes the chat, stores it and appends its event.
func (t *tx) saveActivity(c *chat) error {
	if err := t.refresh(c); err != nil {
		return err
	}
	if err := t.saveChat(*c); err != nil {
		return err
	}
	return t.chatChanged(*c)
}
