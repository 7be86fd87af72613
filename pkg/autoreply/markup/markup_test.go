package markup_test

import (
	"testing"

	"github.com/newos4/relay/pkg/autoreply/markup"
)

// Ensures that reasoning and calls written as text never reach a reader, also
// where a mark is missing, and that the words around them do.
func TestFilter_Words(t *testing.T) {
	t.Parallel()
	f := markup.New()
	for reply, want := range map[string]string{
		"plain words":                               "plain words",
		"<think>secret</think>\n words":             "words",
		"<THINK>a</THINK>x<thinking>b</thinking> y": "x y",
		"<think>never closed":                       "",
		"never opened</think> words":                "words",
		"<tool_call>{}</tool_call> words":           "words",
		"words <tool_calls>[{}":                     "words",
		"<function=read_file>{} words":              "",
		"[TOOL_CALLS] [] words":                     "",
		"<|python_tag|>x":                           "",
		"a < b and a tool_call in prose":            "a < b and a tool_call in prose",
	} {
		if got := f.Words(reply); got != want {
			t.Errorf("Words(%q) = %q, want %q", reply, got, want)
		}
	}
	if !f.HasCall("x <tool_call>") || f.HasCall("<think>x</think>") {
		t.Error("HasCall is wrong")
	}
}
