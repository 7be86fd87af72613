package store

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/newos4/relay/pkg/workspace"
)

// newest is a sequence before which everything is.
const newest = math.MaxInt64

const messageColumns = `id, conversation_id, seq, role, agent_id, agent_name, run_id, task_id, hidden, status, error, created_at,
	content, reasoning, attachments, tools`

func scanMessage(r row) (workspace.Message, error) {
	var m workspace.Message
	var attachments, tools string
	err := r.Scan((*string)(&m.ID), (*string)(&m.ConversationID), &m.Seq, (*string)(&m.Role), (*string)(&m.AgentID), &m.AgentName,
		(*string)(&m.RunID), (*string)(&m.TaskID), (*bool)(&m.Hidden), (*string)(&m.Status), &m.Error, (*int64)(&m.CreatedAt),
		&m.Content, &m.Reasoning, &attachments, &tools)
	if err != nil {
		return m, err
	}
	var attachmentsErr, toolsErr error
	m.Attachments, attachmentsErr = decodeList[workspace.File](attachments)
	m.Tools, toolsErr = decodeList[workspace.Tool](tools)
	return m, errors.Join(attachmentsErr, toolsErr)
}

// Messages returns the newest visible messages with a sequence before the given
// one, ascending (section 3.3). Before 0 or less means all; limit is brought
// within 1 and 200.
func (s *Store) Messages(ctx context.Context, owner workspace.OwnerID, id workspace.ConversationID, before int64, limit int) (page []workspace.Message, err error) {
	if before <= 0 {
		before = newest
	}
	limit = min(max(limit, 1), workspace.MaxHistoryPage)
	err = s.read(ctx, "reading messages", func(v view) error {
		if err := exists(v, owner, id); err != nil {
			return err
		}
		page, err = history(v, owner, id, before, limit)
		return err
	})
	return page, err
}

// exists returns an error with code [workspace.CodeRowNotFound] unless the owner
// has the conversation.
func exists(v view, owner workspace.OwnerID, id workspace.ConversationID) error {
	_, err := found(one(v, scalar[int], `SELECT 1 FROM conversation WHERE owner = ? AND id = ?`, owner, id))
	return err
}

func history(v view, owner workspace.OwnerID, id workspace.ConversationID, before int64, limit int) ([]workspace.Message, error) {
	page, err := all(v, scanMessage, `SELECT `+messageColumns+` FROM message
		WHERE owner = ? AND conversation_id = ? AND hidden = 0 AND seq < ? ORDER BY seq DESC LIMIT ?`, owner, id, before, limit)
	slices.Reverse(page)
	return page, err
}

// addMessage stores a message that workspace.Conversation.Append has numbered.
func (t *tx) addMessage(c *chat, m workspace.Message) error {
	attachments, err := encode(m.Attachments)
	if err != nil {
		return err
	}
	tools, err := encode(m.Tools)
	if err != nil {
		return err
	}
	if m.CountsAsUnread(c.ReadSeq) {
		c.UnreadCount++
	}
	_, err = t.exec(`INSERT INTO message (owner, `+messageColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.owner, m.ID, m.ConversationID, m.Seq, m.Role, m.AgentID, m.AgentName, m.RunID, m.TaskID, bool(m.Hidden), m.Status, m.Error, m.CreatedAt,
		m.Content, m.Reasoning, attachments, tools)
	if err != nil {
		return err
	}
	return t.changed(workspace.MessageChanged(m))
}
