package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/newos4/relay/pkg/workspace"
)

// chat is the row of a conversation inside a write transaction: with its count
// of unread messages, and with its portrait as it is stored.
type chat = workspace.ConversationSummary

const chatColumns = `id, kind, name, member_ids, administrator_id, mode, auto_reply_ids, max_reply_rounds, archived, pinned,
	read_seq, last_seq, unread_count, last_message_at, preview, active_run_id, active_agent_id, active_run_status,
	active_agent_states, queued_message_count, created_at, updated_at, member_roles, instructions, `

// shownChat selects a conversation as clients see it.
var shownChat = `SELECT ` + chatColumns + fmt.Sprintf(expanded, "conversation") + ` FROM conversation WHERE owner = ? `

func scanChat(r row) (chat, error) {
	var c chat
	var members, automatic, roles, states string
	var lastMessageAt sql.NullInt64
	err := r.Scan((*string)(&c.ID), (*string)(&c.Kind), &c.Name, &members, (*string)(&c.AdministratorID), (*string)(&c.Mode), &automatic,
		&c.MaxReplyRounds, &c.Archived, &c.Pinned, &c.ReadSeq, &c.LastSeq, &c.UnreadCount, &lastMessageAt, &c.Preview,
		(*string)(&c.ActiveRunID), (*string)(&c.ActiveAgentID), (*string)(&c.ActiveRunStatus), &states, &c.QueuedMessageCount,
		(*int64)(&c.CreatedAt), (*int64)(&c.UpdatedAt), &roles, &c.Instructions, &c.Avatar)
	if err != nil {
		return c, err
	}
	if lastMessageAt.Valid {
		c.LastMessageAt = (*workspace.Millis)(&lastMessageAt.Int64)
	}
	c.MemberIDs = decodeIDs[workspace.AgentID](members)
	c.AutoReplyIDs = decodeIDs[workspace.AgentID](automatic)
	var statesErr, rolesErr error
	c.ActiveAgentStates, statesErr = decodeMap[workspace.AgentID, workspace.TaskStatus](states)
	if c.Kind == workspace.Group {
		c.MemberRoles, rolesErr = decodeMap[workspace.AgentID, workspace.Role](roles)
	}
	return c, errors.Join(statesErr, rolesErr)
}

// found turns a row that is not there into an error with code
// [workspace.CodeRowNotFound]: a row of somebody else is none (section 1.8).
func found[T any](value T, err error) (T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return value, workspace.Fail(workspace.CodeRowNotFound)
	}
	return value, err
}

// shown returns the conversation as clients see it.
func (t *tx) shown(c chat) (chat, error) {
	var err error
	c.Avatar, err = t.expand(t.owner, c.Avatar)
	c.Conversation = c.Public()
	return c, err
}

func (t *tx) chat(id workspace.ConversationID) (chat, error) {
	return found(one(t.view, scanChat, `SELECT `+chatColumns+`avatar FROM conversation WHERE owner = ? AND id = ?`, t.owner, id))
}

// directChat returns the one direct chat of an agent.
func (t *tx) directChat(agent workspace.AgentID) (chat, error) {
	return found(one(t.view, scanChat, `SELECT `+chatColumns+`avatar FROM conversation WHERE owner = ? AND agent_id = ?`, t.owner, agent))
}

// encodedChat holds the columns of a conversation that are JSON.
type encodedChat struct{ members, automatic, roles, states string }

func encodeChat(c chat) (e encodedChat, err error) {
	e.members, e.automatic = encodeIDs(c.MemberIDs), encodeIDs(c.AutoReplyIDs)
	e.roles, e.states = "{}", "{}"
	if len(c.MemberRoles) > 0 {
		if e.roles, err = encode(c.MemberRoles); err != nil {
			return e, err
		}
	}
	if len(c.ActiveAgentStates) > 0 {
		e.states, err = encode(c.ActiveAgentStates)
	}
	return e, err
}

func (t *tx) insertChat(c chat) error {
	e, err := encodeChat(c)
	if err != nil {
		return err
	}
	var agent any // NULL in a group
	if c.Kind == workspace.Direct {
		agent = c.AdministratorID
	}
	_, err = t.exec(`INSERT INTO conversation (owner, id, kind, agent_id, name, member_ids, administrator_id, mode, auto_reply_ids,
		max_reply_rounds, archived, pinned, read_seq, last_seq, unread_count, last_message_at, preview, active_run_id, active_agent_id,
		active_run_status, active_agent_states, queued_message_count, created_at, updated_at, member_roles, instructions, avatar)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.owner, c.ID, c.Kind, agent, c.Name, e.members, c.AdministratorID, c.Mode, e.automatic,
		c.MaxReplyRounds, c.Archived, c.Pinned, c.ReadSeq, c.LastSeq, c.UnreadCount, c.LastMessageAt, c.Preview, c.ActiveRunID, c.ActiveAgentID,
		c.ActiveRunStatus, e.states, c.QueuedMessageCount, c.CreatedAt, c.UpdatedAt, e.roles, c.Instructions, c.Avatar)
	return err
}

// saveChat writes the whole row but what never changes.
func (t *tx) saveChat(c chat) error {
	e, err := encodeChat(c)
	if err != nil {
		return err
	}
	_, err = t.exec(`UPDATE conversation SET name = ?, member_ids = ?, administrator_id = ?, mode = ?, auto_reply_ids = ?,
		max_reply_rounds = ?, archived = ?, pinned = ?, read_seq = ?, last_seq = ?, unread_count = ?, last_message_at = ?, preview = ?,
		active_run_id = ?, active_agent_id = ?, active_run_status = ?, active_agent_states = ?, queued_message_count = ?,
		updated_at = ?, member_roles = ?, instructions = ?, avatar = ? WHERE owner = ? AND id = ?`,
		c.Name, e.members, c.AdministratorID, c.Mode, e.automatic,
		c.MaxReplyRounds, c.Archived, c.Pinned, c.ReadSeq, c.LastSeq, c.UnreadCount, c.LastMessageAt, c.Preview,
		c.ActiveRunID, c.ActiveAgentID, c.ActiveRunStatus, e.states, c.QueuedMessageCount,
		c.UpdatedAt, e.roles, c.Instructions, c.Avatar, t.owner, c.ID)
	return err
}

func (t *tx) chatChanged(c chat) error {
	return t.changed(workspace.ConversationChanged(c.Conversation))
}
