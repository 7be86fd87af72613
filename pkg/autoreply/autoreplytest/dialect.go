package autoreplytest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Dialect is how a kind of server writes its replies.
type Dialect string

// The dialects. All but [OpenAI] have something wrong or odd.
const (
	// OpenAI is the protocol as it is documented.
	OpenAI Dialect = "openai"
	// Ollama ends calls with "stop", gives each the index 0, and has empty content
	// beside them.
	Ollama Dialect = "ollama"
	// LlamaCpp has members of its own and long ids.
	LlamaCpp Dialect = "llama.cpp"
	// VLLM lists no calls where there are none, and loses empty arguments.
	VLLM Dialect = "vllm"
	// OpenRouter sends white space while it waits, and members of its own.
	OpenRouter Dialect = "openrouter"
	// SGLang has an empty finish reason.
	SGLang Dialect = "sglang"
	// LMStudio gives calls no ids.
	LMStudio Dialect = "lmstudio"
	// LiteLLM gives arguments as objects, and null ids.
	LiteLLM Dialect = "litellm"
	// DoubleEncoded encodes the text of the arguments once more.
	DoubleEncoded Dialect = "double-encoded"
	// Bare has no finish reason, no usage, and no members but the needed ones.
	Bare Dialect = "bare"
	// SameID gives all calls the same id.
	SameID Dialect = "same-id"
	// Parts has the content in parts, with reasoning among them.
	Parts Dialect = "parts"
	// Thinker has its reasoning in the content, between tags.
	Thinker Dialect = "thinker"
	// HalfThinker has its reasoning in the content, with only the closing tag.
	HalfThinker Dialect = "half-thinker"
)

// Dialects returns all dialects.
func Dialects() []Dialect {
	return []Dialect{
		OpenAI, Ollama, LlamaCpp, VLLM, OpenRouter, SGLang, LMStudio, LiteLLM,
		DoubleEncoded, Bare, SameID, Parts, Thinker, HalfThinker,
	}
}

// members is a JSON object to be.
type members map[string]any

// body returns the body of a successful response; n tells it from others.
func (d Dialect) body(turn Turn, n int) ([]byte, error) {
	choice := members{"index": 0, "finish_reason": d.finish(turn)}
	if turn.Message != "" {
		choice["message"] = jsontext.Value(turn.Message)
	} else {
		choice["message"] = d.message(turn, n)
	}
	doc := members{
		"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion", "created": 1767225600,
		"model": "scripted", "choices": []any{choice},
	}
	if !turn.NoUsage {
		total := max(turn.Tokens, 2)
		doc["usage"] = members{"prompt_tokens": total - 1, "completion_tokens": 1, "total_tokens": total}
	}
	prefix := ""
	switch d {
	case LlamaCpp:
		doc["timings"] = members{"prompt_n": 1}
	case OpenRouter:
		prefix = "\n         \n"
		doc["provider"] = "Example"
		choice["native_finish_reason"] = "STOP"
	case Bare:
		delete(choice, "finish_reason")
		delete(doc, "usage")
	}
	encoded, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encoding a scripted reply: %w", err)
	}
	return append([]byte(prefix), encoded...), nil
}

// finish is the finish reason, unless the turn has one of its own.
func (d Dialect) finish(turn Turn) any {
	switch {
	case turn.Finish != "":
		return turn.Finish
	case d == SGLang:
		return ""
	case len(turn.Calls) > 0 && d != Ollama && d != VLLM:
		return "tool_calls"
	}
	return "stop"
}

func (d Dialect) message(turn Turn, n int) members {
	m := members{"role": "assistant", "content": d.content(turn)}
	if turn.Refusal != "" {
		m["refusal"] = turn.Refusal
	}
	switch d {
	case VLLM, OpenRouter:
		m["refusal"], m["reasoning_content"], m["tool_calls"] = nil, nil, []any{}
		if turn.Reasoning != "" {
			m["reasoning_content"] = turn.Reasoning
		}
	}
	if len(turn.Calls) == 0 {
		return m
	}
	calls := make([]any, 0, len(turn.Calls))
	for i, c := range turn.Calls {
		calls = append(calls, d.call(c, n, i))
	}
	m["tool_calls"] = calls
	return m
}

func (d Dialect) content(turn Turn) any {
	text := turn.Text
	switch d {
	case Thinker:
		text = "<think>\n" + turn.Reasoning + "\n</think>\n\n" + text
	case HalfThinker:
		text = turn.Reasoning + "\n</think>\n\n" + text
	case Parts:
		return []any{
			members{"type": "thinking", "thinking": turn.Reasoning, "text": turn.Reasoning},
			members{"type": "text", "text": text},
		}
	}
	if text == "" && len(turn.Calls) > 0 && d != Ollama {
		return nil
	}
	return text
}

func (d Dialect) call(c Call, n, i int) members {
	id := c.ID
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", n, i)
	}
	function := members{"name": c.Name, "arguments": d.arguments(c.Arguments)}
	m := members{"id": id, "type": "function", "function": function}
	switch d {
	case Ollama:
		m["index"] = 0
	case LlamaCpp:
		m["id"] = strings.Repeat("x", 100) + id
	case LMStudio:
		delete(m, "id")
	case LiteLLM:
		m["id"], m["index"] = nil, 0
	case SameID:
		m["id"] = "call_0"
	}
	return m
}

// arguments are the text as the dialect writes it: a string, most of the time.
func (d Dialect) arguments(text string) any {
	switch {
	case d == VLLM && text == "{}":
		return ""
	case d == LiteLLM && jsontext.Value(text).IsValid():
		return jsontext.Value(text)
	case d == DoubleEncoded:
		if quoted, err := jsontext.AppendQuote(nil, text); err == nil {
			return string(quoted)
		}
	}
	return text
}
