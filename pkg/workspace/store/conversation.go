package store

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/workspace"
)

// ConversationList is all conversations of an owner, and the cursor from which
// the log tells what happens to them next.
type ConversationList struct {
	Conversations []workspace.ConversationSummary
	// Cursor is the owner's highest event sequence at the moment of the list.
	Cursor int64
}

// Conversations returns the owner's conversations in the order of section 3.2,
// archived ones included, with the cursor of the same snapshot.
func (s *Store) Conversations(ctx context.Context, owner workspace.OwnerID) (list ConversationList, err error) {
	err = s.read(ctx, "listing conversations", func(v view) error {
		list.Cursor, err = one(v, scalar[int64], `SELECT coalesce(max(seq), 0) FROM event WHERE owner = ?`, owner)
		if err != nil {
			return err
		}
		list.Conversations, err = all(v, scanShownChat,
			shownChat+`ORDER BY pinned DESC, coalesce(last_message_at, created_at) DESC, id`, owner)
		return err
	})
	return list, err
}

func scanShownChat(r row) (chat, error) {
	c, err := scanChat(r)
	c.Conversation = c.Public()
	return c, err
}

// ConversationDetail is what a client shows when it opens a chat (section 3.2).
type ConversationDetail struct {
	Conversation workspace.ConversationSummary
	// Messages are the newest 100 visible ones, ascending.
	Messages         []workspace.Message
	HiddenMessageIDs []workspace.MessageID
	// Run is the active run, or nil.
	Run *workspace.Run
	// Interactions are the unresolved ones in the order of their creation.
	Interactions []workspace.Interaction
	// Context is the usage record, or nil.
	Context jsontext.Value
}

// Conversation returns the detail of a conversation, all of one moment.
func (s *Store) Conversation(ctx context.Context, owner workspace.OwnerID, id workspace.ConversationID) (d ConversationDetail, err error) {
	err = s.read(ctx, "reading a conversation", func(v view) error {
		d, err = detail(v, owner, id)
		return err
	})
	return d, err
}

func detail(v view, owner workspace.OwnerID, id workspace.ConversationID) (d ConversationDetail, err error) {
	if d.Conversation, err = found(one(v, scanShownChat, shownChat+`AND id = ?`, owner, id)); err != nil {
		return d, err
	}
	if d.Messages, err = history(v, owner, id, newest, workspace.HistoryPage); err != nil {
		return d, err
	}
	d.HiddenMessageIDs, err = all(v, scalar[workspace.MessageID],
		`SELECT id FROM message WHERE owner = ? AND conversation_id = ? AND hidden = 1 ORDER BY id`, owner, id)
	if err != nil {
		return d, err
	}
	if d.Interactions, err = all(v, scanInteraction, `SELECT `+interactionColumns+` FROM interaction
		WHERE owner = ? AND conversation_id = ? AND resolved = 0 ORDER BY created_at, id`, owner, id); err != nil {
		return d, err
	}
	usage, _, err := maybe(one(v, scalar[[]byte], `SELECT data FROM context_usage WHERE owner = ? AND conversation_id = ?`, owner, id))
	if err != nil || d.Conversation.ActiveRunID == "" {
		d.Context = usage
		return d, err
	}
	d.Context = usage
	run, err := one(v, scanRun, `SELECT `+runColumns+` FROM run WHERE owner = ? AND id = ?`, owner, d.Conversation.ActiveRunID)
	d.Run = &run.Run
	return d, err
}

// CreateGroup creates a group (section 3.2).
func (s *Store) CreateGroup(ctx context.Context, owner workspace.OwnerID, in workspace.NewGroup) (c workspace.ConversationSummary, err error) {
	err = s.write(ctx, owner, "creating a group", func(t *tx) error {
		c, err = t.createGroup(in)
		return err
	})
	return c, err
}

func (t *tx) createGroup(in workspace.NewGroup) (c chat, err error) {
	agents, err := t.agents(parsed(in.MemberIDs.Or(nil)))
	if err != nil {
		return c, err
	}
	if c.Conversation, err = workspace.CreateGroup(in, agents, workspace.ConversationID(t.newID()), t.now); err != nil {
		return c, err
	}
	if c.Avatar, err = t.intern(c.Avatar); err != nil {
		return c, err
	}
	if err := t.insertChat(c); err != nil {
		return c, err
	}
	if err := t.chatChanged(c); err != nil {
		return c, err
	}
	return t.shown(c)
}

// parsed returns those of the ids that are ids, in lower case. What is none the
// rules refuse.
func parsed[ID ~string](ids []ID) []ID {
	valid := make([]ID, 0, len(ids))
	for _, id := range ids {
		if known, ok := workspace.ParseID[ID](string(id)); ok {
			valid = append(valid, known)
		}
	}
	return valid
}

// EditConversation edits a conversation (section 3.2). Queued tasks of removed
// members end as interrupted, and archiving a group stops its runs. It returns
// what still runs and must be interrupted upstream.
func (s *Store) EditConversation(ctx context.Context, owner workspace.OwnerID, id workspace.ConversationID, p workspace.ConversationPatch) (c workspace.ConversationSummary, stopped Stopped, err error) {
	err = s.write(ctx, owner, "editing a conversation", func(t *tx) error {
		c, stopped, err = t.editConversation(id, p)
		return err
	})
	return c, stopped, err
}

func (t *tx) editConversation(id workspace.ConversationID, p workspace.ConversationPatch) (c chat, stopped Stopped, err error) {
	if c, err = t.chat(id); err != nil {
		return c, stopped, err
	}
	agents, err := t.agents(parsed(p.MemberIDs.Or(nil)))
	if err != nil {
		return c, stopped, err
	}
	edit, err := workspace.EditConversation(c.Conversation, p, agents, t.now)
	if err != nil {
		return c, stopped, err
	}
	if edit.Changed {
		c.Conversation = edit.Conversation
		if stopped, err = t.saveEdit(&c, edit); err != nil {
			return c, stopped, err
		}
	}
	c, err = t.shown(c)
	return c, stopped, err
}

func (t *tx) saveEdit(c *chat, edit workspace.ConversationEdit) (stopped Stopped, err error) {
	if c.Avatar, err = t.intern(c.Avatar); err != nil {
		return stopped, err
	}
	if edit.StopRuns {
		stopped, err = t.stopAll(c)
	} else if len(edit.Removed) > 0 {
		err = t.settleRemoved(c, edit.Removed)
	}
	if err != nil {
		return stopped, err
	}
	if err := t.saveChat(*c); err != nil {
		return stopped, err
	}
	return stopped, t.chatChanged(*c)
}

// MarkRead moves the read marker of a conversation, never back (section 3.4). It
// appends no event when nothing changed.
func (s *Store) MarkRead(ctx context.Context, owner workspace.OwnerID, id workspace.ConversationID, in workspace.ReadMarker) (c workspace.ConversationSummary, err error) {
	seq, err := workspace.CheckReadMarker(in)
	if err != nil {
		return c, err
	}
	err = s.write(ctx, owner, "marking messages as read", func(t *tx) error {
		c, err = t.markRead(id, seq)
		return err
	})
	return c, err
}

func (t *tx) markRead(id workspace.ConversationID, seq int64) (c chat, err error) {
	if c, err = t.chat(id); err != nil {
		return c, err
	}
	read, changed := c.MarkRead(seq)
	if changed {
		c.Conversation = read
		if c.UnreadCount, err = t.unread(c); err != nil {
			return c, err
		}
		if err := t.saveChat(c); err != nil {
			return c, err
		}
		if err := t.chatChanged(c); err != nil {
			return c, err
		}
	}
	return t.shown(c)
}

// unread counts the messages of [workspace.Message.CountsAsUnread].
func (t *tx) unread(c chat) (int, error) {
	return one(t.view, scalar[int], `SELECT count(*) FROM message WHERE owner = ? AND conversation_id = ? AND seq > ?
		AND hidden = 0 AND role <> 'user' AND status IN ('complete', 'failed', 'interrupted')`, t.owner, c.ID, c.ReadSeq)
}
