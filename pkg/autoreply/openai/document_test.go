package openai

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply/markup"
)

// Ensures that members of the wrong type are as if they were not there, so that
// one oddity of a server does not cost the rest of its response.
func TestParseDocument_WrongTypes(t *testing.T) {
	t.Parallel()
	got := parseDocument([]byte(`{"object":7,"error":null,"usage":"x","extra":1,"choices":[
		{"finish_reason":null,"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":7},{"text":"x"}],
		"refusal":{},"tool_calls":{}}},{"message":{"content":"other"}}]}`))
	want := document{message: &message{text: "a"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(document{}, fault{}, message{}, usage{})); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

// Ensures that no response makes the decoder fail, or gives more than a bounded
// number of calls, text that is not UTF-8, or a count that is none.
func FuzzParseDocument(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"message":{"content":"x","tool_calls":[{"id":"1","function":{"name":"a","arguments":"{}"}}]},` +
			`"finish_reason":"stop"}],"usage":{"total_tokens":7}}`,
		`{"error":{"code":"429","type":"x","param":"max_tokens"}}`,
		`{"choices":[{"error":{},"message":{"content":[{"type":"text","text":"\ud800"}],"tool_calls":[null,7]}}]}`,
		"\xff", `{"choices":null}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d := parseDocument(body)
		if d.usage.tokens() < 0 || d.fault.code != "" && !isPlainWord(d.fault.code) {
			t.Errorf("usage %+v, fault %+v", d.usage, d.fault)
		}
		if d.message == nil {
			return
		}
		if len(d.message.calls) > maxCalls || !utf8.ValidString(d.message.text) {
			t.Errorf("%d calls, text %q", len(d.message.calls), d.message.text)
		}
		c := markup.New()
		if text := c.Words(d.message.text); c.HasCall(text) {
			t.Errorf("a call is left in %q", text)
		}
	})
}
