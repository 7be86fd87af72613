package openai

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/autoreply/tools"
)

// request is the body of a chat completion. It has the fields that every server
// knows and no others: tools are left out when there are none, because several
// refuse an empty list, and tool_choice always, because several do not know it.
type request struct {
	Model    string           `json:"model"`
	Messages []jsontext.Value `json:"messages"`
	Tools    []wireTool       `json:"tools,omitempty"`
	Stream   bool             `json:"stream"`
	// One of the two is set. Hosted models of a newer kind refuse the first, most
	// other servers do not know the second.
	MaxTokens           int `json:"max_tokens,omitzero"`
	MaxCompletionTokens int `json:"max_completion_tokens,omitzero"`
}

type wireTool struct {
	Type     string         `json:"type"`
	Function wireDefinition `json:"function"`
}

type wireDefinition struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
}

// wireMessage is one message of a request.
type wireMessage struct {
	Role string `json:"role"`
	// Content is null beside tool calls: what a model says while it calls is not
	// its answer, and is not kept.
	Content *string    `json:"content"`
	Calls   []wireCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function wireCallFunction `json:"function"`
}

type wireCallFunction struct {
	Name string `json:"name"`
	// Arguments is the text of a JSON object.
	Arguments string `json:"arguments"`
}

// offer returns the tools as a request has them.
func offer(definitions []tools.Definition) []wireTool {
	offered := make([]wireTool, 0, len(definitions))
	for _, d := range definitions {
		offered = append(offered, wireTool{Type: "function", Function: wireDefinition(d)})
	}
	return offered
}

func encode(v any) (jsontext.Value, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	return data, nil
}
