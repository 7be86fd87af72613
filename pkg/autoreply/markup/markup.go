// Package markup takes from a model's reply what is not meant for its reader:
// its reasoning, and calls of tools written as text. It promises that neither
// is shown, and makes no call of its own. It is pure.
package markup

import (
	"regexp"
	"strings"
)

// Filter knows the marks that models set around what they do not mean to say.
type Filter struct {
	thought, thoughtEnd *regexp.Regexp
	call, callLike      *regexp.Regexp
}

// New returns a filter.
func New() Filter {
	return Filter{
		thought: regexp.MustCompile(`(?is)<(?:think|thinking|thought|reasoning)>.*?(?:</(?:think|thinking|thought|reasoning)>|\z)`),
		// Some templates put the opening tag into the prompt, so that a reply
		// begins with a thought and has only its end.
		thoughtEnd: regexp.MustCompile(`(?is)\A.*</(?:think|thinking|thought|reasoning)>`),
		call:       regexp.MustCompile(`(?is)<(?:tool|function)_calls?\b[^>]*>.*?(?:</(?:tool|function)_calls?>|\z)`),
		callLike: regexp.MustCompile(`(?i)</?\|?(?:tool|function)_calls?\b|<function=|` +
			`\[TOOL_CALLS\]|<\|python_tag\|>|<｜tool▁`),
	}
}

// WithoutThoughts returns text without reasoning and without white space around
// it.
func (f Filter) WithoutThoughts(text string) string {
	text = f.thought.ReplaceAllString(text, "")
	text = f.thoughtEnd.ReplaceAllString(text, "")
	return strings.TrimSpace(text)
}

// HasCall reports whether text holds a call that the server did not take out of
// it. Such a call is never made: whoever can make the model repeat a text could
// make it.
func (f Filter) HasCall(text string) bool { return f.callLike.MatchString(text) }

// Words returns the words of a reply that are meant for its reader; "" where
// there are none, or where they cannot be told from the rest.
func (f Filter) Words(reply string) string { return f.WithoutCalls(f.WithoutThoughts(reply)) }

// WithoutCalls returns text without such calls, or "" where it cannot be told
// what belongs to them.
func (f Filter) WithoutCalls(text string) string {
	text = strings.TrimSpace(f.call.ReplaceAllString(text, ""))
	if f.HasCall(text) {
		return ""
	}
	return text
}
