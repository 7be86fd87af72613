package store

import (
	"database/sql"
	"slices"

	"github.com/newos4/relay/pkg/workspace"
)

// material reads what the task's prompt is made of, and sets how far the member
// will know the chat afterwards. Watermark is how far it knows it now.
func (ch *change) material(watermark int64) (m workspace.Material, err error) {
	m.Run, m.Conversation = ch.run.Run, ch.chat.Conversation
	if m.Batch, err = ch.reviewed(); err != nil {
		return m, err
	}
	agents := slices.Clone(ch.chat.MemberIDs)
	for _, t := range m.Batch {
		agents = append(agents, t.AgentID) // also of those who have left
	}
	if m.Agents, err = ch.agents(agents); err != nil {
		return m, err
	}
	m.Agent = m.Agents[ch.task.AgentID]
	if m.Request, err = ch.message(ch.task.MessageID); err != nil {
		return m, err
	}
	if ch.chat.Kind == workspace.Direct {
		ch.task.ContextThroughSeq = ch.task.TriggerSeq
		return m, nil
	}
	if m.Transcript, err = ch.transcript(watermark); err != nil {
		return m, err
	}
	ch.task.ContextThroughSeq, err = ch.knownThrough(watermark)
	return m, err
}

// reviewed returns the tasks of the batch that the task reviews.
func (ch *change) reviewed() ([]workspace.Task, error) {
	if ch.task.ReviewOf == "" {
		return nil, nil
	}
	tasks, err := tasksOf(ch.view, ch.owner, ch.task.RunID)
	return workspace.BatchOf(tasks, ch.task.ReviewOf), err
}

// between is the SQL of the messages of a chat between two sequences, each with
// the run that it belongs to: those of no run are never read. Hidden rows are
// none of anybody's business (section 6.13).
const between = ` FROM message JOIN run ON run.owner = message.owner AND run.id = message.run_id
	WHERE message.owner = ? AND message.conversation_id = ? AND message.hidden = 0 AND message.seq > ? AND message.seq <= ?`

// known is the SQL of those messages that a prompt may contain: final, not the
// agent's own, and of no later request than the task's.
const known = ` AND message.status IN ('complete', 'failed', 'interrupted') AND message.agent_id <> ? AND run.message_seq <= ?`

// transcript returns what the member has not been given yet, up to the message
// that the task answers.
func (ch *change) transcript(watermark int64) (workspace.Transcript, error) {
	args := []any{ch.owner, ch.chat.ID, watermark, ch.task.TriggerSeq, ch.task.AgentID, ch.run.messageSeq}
	ids, err := all(ch.view, scalar[string], `SELECT message.id`+between+known+` ORDER BY message.seq DESC LIMIT ?`,
		append(args, workspace.MaxExtractEntries)...)
	if err != nil {
		return workspace.Transcript{}, err
	}
	total, err := one(ch.view, scalar[int], `SELECT count(*)`+between+known, args...)
	if err != nil {
		return workspace.Transcript{}, err
	}
	messages := make([]workspace.Message, 0, len(ids))
	for _, id := range slices.Backward(ids) {
		m, err := ch.message(workspace.MessageID(id))
		if err != nil {
			return workspace.Transcript{}, err
		}
		messages = append(messages, m)
	}
	return workspace.Transcript{Messages: messages, Older: total - len(ids)}, nil
}

// knownThrough returns the watermark that the submission reaches: the message that
// it answers, or the one before the first that is unfinished or of a later
// request (section 6.13).
func (ch *change) knownThrough(watermark int64) (int64, error) {
	first, err := one(ch.view, scalar[sql.NullInt64], `SELECT min(message.seq)`+between+
		` AND (message.status NOT IN ('complete', 'failed', 'interrupted') OR run.message_seq > ?)`,
		ch.owner, ch.chat.ID, watermark, ch.task.TriggerSeq, ch.run.messageSeq)
	if err != nil {
		return 0, err
	}
	if first.Valid {
		return max(watermark, first.Int64-1), nil
	}
	return max(watermark, ch.task.TriggerSeq), nil
}
