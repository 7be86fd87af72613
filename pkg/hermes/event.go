package hermes

import "time"

// Event is one of a turn's events (section 7.2). [Completed], [Failed],
// [Interrupted], [NotAccepted] and [Lost] are terminal: exactly one of them comes,
// and nothing after it.
type Event interface{ event() }

// Started says that the turn executes.
type Started struct{}

// Delta is more text of the answer's preview. The answer is in [Completed].
type Delta struct{ Text string }

// Preview replaces the whole of the preview after a reconnect.
type Preview struct{ Text string }

// Reasoning is text that is no part of the answer.
type Reasoning struct{ Text string }

// Break parts the text before a tool from the text after it: a blank line.
type Break struct{}

// Tool tells of one use of a tool; later events of the same ID update earlier
// ones. What the tool saw and returned is not kept.
type Tool struct {
	ID, Name, Summary string
	Done              bool
	Duration          time.Duration
}

// Asked is a question to a person. The same question comes once, however often
// the upstream repeats it.
type Asked struct{ Question Question }

// Answered says that a question is no longer open, and why; the reason is the
// upstream's and may be empty.
type Answered struct{ ID, Reason string }

// Rebound says that the session's ids changed.
type Rebound struct{ State State }

// Used is the session's context usage.
type Used struct{ Usage Usage }

// Disconnected says that the connection was lost and is being restored. Until
// [Reconnected] the turn is uncertain.
type Disconnected struct{ Err *Error }

// Reconnected says that the connection was restored.
type Reconnected struct{ State State }

// Completed is the turn's answer. Truncated says that it was cut by a limit of
// the model or ended early; Warning is the upstream's note for people.
type Completed struct {
	Text      string
	Truncated bool
	Warning   string
	Usage     Usage
}

// Failed says that the turn failed, definitely.
type Failed struct{ Err *Error }

// Interrupted says that the turn was interrupted, with the text that it had by then.
type Interrupted struct{ Text string }

// NotAccepted says that the prompt never reached the session.
type NotAccepted struct{}

// Lost says that nothing is known of the turn: it may yet execute or have been
// completed. Only another look by [OpenRequest.Turn] can tell.
type Lost struct{ Err *Error }

func (Started) event()      {}
func (Delta) event()        {}
func (Preview) event()      {}
func (Reasoning) event()    {}
func (Break) event()        {}
func (Tool) event()         {}
func (Asked) event()        {}
func (Answered) event()     {}
func (Rebound) event()      {}
func (Used) event()         {}
func (Disconnected) event() {}
func (Reconnected) event()  {}
func (Completed) event()    {}
func (Failed) event()       {}
func (Interrupted) event()  {}
func (NotAccepted) event()  {}
func (Lost) event()         {}

// Terminal reports whether nothing comes after event.
func Terminal(event Event) bool {
	switch event.(type) {
	case Completed, Failed, Interrupted, NotAccepted, Lost:
		return true
	default:
		return false
	}
}

// QuestionKind is what a question asks for.
type QuestionKind string

// The kinds of questions that people answer (section 2.9).
const (
	Approval      QuestionKind = "approval"
	Clarification QuestionKind = "clarification"
)

// Question is a question of a session to people (section 6.11).
type Question struct {
	// ID is the upstream's, unique in its session.
	ID   string
	Kind QuestionKind
	// Text is what is asked, and Detail what it is about: for an approval the
	// command.
	Text   string
	Detail string
	// Choices are those of an approval, never [Choice] always; a clarification
	// has Items instead.
	Choices []Choice
	Items   []Item
}

// Item is one of the questions of a clarification. Choices may be empty, and
// free text is always allowed.
type Item struct {
	ID       string
	Text     string
	Choices  []string
	Multiple bool
}

// Choice is the answer to an approval.
type Choice string

// The choices that relay sends. It never sends "always": that would outlive the
// session.
const (
	Once       Choice = "once"
	ForSession Choice = "session"
	Deny       Choice = "deny"
)

// Answers are the answers to a clarification, by the items' ids. An item without
// values is skipped; more than one value is for items that allow it.
type Answers map[string][]string
