package workspace

import (
	"bytes"
	"regexp"
	"strings"
)

// SilenceToken is what an agent answers to say that it has nothing to say. It
// is private to this server and versioned (section 6.8).
const SilenceToken = "[[relay-silent:v1]]"

// silenceStem is how much of the token must stand at the end of a text for it to
// be a fragment of the token and not a person's brackets.
const silenceStem = "[[relay-silent"

// Texts that stand in for a reply.
const (
	// FallbackReply is what an administrator says who had nothing to say
	// (section 6.8, step 3).
	FallbackReply = "我还不清楚具体要做什么，请补充明确的目标、范围，或指定由哪位成员处理。"
	// NoReply is the error of a reply that holds nothing (section 6.8, step 4).
	NoReply = "未收到有效回复"
)

// Answer is what an upstream reported as complete.
type Answer struct {
	Text        string
	Reasoning   string
	Tools       int
	Attachments int
}

// Verdict is what becomes of an answer: how its task ends, whether its row stays
// hidden, and what the row says.
type Verdict struct {
	Status    TaskStatus
	Silent    bool
	Text      string
	Reasoning string
	// Error says why the task failed, or is empty.
	Error string
}

// Accept decides about an answer to a task in the order of section 6.8. Only an
// automatic task may be silent; a required one is not, unless the user answered
// a question of it.
func Accept(t Task, a Answer) Verdict {
	text, reasoning := StripMarkers(a.Text), StripMarkers(a.Reasoning)
	bare := a.Tools == 0 && a.Attachments == 0
	nothing := trim(text) == "" || trim(text) == SilenceToken
	mayBeSilent := t.ReplyMode == ReplyAutomatic && (!t.RequiredReply || t.HadInteraction)
	if mayBeSilent && nothing && bare {
		return Verdict{Status: TaskComplete, Silent: true}
	}
	if t.ReplyMode == ReplyAutomatic {
		text, reasoning = stripSilence(text), stripSilence(reasoning)
	}
	if t.RequiredReply && trim(text) == "" {
		text = FallbackReply
	}
	if trim(text) == "" && bare {
		return Verdict{Status: TaskFailed, Text: text, Reasoning: reasoning, Error: NoReply}
	}
	return Verdict{Status: TaskComplete, Text: text, Reasoning: reasoning}
}

// stripSilence removes the token, and what an interrupted stream left of it at
// the end.
func stripSilence(text string) string {
	stripped := trim(withoutToken(text))
	stripped = stripped[:len(stripped)-tokenEnd(stripped, len(silenceStem))]
	if len(stripped) == len(trim(text)) {
		return text
	}
	return trim(stripped)
}

// withoutToken removes every token, and those that come to be by a removal.
func withoutToken(text string) string {
	if !strings.Contains(text, SilenceToken) {
		return text
	}
	kept := make([]byte, 0, len(text))
	for i := range len(text) {
		kept = append(kept, text[i])
		if bytes.HasSuffix(kept, []byte(SilenceToken)) {
			kept = kept[:len(kept)-len(SilenceToken)]
		}
	}
	return string(kept)
}

// tokenEnd returns how many bytes at the end of text are the beginning of the
// token, without being all of it; less than the given number count as none.
func tokenEnd(text string, least int) int {
	for n := min(len(SilenceToken)-1, len(text)); n >= least; n-- {
		if strings.HasSuffix(text, SilenceToken[:n]) {
			return n
		}
	}
	return 0
}

// Streamed returns how much of the text of a running task may be shown: all of
// it, but for an automatic task without the token and without an end that may
// still grow into one, so that the token never flashes up (section 6.8).
func (t Task) Streamed(text string) string {
	if t.ReplyMode != ReplyAutomatic {
		return text
	}
	text = withoutToken(text)
	return text[:len(text)-tokenEnd(text, 1)]
}

// MayShow reports whether a hidden row whose stream has come this far may become
// visible: it has text that can no longer turn out to be the token, or a tool
// call, or an attachment (sections 2.6 and 6.8).
func (t Task) MayShow(a Answer) bool {
	return a.Tools > 0 || a.Attachments > 0 || trim(t.Streamed(a.Text)) != ""
}

// StartsHidden reports whether the row of a task starts hidden: when the task
// may end in silence (section 2.6).
func (t Task) StartsHidden() bool { return t.ReplyMode == ReplyAutomatic && !t.RequiredReply }

var runMarker = regexp.MustCompile(`\[relay-run:[0-9A-Fa-f-]+:[0-9A-Fa-f-]+\]`)

// Marker returns what stands in a submission, and nowhere else, to find it again
// in the history of its session: unique to the run and the reply's row
// (section 7.4).
func Marker(run RunID, reply MessageID) string {
	return "[relay-run:" + string(run) + ":" + string(reply) + "]"
}

// StripMarkers removes markers that an agent echoed.
func StripMarkers(text string) string { return runMarker.ReplaceAllLiteralString(text, "") }
