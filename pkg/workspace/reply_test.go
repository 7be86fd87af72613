package workspace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that an answer is judged in the order of section 6.8 (scenarios 44, 49
// and 52).
func TestAccept(t *testing.T) {
	t.Parallel()
	const token = workspace.SilenceToken
	automatic := workspace.Task{ReplyMode: workspace.ReplyAutomatic}
	required := workspace.Task{ReplyMode: workspace.ReplyAutomatic, RequiredReply: true}
	asked := workspace.Task{ReplyMode: workspace.ReplyAutomatic, RequiredReply: true, HadInteraction: true}
	mentioned := workspace.Task{ReplyMode: workspace.ReplyMentioned}
	silent := workspace.Verdict{Status: workspace.TaskComplete, Silent: true}
	says := func(text string) workspace.Verdict {
		return workspace.Verdict{Status: workspace.TaskComplete, Text: text}
	}
	failed := workspace.Verdict{Status: workspace.TaskFailed, Error: workspace.NoReply}
	tests := map[string]struct {
		task   workspace.Task
		answer workspace.Answer
		want   workspace.Verdict
	}{
		"automatic with the token (scenario 49)": {automatic, workspace.Answer{Text: " " + token + "\n", Reasoning: "why"}, silent},
		"automatic with nothing":                 {automatic, workspace.Answer{}, silent},
		"automatic with a tool call":             {automatic, workspace.Answer{Text: token, Tools: 1}, says("")},
		"automatic with text":                    {automatic, workspace.Answer{Text: "好"}, says("好")},
		"automatic with text and the token":      {automatic, workspace.Answer{Text: "好\n" + token}, says("好")},
		"automatic with a piece of the token":    {automatic, workspace.Answer{Text: "好 [[relay-silent:"}, says("好")},
		"automatic with brackets of its own":     {automatic, workspace.Answer{Text: "好 [["}, says("好 [[")},
		"required with the token (scenario 44)":  {required, workspace.Answer{Text: token}, says(workspace.FallbackReply)},
		"required with nothing (scenario 44)":    {required, workspace.Answer{}, says(workspace.FallbackReply)},
		"required after the user answered":       {asked, workspace.Answer{Text: token}, silent},
		"mentioned with the token (scenario 52)": {mentioned, workspace.Answer{Text: token}, says(token)},
		"mentioned with nothing":                 {mentioned, workspace.Answer{Text: " \n"}, workspace.Verdict{Status: workspace.TaskFailed, Text: " \n", Error: workspace.NoReply}},
		"mentioned with an attachment":           {mentioned, workspace.Answer{Attachments: 1}, says("")},
		"mentioned with the marker alone":        {mentioned, workspace.Answer{Text: workspace.Marker(id[workspace.RunID](1), id[workspace.MessageID](2))}, failed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, workspace.Accept(tt.task, tt.answer)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// Ensure that a streamed token is never shown, not even a part of it, wherever
// the stream is cut (section 6.8).
func TestStreamNeverShowsTheToken(t *testing.T) {
	t.Parallel()
	task := workspace.Task{ReplyMode: workspace.ReplyAutomatic}
	for i := range len(workspace.SilenceToken) + 1 {
		for _, before := range []string{"", " \n", "好 "} {
			text := before + workspace.SilenceToken[:i]
			if got := task.Streamed(text); got != before {
				t.Fatalf("%q is shown as %q", text, got)
			}
			if got, want := task.MayShow(workspace.Answer{Text: text}), strings.TrimSpace(before) != ""; got != want {
				t.Fatalf("%q: may show = %v", text, got)
			}
		}
	}
	if !task.MayShow(workspace.Answer{Text: "[[relay-other"}) || !task.MayShow(workspace.Answer{Tools: 1}) || !task.MayShow(workspace.Answer{Attachments: 1}) {
		t.Error("a row that is not silent stays hidden")
	}
	mentioned := workspace.Task{ReplyMode: workspace.ReplyMentioned}
	if got := mentioned.Streamed(workspace.SilenceToken); got != workspace.SilenceToken {
		t.Errorf("a mentioned member shows %q", got)
	}
}

// Ensure that only rows that may end in silence start hidden (section 2.6).
func TestStartsHidden(t *testing.T) {
	t.Parallel()
	for task, want := range map[workspace.ReplyMode]map[bool]bool{
		workspace.ReplyAutomatic: {false: true, true: false},
		workspace.ReplyMentioned: {false: false, true: false},
	} {
		for required, hidden := range want {
			if got := (workspace.Task{ReplyMode: task, RequiredReply: required}).StartsHidden(); got != hidden {
				t.Errorf("%s, required %v: hidden = %v", task, required, got)
			}
		}
	}
}

// Ensure that the marker is unique to run and row, and never stays in a reply
// (section 7.4).
func TestMarker(t *testing.T) {
	t.Parallel()
	one := workspace.Marker(id[workspace.RunID](1), id[workspace.MessageID](2))
	if one == workspace.Marker(id[workspace.RunID](2), id[workspace.MessageID](1)) {
		t.Error("two tasks have the same marker")
	}
	if got := workspace.StripMarkers("前" + one + "后"); got != "前后" {
		t.Errorf("stripped: %q", got)
	}
}

// FuzzAccept holds for any answer: of an automatic task the token is never
// shown, a silent one says nothing, and a complete one that is not silent shows
// something.
func FuzzAccept(f *testing.F) {
	f.Add("好 "+workspace.SilenceToken, "", true, false, byte(0))
	f.Add("[[relay-silent:v1[[relay-silent:v1]]]]", "x", true, true, byte(1))
	f.Fuzz(func(t *testing.T, text, reasoning string, isAutomatic, isRequired bool, tools byte) {
		task := workspace.Task{ReplyMode: workspace.ReplyMentioned, RequiredReply: isAutomatic && isRequired}
		if isAutomatic {
			task.ReplyMode = workspace.ReplyAutomatic
		}
		v := workspace.Accept(task, workspace.Answer{Text: text, Reasoning: reasoning, Tools: int(tools)})
		if isAutomatic && (strings.Contains(v.Text, workspace.SilenceToken) || strings.Contains(v.Reasoning, workspace.SilenceToken)) {
			t.Fatalf("%q is accepted as %+v", text, v)
		}
		if v.Silent && (v.Text != "" || v.Reasoning != "" || task.RequiredReply) {
			t.Fatalf("%q is accepted as silent: %+v", text, v)
		}
		shows := strings.TrimSpace(strings.ReplaceAll(v.Text, "\ufeff", "")) != "" || tools > 0
		if v.Status == workspace.TaskComplete && !v.Silent && !shows {
			t.Fatalf("%q is accepted with nothing to show: %+v", text, v)
		}
	})
}
