package workspace

import (
	"errors"
	"fmt"
)

// Turn is a task that is to be created: all that the rules decide about it.
type Turn struct {
	AgentID       AgentID
	Depth         int
	BatchID       BatchID
	ReviewOf      BatchID
	ReplyMode     ReplyMode
	RequiredReply bool
	TriggerSeq    int64
}

// forEach returns the turn once for each of the agents.
func (t Turn) forEach(agents []AgentID) []Turn {
	turns := make([]Turn, len(agents))
	for i, id := range agents {
		t.AgentID = id
		turns[i] = t
	}
	return turns
}

// Task returns the queued task of a turn in a run.
func (t Turn) Task(owner OwnerID, run Run, id TaskID, now Millis) Task {
	return Task{
		ID:             id,
		Owner:          owner,
		RunID:          run.ID,
		ConversationID: run.ConversationID,
		AgentID:        t.AgentID,
		MessageID:      run.MessageID,
		TriggerSeq:     t.TriggerSeq,
		Depth:          t.Depth,
		BatchID:        t.BatchID,
		ReviewOf:       t.ReviewOf,
		ReplyMode:      t.ReplyMode,
		RequiredReply:  t.RequiredReply,
		Status:         TaskQueued,
		CreatedAt:      now,
	}
}

// ErrStale is the error of a change that was meant for another state or another
// attempt of a task. What caused it came too late and is to be dropped.
var ErrStale = errors.New("the task is not in the state or attempt that the change was made for")

// Become returns the task in its next state. It refuses with [ErrStale] when
// the task is not in the expected state and attempt, and with another error
// when section 6.2 has no such transition, which is a bug. Going back to the
// queue needs a task that was never submitted: what may have been executed is
// never sent again (section 6.10). Starting counts the next attempt.
func (t Task) Become(next, expected TaskStatus, attempt int) (Task, error) {
	if t.Status != expected || t.Attempt != attempt {
		return t, fmt.Errorf("move task %s from %s to %s in attempt %d, but it is %s in attempt %d: %w",
			t.ID, expected, next, attempt, t.Status, t.Attempt, ErrStale)
	}
	if !t.Status.CanBecome(next) {
		return t, fmt.Errorf("move task %s from %s to %s: there is no such transition", t.ID, t.Status, next)
	}
	if next == TaskQueued && t.Submitted {
		return t, fmt.Errorf("move task %s back to the queue: it was submitted", t.ID)
	}
	if t.Status == TaskQueued && next == TaskRunning {
		t.Attempt++
	}
	t.Status = next
	return t, nil
}

// Snapshot returns how a group is set now, for a task that starts.
func Snapshot(c Conversation, members map[AgentID]Agent) Launch {
	return Launch{Mode: c.Mode, AdministratorID: c.AdministratorID, Roster: Roster(c, members)}
}

// FirstAgent returns who executes a queued task that is about to start. The
// first task of a run in administrator mode goes to the present administrator,
// all others to the agent they were created for (section 6.4).
func (t Task) FirstAgent(c Conversation) AgentID {
	first := c.Kind == Group && c.Mode == ModeHost && t.Depth == 0 && t.RequiredReply && t.CurrentMessageID == "" && !t.Submitted
	if first {
		return c.AdministratorID
	}
	return t.AgentID
}

// MayStart reports whether a queued task may still be executed: its chat is not
// archived, nobody stops it, and its agent still is a member. One that may not
// ends as interrupted without a call upstream (sections 5.6 and 6.4).
func (t Task) MayStart(c Conversation, run Run) bool {
	return !c.Archived && !run.StopRequested && !t.CancelRequested && c.HasMember(t.FirstAgent(c))
}
