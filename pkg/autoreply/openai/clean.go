package openai

import (
	"regexp"
	"strings"
)

// cleaner takes from a reply what is not meant for the reader.
type cleaner struct {
	thought, thoughtEnd *regexp.Regexp
	call, callLike      *regexp.Regexp
}

func newCleaner() cleaner {
	return cleaner{
		thought: regexp.MustCompile(`(?is)<(?:think|thinking|thought|reasoning)>.*?(?:</(?:think|thinking|thought|reasoning)>|\z)`),
		// Some templates put the opening tag into the prompt, so that a reply
		// begins with a thought and has only its end.
		thoughtEnd: regexp.MustCompile(`(?is)\A.*</(?:think|thinking|thought|reasoning)>`),
		call:       regexp.MustCompile(`(?is)<(?:tool|function)_calls?\b[^>]*>.*?(?:</(?:tool|function)_calls?>|\z)`),
		callLike: regexp.MustCompile(`(?i)</?\|?(?:tool|function)_calls?\b|<function=|` +
			`\[TOOL_CALLS\]|<\|python_tag\|>|<｜tool▁`),
	}
}

// withoutThoughts returns text without reasoning and without white space around
// it.
func (c cleaner) withoutThoughts(text string) string {
	text = c.thought.ReplaceAllString(text, "")
	text = c.thoughtEnd.ReplaceAllString(text, "")
	return strings.TrimSpace(text)
}

// hasCall reports whether text holds a call that the server did not take out of
// it. Such a call is never made: whoever can make the model repeat a text could
// make it.
func (c cleaner) hasCall(text string) bool { return c.callLike.MatchString(text) }

// withoutCalls returns text without such calls, or "" where it cannot be told
// what belongs to them.
func (c cleaner) withoutCalls(text string) string {
	text = strings.TrimSpace(c.call.ReplaceAllString(text, ""))
	if c.hasCall(text) {
		return ""
	}
	return text
}
