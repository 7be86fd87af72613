package store

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/workspace"
)

// Ending is how a task ended, as the upstream or the runtime has it.
type Ending struct {
	// Status is complete, failed or interrupted. A complete answer may yet be
	// found to be none, which fails the task (section 6.8).
	Status workspace.TaskStatus
	// Draft is the answer, or what there was of it.
	Draft
	// Error says why, for people: of the task and its row, unless Note.
	Error string
	// Note says that Error is a remark on an answer that is complete all the same.
	Note bool
	// Proven says that the upstream is known to have taken the prompt.
	Proven bool
	// Hold leaves the task unplanned, until [Store.PlanRun].
	Hold bool
}

// Finish ends a task, its row and its questions, and plans what follows, all at
// once (sections 6.2 and 6.8). It returns the row as it is then, or one without
// an id. A task that is over is stale: what comes late changes nothing.
func (s *Store) Finish(ctx context.Context, ref Ref, e Ending) (row workspace.Message, err error) {
	err = s.change(ctx, ref, "finishing a task", func(ch *change) error {
		if err := ch.expect(workspace.TaskRunning, workspace.TaskWaiting, workspace.TaskUncertain); err != nil {
			return err
		}
		if e.Proven {
			if err := ch.acknowledge(); err != nil {
				return err
			}
		}
		if err := ch.finish(e); err != nil {
			return err
		}
		row = ch.row
		return nil
	})
	return row, err
}

func (ch *change) finish(e Ending) error {
	verdict := ch.judge(e)
	if err := ch.endRow(verdict, e); err != nil {
		return err
	}
	if err := ch.closeQuestions(); err != nil {
		return err
	}
	ch.task.Silent, ch.task.Error = verdict.Silent, verdict.Error
	if e.Hold && verdict.Status == workspace.TaskComplete && !verdict.Silent {
		return ch.become(verdict.Status)
	}
	return ch.endNow(verdict.Status)
}

// judge decides what becomes of the answer: by the rules if it is complete, and
// else it is kept as far as it came, without the token of silence.
func (ch *change) judge(e Ending) workspace.Verdict {
	if e.Status != workspace.TaskComplete {
		text := workspace.StripMarkers(ch.task.Streamed(e.Text))
		reasoning := workspace.StripMarkers(ch.task.Streamed(e.Reasoning))
		return workspace.Verdict{Status: e.Status, Text: text, Reasoning: reasoning, Error: e.Error}
	}
	return workspace.Accept(ch.task, workspace.Answer{
		Text: e.Text, Reasoning: e.Reasoning, Tools: len(e.Tools), Attachments: len(ch.row.Attachments),
	})
}

// rowStatus are the final states of a row by those of its task.
var rowStatus = map[workspace.TaskStatus]workspace.MessageStatus{
	workspace.TaskComplete:    workspace.MessageComplete,
	workspace.TaskFailed:      workspace.MessageFailed,
	workspace.TaskInterrupted: workspace.MessageInterrupted,
}

// endRow ends the row of the task. A failure is always seen, also of a task that
// had no row yet (section 7.3); silence and an interruption before there was
// anything to see never are.
func (ch *change) endRow(v workspace.Verdict, e Ending) error {
	if ch.row.ID == "" {
		if v.Status != workspace.TaskFailed {
			return nil
		}
		return ch.addFailure(v)
	}
	before := ch.row
	ch.row.Content, ch.row.Reasoning, ch.row.Error = v.Text, v.Reasoning, v.Error
	ch.row.Status = rowStatus[v.Status]
	if v.Status == workspace.TaskComplete && e.Note {
		ch.row.Error = e.Error
	}
	var err error
	if ch.row.Tools, err = closedTools(e.Tools, v.Status); err != nil {
		return err
	}
	if !v.Silent && (v.Status != workspace.TaskInterrupted || !ch.row.IsEmpty()) {
		ch.reveal()
	}
	return ch.saveRow(before)
}

// addFailure stores the one visible row of a task that failed before it had one:
// of its agent in a group, of the system in a direct chat (section 11, item 11).
func (ch *change) addFailure(v workspace.Verdict) error {
	agents, err := ch.agents([]workspace.AgentID{ch.task.AgentID})
	if err != nil {
		return err
	}
	row := ch.newRow(agents[ch.task.AgentID])
	row.Status, row.Error = workspace.MessageFailed, v.Error
	if ch.chat.Kind == workspace.Direct {
		row.Role, row.AgentID, row.AgentName, row.Content = workspace.RoleSystem, "", "", v.Error
	}
	return ch.appendRow(row)
}

// closedTools closes the entries of tools that are still open (section 6.8).
func closedTools(tools []workspace.Tool, status workspace.TaskStatus) ([]workspace.Tool, error) {
	end := jsontext.Value(`"tool.complete"`)
	if status != workspace.TaskComplete {
		end = jsontext.Value(`"tool.error"`)
	}
	closed := make([]workspace.Tool, len(tools))
	for i, tool := range tools {
		members := make(map[string]jsontext.Value)
		if err := json.Unmarshal(tool, &members); err != nil {
			return nil, err
		}
		if state := string(members["status"]); state != `"tool.complete"` && state != `"tool.error"` {
			members["status"] = end
		}
		text, err := encode(members)
		if err != nil {
			return nil, err
		}
		closed[i] = workspace.Tool(text)
	}
	return closed, nil
}

// closeQuestions resolves the open questions of a task that is over.
func (ch *change) closeQuestions() error {
	open, err := ch.openQuestions()
	if err != nil {
		return err
	}
	for _, i := range open {
		if err := ch.saveInteraction(i.Close()); err != nil {
			return err
		}
	}
	return nil
}

// AttachProduced puts files that an agent made into the library and attaches them
// to its reply (section 7.6). Files beyond the quota are refused as uploads are.
func (s *Store) AttachProduced(ctx context.Context, ref Ref, files []NewFile, quota Quota) error {
	return s.change(ctx, ref, "attaching the files of a reply", func(ch *change) error {
		before := ch.row
		ordinal := len(before.Attachments)
		ch.row.Attachments = append([]workspace.File{}, before.Attachments...)
		for i, f := range files {
			stored, err := ch.addFile(f)
			if err != nil {
				return err
			}
			if err := ch.linkProduced(stored.File, ordinal+i); err != nil {
				return err
			}
		}
		if err := ch.checkQuota(quota); err != nil {
			return err
		}
		return ch.saveRow(before)
	})
}

// linkProduced links a new file to the task's row.
func (ch *change) linkProduced(f workspace.File, ordinal int) error {
	f.ConversationID, f.MessageID = ch.chat.ID, ch.row.ID
	_, err := ch.exec(`INSERT INTO message_file (owner, message_id, ordinal, file_id) VALUES (?, ?, ?, ?)`, ch.owner, ch.row.ID, ordinal, f.ID)
	if err != nil {
		return err
	}
	_, err = ch.exec(`UPDATE file SET conversation_id = ?, message_id = ? WHERE owner = ? AND id = ?`, f.ConversationID, f.MessageID, ch.owner, f.ID)
	if err != nil {
		return err
	}
	ch.row.Attachments = append(ch.row.Attachments, f)
	return ch.changed(workspace.FilesChanged(f))
}
