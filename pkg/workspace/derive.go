package workspace

import "slices"

// Derive returns the run with all that follows from its tasks: status, round,
// error and active agent (section 6.3). It is to be called in the transaction
// of every change of a task. A run without tasks stays as it is.
func (r Run) Derive(kind Kind, tasks []Task, now Millis) Run {
	if len(tasks) == 0 {
		return r
	}
	derived := r
	derived.Status = statusOf(r, kind, tasks)
	derived.ActiveAgentID = activeAgent(tasks)
	derived.Error = ""
	for _, t := range tasks {
		derived.Round = max(derived.Round, t.Depth)
	}
	troubled := func(t Task) bool { return t.Status == TaskUncertain || t.Status == TaskFailed }
	if i := slices.IndexFunc(tasks, troubled); i >= 0 {
		derived.Error = tasks[i].Error
	}
	if derived.Status != r.Status || derived.ActiveAgentID != r.ActiveAgentID ||
		derived.Error != r.Error || derived.Round != r.Round {
		derived.UpdatedAt = now
	}
	return derived
}

func statusOf(r Run, kind Kind, tasks []Task) RunStatus {
	count := make(map[TaskStatus]int)
	unplanned := 0
	for _, t := range tasks {
		count[t.Status]++
		if t.Status.Terminal() && !t.Planned {
			unplanned++
		}
	}
	live := count[TaskQueued] + count[TaskRunning] + count[TaskWaiting] + count[TaskUncertain]
	switch {
	case live == 0 && unplanned == 0:
		return finalStatus(r, kind, tasks)
	case count[TaskUncertain] > 0:
		return RunUncertain
	case count[TaskRunning] > 0:
		return RunRunning
	case count[TaskWaiting] > 0:
		return RunWaiting
	case count[TaskQueued] < len(tasks):
		return RunRunning
	}
	return RunQueued
}

func finalStatus(r Run, kind Kind, tasks []Task) RunStatus {
	ended := func(status TaskStatus, counts func(Task) bool) bool {
		return slices.ContainsFunc(tasks, func(t Task) bool { return t.Status == status && counts(t) })
	}
	required := func(t Task) bool { return t.RequiredReply }
	decisive := func(t Task) bool { return t.RequiredReply || kind == Direct }
	lives := func(t Task) bool { return t.Status != TaskInterrupted }
	switch {
	case r.StopRequested, ended(TaskInterrupted, required), !slices.ContainsFunc(tasks, lives):
		return RunInterrupted
	case ended(TaskFailed, decisive):
		return RunFailed
	}
	return RunComplete
}

// activeAgent returns who works now: the agent of the first live task that has
// left the queue, else of the first that waits in it, else nobody.
func activeAgent(tasks []Task) AgentID {
	first := func(counts func(TaskStatus) bool) AgentID {
		if i := slices.IndexFunc(tasks, func(t Task) bool { return counts(t.Status) }); i >= 0 {
			return tasks[i].AgentID
		}
		return ""
	}
	if id := first(TaskStatus.Occupied); id != "" {
		return id
	}
	return first(func(s TaskStatus) bool { return s == TaskQueued })
}

// LiveRun is a run that is not final, with its tasks and the sequence of its
// user message.
type LiveRun struct {
	Run        Run
	MessageSeq int64
	Tasks      []Task
}

// ActivityOf returns the part of a conversation that follows from its runs that
// are not final (sections 2.3 and 6.3). The active run is the one with the
// oldest user message.
func ActivityOf(live []LiveRun) Activity {
	activity := Activity{ActiveAgentStates: make(map[AgentID]TaskStatus)}
	oldest := int64(0)
	for _, l := range live {
		if activity.ActiveRunID == "" || l.MessageSeq < oldest {
			oldest = l.MessageSeq
			activity.ActiveRunID, activity.ActiveRunStatus = l.Run.ID, l.Run.Status
			activity.ActiveAgentID = l.Run.ActiveAgentID
		}
		if l.Run.Status == RunQueued {
			activity.QueuedMessageCount++
		}
		for _, t := range l.Tasks {
			if t.Status.Occupied() {
				activity.ActiveAgentStates[t.AgentID] = t.Status
			}
		}
	}
	return activity
}
