package workspace

import "slices"

// RunStatus is the state of a root run, which follows from its tasks (6.3).
type RunStatus string

// TaskStatus is the state of a task (6.2).
type TaskStatus string

// MessageStatus is the state of a message (2.5).
type MessageStatus string

// ResponseState is how far the answer to an interaction has come (2.9).
type ResponseState string

// The states of a run.
const (
	RunQueued      RunStatus = "queued"
	RunRunning     RunStatus = "running"
	RunWaiting     RunStatus = "waiting"
	RunUncertain   RunStatus = "uncertain"
	RunComplete    RunStatus = "complete"
	RunFailed      RunStatus = "failed"
	RunInterrupted RunStatus = "interrupted"
)

// The states of a task.
const (
	TaskQueued      TaskStatus = "queued"
	TaskRunning     TaskStatus = "running"
	TaskWaiting     TaskStatus = "waiting"
	TaskUncertain   TaskStatus = "uncertain"
	TaskComplete    TaskStatus = "complete"
	TaskFailed      TaskStatus = "failed"
	TaskInterrupted TaskStatus = "interrupted"
)

// The states of a message.
const (
	MessageQueued      MessageStatus = "queued"
	MessageStreaming   MessageStatus = "streaming"
	MessageComplete    MessageStatus = "complete"
	MessageFailed      MessageStatus = "failed"
	MessageInterrupted MessageStatus = "interrupted"
	MessageUncertain   MessageStatus = "uncertain"
)

// The states of an answer; none before the first.
const (
	ResponseNone      ResponseState = ""
	ResponseSending   ResponseState = "sending"
	ResponseSent      ResponseState = "sent"
	ResponseUncertain ResponseState = "uncertain"
)

// taskMoves is the table of section 6.2. What it does not list is a bug.
var taskMoves = map[TaskStatus][]TaskStatus{
	TaskQueued:      {TaskRunning, TaskInterrupted},
	TaskRunning:     {TaskWaiting, TaskComplete, TaskFailed, TaskInterrupted, TaskUncertain, TaskQueued},
	TaskWaiting:     {TaskRunning, TaskComplete, TaskFailed, TaskInterrupted, TaskUncertain},
	TaskUncertain:   {TaskRunning, TaskComplete, TaskFailed, TaskInterrupted},
	TaskComplete:    nil,
	TaskFailed:      nil,
	TaskInterrupted: nil,
}

// messageMoves follows from the states of the task that writes the message: a
// row is queued until the first frame, streams, and ends as its task does.
var messageMoves = map[MessageStatus][]MessageStatus{
	MessageQueued:      {MessageStreaming, MessageComplete, MessageFailed, MessageInterrupted, MessageUncertain},
	MessageStreaming:   {MessageQueued, MessageComplete, MessageFailed, MessageInterrupted, MessageUncertain},
	MessageUncertain:   {MessageStreaming, MessageComplete, MessageFailed, MessageInterrupted},
	MessageComplete:    nil,
	MessageFailed:      nil,
	MessageInterrupted: nil,
}

// responseMoves is how an answer proceeds: it is stored as sending, and either
// arrives, is lost, or is rejected, which allows another try (6.11).
var responseMoves = map[ResponseState][]ResponseState{
	ResponseNone:      {ResponseSending},
	ResponseSending:   {ResponseSent, ResponseUncertain, ResponseNone},
	ResponseUncertain: {ResponseSent},
	ResponseSent:      nil,
}

// CanBecome reports whether the table of section 6.2 has a row from s to next.
func (s TaskStatus) CanBecome(next TaskStatus) bool { return slices.Contains(taskMoves[s], next) }

// CanBecome reports whether a message may go from s to next.
func (s MessageStatus) CanBecome(next MessageStatus) bool {
	return slices.Contains(messageMoves[s], next)
}

// CanBecome reports whether an answer may go from s to next.
func (s ResponseState) CanBecome(next ResponseState) bool {
	return slices.Contains(responseMoves[s], next)
}

// CanBecome reports whether a run may go from s to next. A run's state follows
// from its tasks; all that is certain is that a final state stays.
func (s RunStatus) CanBecome(next RunStatus) bool {
	return s.valid() && next.valid() && s != next && !s.Terminal()
}

// Terminal reports whether a task in this state is over for good.
func (s TaskStatus) Terminal() bool {
	return s == TaskComplete || s == TaskFailed || s == TaskInterrupted
}

// Occupied reports whether a task in this state holds a slot (6.4).
func (s TaskStatus) Occupied() bool {
	return s == TaskRunning || s == TaskWaiting || s == TaskUncertain
}

// Terminal reports whether a run in this state is over for good.
func (s RunStatus) Terminal() bool {
	return s == RunComplete || s == RunFailed || s == RunInterrupted
}

// Terminal reports whether a message in this state changes no more.
func (s MessageStatus) Terminal() bool {
	return s == MessageComplete || s == MessageFailed || s == MessageInterrupted
}

func (s RunStatus) valid() bool {
	switch s {
	case RunQueued, RunRunning, RunWaiting, RunUncertain, RunComplete, RunFailed, RunInterrupted:
		return true
	}
	return false
}
