package autoreplytest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
)

// talker sends what a client of chat completions would, by hand.
type talker struct {
	t        *testing.T
	server   *autoreplytest.Server
	messages []any
}

func newTalker(t *testing.T, server *autoreplytest.Server, text string) *talker {
	t.Helper()
	line, err := json.Marshal(map[string]string{"author": "operator", "text": text}, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return &talker{t: t, server: server, messages: []any{
		map[string]any{"role": "system", "content": "be good"},
		map[string]any{"role": "user", "content": "data:\n" + string(line) + "\nend"},
	}}
}

// post sends a request with or without tools, and returns the status and body.
func (k *talker) post(withTools bool) (int, []byte) {
	k.t.Helper()
	request := map[string]any{"model": "m", "messages": k.messages}
	if withTools {
		request["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "read_file"}}}
	}
	body, err := json.Marshal(request)
	if err != nil {
		k.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodPost, k.server.URL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := k.server.Client().Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// reply is what the tests look at.
type reply struct {
	Content string
	Calls   []string // "name arguments"
	Finish  string
}

// ask sends a request, answers the calls of the reply with their number and the
// result, and returns the reply.
func (k *talker) ask(withTools bool, result string) reply {
	k.t.Helper()
	status, body := k.post(withTools)
	var doc struct {
		Choices []struct {
			Message struct {
				Content *string        `json:"content"`
				Calls   jsontext.Value `json:"tool_calls"`
			} `json:"message"`
			Finish string `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(body, &doc); status != http.StatusOK || err != nil {
		k.t.Fatalf("status %d, %v: %s", status, err, body)
	}
	choice := doc.Choices[0]
	r := reply{Finish: choice.Finish}
	if choice.Message.Content != nil {
		r.Content = *choice.Message.Content
	}
	if len(choice.Message.Calls) == 0 {
		return r
	}
	var calls []struct {
		ID       string                           `json:"id"`
		Function struct{ Name, Arguments string } `json:"function"`
	}
	if err := json.Unmarshal(choice.Message.Calls, &calls, json.MatchCaseInsensitiveNames(true)); err != nil {
		k.t.Fatal(err)
	}
	made := make([]any, 0, len(calls))
	for _, c := range calls {
		r.Calls = append(r.Calls, c.Function.Name+" "+c.Function.Arguments)
		made = append(made, map[string]any{"id": c.ID, "type": "function",
			"function": map[string]any{"name": c.Function.Name, "arguments": "{}"}})
	}
	k.messages = append(k.messages, map[string]any{"role": "assistant", "content": nil, "tool_calls": made})
	for i, c := range calls {
		k.messages = append(k.messages, map[string]any{"role": "tool", "tool_call_id": c.ID, "content": fmt.Sprintf("%d:%s", i, result)})
	}
	return r
}

// Ensures that the obedient model makes the calls it is told to make, one reply
// after the other, and then says what it is told to say.
func TestObedientModel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message string
		results []string
		want    []reply
	}{
		"nothing": {"hello", nil, []reply{{"done", nil, "stop"}}},
		"say":     {"SAY one\nmore\n  SAY two", nil, []reply{{"one\ntwo", nil, "stop"}}},
		"long":    {"SAY_LONG 5", nil, []reply{{"aaaaa", nil, "stop"}}},
		"finish":  {"SAY x\nFINISH length", nil, []reply{{"x", nil, "length"}}},
		"raw":     {`RAW {"content":"r"}`, nil, []reply{{"r", nil, "stop"}}},
		"call": {
			"CALL read_file {\"path\": \"a b\"}\nSAY_RESULT",
			[]string{"R"},
			[]reply{{"", []string{`read_file {"path": "a b"}`}, "tool_calls"}, {"0:R", nil, "stop"}},
		},
		"broken call": {
			"CALL read_file {\"path\"", []string{"R"},
			[]reply{{"", []string{`read_file {"path"`}, "tool_calls"}, {"done", nil, "stop"}},
		},
		"two calls": {
			"CALL a 1\nCALL b 2\nSAY_RESULT",
			[]string{"R", "S"},
			[]reply{
				{"", []string{"a 1"}, "tool_calls"}, {"", []string{"b 2"}, "tool_calls"}, {"0:R\n0:S", nil, "stop"},
			},
		},
		"parallel": {
			"PARALLEL 2\nCALL a 1\nAND b 2", []string{"R"},
			[]reply{{"", []string{"a 1", "b 2", "a 1", "b 2"}, "tool_calls"}, {"done", nil, "stop"}},
		},
		"repeat": {
			"REPEAT 2\nCALL a 1\nCALL b 2", []string{"R", "R", "R"},
			[]reply{
				{"", []string{"a 1"}, "tool_calls"}, {"", []string{"a 1"}, "tool_calls"},
				{"", []string{"b 2"}, "tool_calls"}, {"done", nil, "stop"},
			},
		},
		"big": {
			"BIG a 3", []string{"R"},
			[]reply{{"", []string{`a {"path":"aaa"}`}, "tool_calls"}, {"done", nil, "stop"}},
		},
		"obey result": {
			"CALL a 1\nOBEY_RESULT\nSAY end",
			[]string{"\n" + `{"text":"x\nCALL b 2\nSAY found"}`, "R"},
			[]reply{{"", []string{"a 1"}, "tool_calls"}, {"", []string{"b 2"}, "tool_calls"}, {"found\nend", nil, "stop"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalker(t, autoreplytest.New(t, autoreplytest.Options{}), test.message)
			for i, want := range test.want {
				result := ""
				if i < len(test.results) {
					result = test.results[i]
				}
				if diff := cmp.Diff(want, k.ask(true, result)); diff != "" {
					t.Fatalf("reply %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// Ensures that endless calls end only when the tools are taken away, and that
// the answer can hold all that was sent.
func TestObedientModel_Endless(t *testing.T) {
	t.Parallel()
	k := newTalker(t, autoreplytest.New(t, autoreplytest.Options{}), "ENDLESS\nCALL a 1\nSAY_PROMPT")
	for range 20 {
		if r := k.ask(true, "R"); len(r.Calls) != 1 {
			t.Fatalf("no call with tools: %+v", r)
		}
	}
	if r := k.ask(false, ""); len(r.Calls) != 0 || !strings.Contains(r.Content, "be good") {
		t.Errorf("without tools: %+v", r)
	}
}

// Ensures that a status is answered as told, and that a gate holds a request
// until it is opened.
func TestObedientModel_StatusAndWait(t *testing.T) {
	t.Parallel()
	server := autoreplytest.New(t, autoreplytest.Options{})
	if status, _ := newTalker(t, server, "STATUS 503").post(false); status != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", status)
	}
	answered := make(chan int)
	k := newTalker(t, server, "WAIT here")
	go func() {
		status, _ := k.post(false)
		answered <- status
	}()
	<-server.Gate("here").Arrived()
	select {
	case <-answered:
		t.Error("answered before the gate was opened")
	default:
	}
	server.Gate("here").Open()
	if status := <-answered; status != http.StatusOK {
		t.Errorf("status %d, want 200", status)
	}
}

// Ensures that each session gets its own script, found by the marker in any
// message, whatever text is around it.
func TestScript(t *testing.T) {
	t.Parallel()
	server := autoreplytest.New(t, autoreplytest.Options{})
	server.Script("a", autoreplytest.Turn{Text: "one"}, autoreplytest.Turn{Text: "two"})
	server.Script("b", autoreplytest.Turn{Text: "three"})
	a := newTalker(t, server, "SAY no "+autoreplytest.Marker("a"))
	b := newTalker(t, server, autoreplytest.Marker("b"))
	for i, got := range []string{a.ask(false, "").Content, b.ask(false, "").Content, a.ask(false, "").Content} {
		if want := []string{"one", "three", "two"}[i]; got != want {
			t.Errorf("reply %d is %q, want %q", i, got, want)
		}
	}
	requests := server.Requests()
	if len(requests) != 3 || requests[1].Session != "b" || requests[1].System != "be good" {
		t.Errorf("recorded %+v", requests)
	}
}

// Ensures that what one of the strict servers refuses is refused.
func TestStrictness(t *testing.T) {
	t.Parallel()
	call := func(id, arguments string) any {
		return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]any{"name": "a", "arguments": arguments}}}}
	}
	result := func(id string) any { return map[string]any{"role": "tool", "tool_call_id": id, "content": "r"} }
	for name, test := range map[string]struct {
		messages []any
		want     int
	}{
		"good":            {[]any{call("1", "{}"), result("1")}, http.StatusOK},
		"not answered":    {[]any{call("1", "{}")}, http.StatusBadRequest},
		"answered twice":  {[]any{call("1", "{}"), result("1"), result("1")}, http.StatusBadRequest},
		"answer to other": {[]any{call("1", "{}"), result("2")}, http.StatusBadRequest},
		"no id":           {[]any{call("", "{}"), result("")}, http.StatusBadRequest},
		"same id":         {[]any{call("1", "{}"), result("1"), call("1", "{}"), result("1")}, http.StatusBadRequest},
		"broken":          {[]any{call("1", "{"), result("1")}, http.StatusBadRequest},
		"no object":       {[]any{call("1", "[]"), result("1")}, http.StatusBadRequest},
		"no content":      {[]any{map[string]any{"role": "user", "content": nil}}, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalker(t, autoreplytest.New(t, autoreplytest.Options{Lenient: true}), "hello")
			k.messages = append(k.messages, test.messages...)
			if status, body := k.post(true); status != test.want {
				t.Errorf("status %d, want %d: %s", status, test.want, body)
			}
		})
	}
}
