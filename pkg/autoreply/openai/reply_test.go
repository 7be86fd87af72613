package openai_test

import (
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
)

// Ensures that reasoning never reaches the reader, and that a call in the text
// is never made: the model is asked for plain words instead, and if it has none
// there is no answer (vllm-project/vllm PR #32506, lmstudio-ai #830).
func TestAnswer_Markup(t *testing.T) {
	t.Parallel()
	const call = `{"name":"read_file","arguments":{"path":"docs/a.md"}}`
	for name, test := range map[string]struct {
		replies []string
		want    string // "" for no answer
	}{
		"thought":             {[]string{"<think>secret</think>\n\nwords"}, "words"},
		"thoughts":            {[]string{"<think>a</think>one <THINK>b</Think>two"}, "one two"},
		"nested thoughts":     {[]string{"<think>a<think>b</think>c</think>words"}, "words"},
		"only the end":        {[]string{"secret</think>words"}, "words"},
		"only the beginning":  {[]string{"words<think>secret"}, "words"},
		"only a thought":      {[]string{"<think>secret</think> "}, ""},
		"call":                {[]string{"<tool_call>" + call + "</tool_call>", "words"}, "words"},
		"call and words":      {[]string{"Let me look.<tool_call>" + call + "</tool_call>", "words"}, "words"},
		"call in a thought":   {[]string{"<think><tool_call>" + call + "</tool_call></think>words"}, "words"},
		"call twice":          {[]string{"<tool_call>" + call, "<tool_call>" + call + "</tool_call>"}, ""},
		"call, then both":     {[]string{"[TOOL_CALLS]" + call, "words <tool_call>" + call + "</tool_call>"}, "words"},
		"mistral":             {[]string{"[TOOL_CALLS] [" + call + "]", "[TOOL_CALLS] [" + call + "]"}, ""},
		"python tag":          {[]string{"<|python_tag|>" + call, "words"}, "words"},
		"deepseek":            {[]string{"<｜tool▁calls▁begin｜>" + call, "words"}, "words"},
		"llama":               {[]string{"<function=read_file>{}</function>", "words"}, "words"},
		"white space":         {[]string{" \n\t "}, ""},
		"nothing":             {[]string{""}, ""},
		"angle brackets stay": {[]string{"if a <b and c> d"}, "if a <b and c> d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, autoreplytest.Options{})
			var turns []autoreplytest.Turn
			for _, text := range test.replies {
				turns = append(turns, autoreplytest.Turn{Text: text})
			}
			f.server.Script("", turns...)
			if test.want == "" {
				f.fails(question("hello"), autoreply.ReasonNoAnswer, true)
			} else if got := f.answer(question("hello")).Text; got != test.want {
				t.Errorf("answer %q, want %q", got, test.want)
			}
			if n := len(f.server.Requests()); n != len(test.replies) || f.files.looks > 0 {
				t.Errorf("%d requests, %d looks", n, f.files.looks)
			}
		})
	}
}

// Ensures that what is no whole answer is a failure with the right reason, and
// that calls which may have been cut off are not made.
func TestAnswer_NoAnswer(t *testing.T) {
	t.Parallel()
	calls := []autoreplytest.Call{{Name: "list_files", Arguments: "{}"}}
	for name, test := range map[string]struct {
		turn   autoreplytest.Turn
		reason autoreply.Reason
		retry  bool
	}{
		"cut off":              {autoreplytest.Turn{Text: "half an ans", Finish: "length"}, autoreply.ReasonCutOff, true},
		"calls cut off":        {autoreplytest.Turn{Calls: calls, Finish: "length"}, autoreply.ReasonCutOff, true},
		"filtered":             {autoreplytest.Turn{Text: "well", Finish: "content_filter"}, autoreply.ReasonNoAnswer, false},
		"calls, then filtered": {autoreplytest.Turn{Calls: calls, Finish: "content_filter"}, autoreply.ReasonNoAnswer, false},
		"declined":             {autoreplytest.Turn{Refusal: "I won't"}, autoreply.ReasonNoAnswer, false},
		"failed":               {autoreplytest.Turn{Text: "wel", Finish: "error"}, autoreply.ReasonUnavailable, true},
		"null content":         {autoreplytest.Turn{Message: `{"content":null}`}, autoreply.ReasonNoAnswer, true},
		"only reasoning":       {autoreplytest.Turn{Message: `{"content":"","reasoning_content":"hm"}`}, autoreply.ReasonNoAnswer, true},
		"no message":           {autoreplytest.Turn{Message: `null`}, autoreply.ReasonUnavailable, true},
		"no choices":           {autoreplytest.Turn{Body: `{"choices":[]}`}, autoreply.ReasonUnavailable, true},
		"not JSON":             {autoreplytest.Turn{Body: `<html>502</html>`}, autoreply.ReasonUnavailable, true},
		"a stream":             {autoreplytest.Turn{Body: "data: {\"choices\":[]}\n\ndata: [DONE]\n"}, autoreply.ReasonUnavailable, true},
		"empty body":           {autoreplytest.Turn{Body: " "}, autoreply.ReasonUnavailable, true},
		"too large":            {autoreplytest.Turn{Text: strings.Repeat("a", 5<<20)}, autoreply.ReasonUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, autoreplytest.Options{})
			f.server.Script("", test.turn)
			f.fails(question("hello"), test.reason, test.retry)
			if f.files.looks > 0 || len(f.waits) > 0 {
				t.Errorf("%d looks, %d repetitions", f.files.looks, len(f.waits))
			}
		})
	}
}

// Ensures that a long answer is not cut, since that is for the caller to decide,
// and that broken characters are replaced.
func TestAnswer_Whole(t *testing.T) {
	t.Parallel()
	f := newFixture(t, autoreplytest.Options{})
	f.server.Script("", autoreplytest.Turn{Text: strings.Repeat("é", 9000)},
		autoreplytest.Turn{Body: `{"choices":[{"message":{"content":"a\ud800b"}}]}`})
	if got := f.answer(question("hello")).Text; len(got) != 18000 {
		t.Errorf("%d bytes, want 18000", len(got))
	}
	if got := f.answer(question("hello")).Text; got != "a\ufffdb" {
		t.Errorf("answer %q", got)
	}
}
