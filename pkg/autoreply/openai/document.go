package openai

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/autoreply/tools"
)

// maxCalls bounds how many calls of one reply are kept at all. No model in its
// senses makes as many; the rest is as if it had not been made.
const maxCalls = 64

// document is what can be made of a response. Servers disagree on the types of
// nearly everything, so each member is taken only if it has the type that it
// should, and is otherwise as if it were not there.
type document struct {
	object string
	fault  fault
	// message is the first choice, nil where there is none.
	message *message
	usage   usage
}

// fault is the error that a server names.
type fault struct {
	present bool
	status  int    // the code, if it is a number
	code    string // the code or type, if it is a plain word
	param   string // the parameter that is at fault
}

// message is a model's reply.
type message struct {
	text    string
	refused bool
	calls   []call
	finish  string // "" where the server does not say
}

// call is one tool call of a message.
type call struct {
	id string // "" where the server gives none
	tools.Call
}

// usage is what a server says that a reply took, in tokens; 0 where it does not.
type usage struct {
	prompt, completion, total int
}

// tokens returns how many tokens were used, 0 if that is not known.
func (u usage) tokens() int {
	if u.total > 0 {
		return u.total
	}
	return u.prompt + u.completion
}

// wireDocument and what follows are responses as they come.
type wireDocument struct {
	Object  jsontext.Value `json:"object"`
	Error   jsontext.Value `json:"error"`
	Choices jsontext.Value `json:"choices"`
	Usage   jsontext.Value `json:"usage"`
}

type wireError struct {
	Code  jsontext.Value `json:"code"`
	Type  jsontext.Value `json:"type"`
	Param jsontext.Value `json:"param"`
}

type wireChoice struct {
	Message jsontext.Value `json:"message"`
	Finish  jsontext.Value `json:"finish_reason"`
	Error   jsontext.Value `json:"error"`
}

type wireReply struct {
	Content jsontext.Value `json:"content"`
	Refusal jsontext.Value `json:"refusal"`
	Calls   jsontext.Value `json:"tool_calls"`
}

type wirePart struct {
	Type jsontext.Value `json:"type"`
	Text jsontext.Value `json:"text"`
}

type wireReplyCall struct {
	ID       jsontext.Value `json:"id"`
	Function jsontext.Value `json:"function"`
}

type wireFunction struct {
	Name      jsontext.Value `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

type wireUsage struct {
	Prompt     jsontext.Value `json:"prompt_tokens"`
	Completion jsontext.Value `json:"completion_tokens"`
	Total      jsontext.Value `json:"total_tokens"`
}

// parseDocument reads a response's body. Invalid UTF-8 and unpaired surrogates
// become U+FFFD.
func parseDocument(body []byte) document {
	wire, ok := as[wireDocument](body)
	if !ok {
		return document{}
	}
	d := document{fault: parseFault(wire.Error), usage: parseUsage(wire.Usage)}
	d.object, _ = as[string](wire.Object)
	choices, _ := as[[]jsontext.Value](wire.Choices)
	if len(choices) == 0 {
		return d
	}
	choice, ok := as[wireChoice](choices[0])
	if !ok {
		return d
	}
	if !d.fault.present {
		d.fault = parseFault(choice.Error)
	}
	d.message = parseMessage(choice)
	return d
}

func parseFault(raw jsontext.Value) fault {
	if len(raw) == 0 || raw.Kind() == 'n' {
		return fault{}
	}
	f := fault{present: true}
	wire, _ := as[wireError](raw)
	f.status, _ = as[int](wire.Code)
	f.param, _ = as[string](wire.Param)
	for _, candidate := range []jsontext.Value{wire.Code, wire.Type} {
		if word, ok := as[string](candidate); ok && isPlainWord(word) {
			f.code = word
			break
		}
	}
	if word, ok := as[string](wire.Code); ok && f.status == 0 {
		f.status, _ = strconv.Atoi(word)
	}
	return f
}

// isPlainWord reports whether word can be shown: an identifier, which holds no
// text of anyone.
func isPlainWord(word string) bool {
	const maxWord = 48
	isOther := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
	}
	return word != "" && len(word) <= maxWord && !strings.ContainsFunc(word, isOther)
}

func parseUsage(raw jsontext.Value) usage {
	wire, _ := as[wireUsage](raw)
	return usage{prompt: count(wire.Prompt), completion: count(wire.Completion), total: count(wire.Total)}
}

// count returns a number of tokens, or 0 for what cannot be one.
func count(raw jsontext.Value) int {
	const most = 1 << 30
	n, ok := as[float64](raw)
	if !ok || n < 0 || n > most {
		return 0
	}
	return int(n)
}

func parseMessage(choice wireChoice) *message {
	wire, ok := as[wireReply](choice.Message)
	if !ok {
		return nil
	}
	m := &message{text: parseContent(wire.Content)}
	m.finish, _ = as[string](choice.Finish)
	refusal, _ := as[string](wire.Refusal)
	m.refused = refusal != ""
	calls, _ := as[[]jsontext.Value](wire.Calls)
	for _, raw := range calls[:min(len(calls), maxCalls)] {
		m.calls = append(m.calls, parseCall(raw))
	}
	return m
}

// parseContent returns text that is given as a string or in parts, of which
// only text is taken: others hold reasoning.
func parseContent(raw jsontext.Value) string {
	if text, ok := as[string](raw); ok {
		return text
	}
	parts, _ := as[[]wirePart](raw)
	var b strings.Builder
	for _, part := range parts {
		kind, _ := as[string](part.Type)
		text, _ := as[string](part.Text)
		if kind == "text" {
			b.WriteString(text)
		}
	}
	return b.String()
}

// parseCall keeps what cannot be a call as one without a name, which is
// answered with an error like any other.
func parseCall(raw jsontext.Value) call {
	wire, _ := as[wireReplyCall](raw)
	function, _ := as[wireFunction](wire.Function)
	var c call
	c.id, _ = as[string](wire.ID)
	c.Name, _ = as[string](function.Name)
	c.Arguments = function.Arguments
	return c
}

// as returns raw as a T, or the zero T if it is something else or not there.
func as[T any](raw []byte) (value T, ok bool) {
	if len(raw) == 0 || jsontext.Value(raw).Kind() == 'n' {
		return value, false
	}
	err := json.Unmarshal(raw, &value, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		var zero T
		return zero, false
	}
	return value, true
}
