package store

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/workspace"
)

// Draft is how far a reply has come.
type Draft struct {
	Text, Reasoning string
	Tools           []workspace.Tool
}

// Acknowledge stores that the upstream took a task's prompt: its session now
// knows the chat as far as the prompt told (section 6.13).
func (s *Store) Acknowledge(ctx context.Context, ref Ref) error {
	return s.change(ctx, ref, "storing that a prompt was taken", (*change).acknowledge)
}

// acknowledge moves the watermark of the binding, if it still is the task's.
func (ch *change) acknowledge() error {
	b, err := ch.binding()
	if err != nil || b.TaskID != ch.task.ID || b.ContextSeq >= ch.task.ContextThroughSeq {
		return err
	}
	b.ContextSeq = ch.task.ContextThroughSeq
	return ch.saveBinding(b)
}

// Stream stores how far the reply of a running task has come. A hidden row becomes
// visible with its first real text or tool (section 2.6), and what may turn out
// to be the token of silence is not shown yet (section 6.8).
func (s *Store) Stream(ctx context.Context, ref Ref, d Draft) error {
	return s.change(ctx, ref, "storing a part of a reply", func(ch *change) error {
		if err := ch.expect(workspace.TaskRunning, workspace.TaskWaiting); err != nil {
			return err
		}
		before := ch.row
		ch.draft(d)
		ch.row.Status = workspace.MessageStreaming
		return ch.saveRow(before)
	})
}

// draft shows a part of the reply in the task's row.
func (ch *change) draft(d Draft) {
	ch.row.Content, ch.row.Reasoning = ch.task.Streamed(d.Text), ch.task.Streamed(d.Reasoning)
	ch.row.Tools = append([]workspace.Tool{}, d.Tools...)
	if ch.task.MayShow(workspace.Answer{Text: d.Text, Tools: len(d.Tools)}) {
		ch.reveal()
	}
}

// Lose makes a running or waiting task uncertain, for a reason that people read;
// an uncertain one gets the newer reason (section 6.10).
func (s *Store) Lose(ctx context.Context, ref Ref, reason string) error {
	return s.change(ctx, ref, "marking a task as uncertain", func(ch *change) error { return ch.lose(reason) })
}

// Resume makes an uncertain task running again, or waiting while a question of it
// is open: its session was found executing it (section 6.10).
func (s *Store) Resume(ctx context.Context, ref Ref) error {
	return s.change(ctx, ref, "resuming a task", func(ch *change) error {
		if err := ch.expect(workspace.TaskUncertain); err != nil {
			return err
		}
		return ch.resume()
	})
}

func (ch *change) resume() error {
	ch.task.Error = ""
	if err := ch.become(workspace.TaskRunning); err != nil {
		return err
	}
	if err := ch.rowBecomes(workspace.MessageStreaming); err != nil {
		return err
	}
	open, err := ch.openQuestions()
	if err != nil || len(open) == 0 {
		return err
	}
	return ch.become(workspace.TaskWaiting)
}

// Rebind stores that the ids of a task's session have changed, if the session
// still is the task's. All earlier ids stay protected (section 2.11).
func (s *Store) Rebind(ctx context.Context, ref Ref, session Session) error {
	return s.change(ctx, ref, "storing a session's new ids", func(ch *change) error {
		b, err := ch.binding()
		if err != nil || b.TaskID != ch.task.ID {
			return err
		}
		return ch.saveBinding(session.on(b))
	})
}

// SaveUsage stores how full the context of a conversation is and tells of it; the
// same as before changes nothing (section 2.16).
func (s *Store) SaveUsage(ctx context.Context, owner workspace.OwnerID, id workspace.ConversationID, usage workspace.ContextUsage) error {
	return s.write(ctx, owner, "storing the usage of a context", func(t *tx) error {
		data, err := encode(usage)
		if err != nil {
			return err
		}
		n, err := t.exec(`INSERT INTO context_usage (owner, conversation_id, data) VALUES (?, ?, ?)
			ON CONFLICT (owner, conversation_id) DO UPDATE SET data = excluded.data WHERE data <> excluded.data`, owner, id, data)
		if err != nil || n == 0 {
			return err
		}
		return t.changed(workspace.ContextChanged(id, jsontext.Value(data)))
	})
}
