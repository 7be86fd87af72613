package hermesapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/markup"
	"github.com/newos4/relay/pkg/chat"
)

// bytesPerToken is how many bytes are taken for a token where the server does
// not count.
const bytesPerToken = 3

// completionRequest is what is sent (section 2.5). Stream is always false: an
// answer is of use only when it is whole.
type completionRequest struct {
	Model    string          `json:"model,omitzero"`
	Messages []promptMessage `json:"messages"`
	Stream   bool            `json:"stream"`
}

type promptMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// completion is what of the answer counts.
type completion struct {
	Choices []choice      `json:"choices"`
	Usage   usage         `json:"usage"`
	Hermes  hermesOutcome `json:"hermes"`
}

type choice struct {
	Message struct {
		Content string `json:"content"`
		Refusal string `json:"refusal"`
	} `json:"message"`
	FinishReason string `json:"finish_reason"`
}

type usage struct {
	TotalTokens int `json:"total_tokens"`
}

// hermesOutcome tells how the agent's turn ended, under any status.
type hermesOutcome struct {
	Completed *bool          `json:"completed"`
	Partial   bool           `json:"partial"`
	Failed    bool           `json:"failed"`
	Error     jsontext.Value `json:"error"`
	ErrorCode code           `json:"error_code"`
}

// complete sends a prompt and returns the answer.
func (b *Backend) complete(ctx context.Context, thread chat.ThreadID, p prompt) (autoreply.Answer, error) {
	body, err := json.Marshal(completionRequest{
		Model:    b.model,
		Messages: []promptMessage{{"system", p.system}, {"user", p.user}},
	})
	if err != nil {
		return autoreply.Answer{}, fmt.Errorf("encoding a request: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if b.key != "" {
		// Without a key the server refuses this header, and then has no memories.
		header.Set("X-Hermes-Session-Key", "relay-thread-"+string(thread))
	}
	r, err := b.send(ctx, http.MethodPost, "/v1/chat/completions", header, body)
	if err != nil {
		return autoreply.Answer{}, err
	}
	if r.status != http.StatusOK {
		return autoreply.Answer{}, statusFailure(r, b.now())
	}
	return parseCompletion(r, len(body))
}

// parseCompletion takes nothing for an answer that the server, in any of the
// ways it has, calls unfinished: it would be an error's text, or a part. What
// the server does not count is estimated from the bytes of both.
func parseCompletion(r *response, sent int) (autoreply.Answer, error) {
	var c completion
	if err := json.Unmarshal(r.body, &c, jsontext.AllowInvalidUTF8(true)); err != nil {
		return autoreply.Answer{}, autoreply.Failf(autoreply.ReasonUnavailable, true, "the answer is not a completion")
	}
	c.Usage.TotalTokens = max(c.Usage.TotalTokens, 0)
	if len(c.Choices) == 0 {
		return autoreply.Answer{}, c.failure(autoreply.ReasonNoAnswer, "no choice")
	}
	if c.Usage.TotalTokens == 0 {
		c.Usage.TotalTokens = (sent + len(r.body)) / bytesPerToken
	}
	first := c.Choices[0]
	finish := first.FinishReason
	text := markup.New().Words(first.Message.Content)
	switch {
	case finish == "length", c.Hermes.Partial, c.Hermes.ErrorCode == "output_truncated", isTrue(r.header, "X-Hermes-Partial"):
		return autoreply.Answer{}, c.failure(autoreply.ReasonCutOff, "the answer was cut off")
	case finish == "error", c.Hermes.Failed, c.Hermes.hasError(), r.header.Get("X-Hermes-Error") != "":
		return autoreply.Answer{}, c.failure(autoreply.ReasonUnavailable, "the agent failed")
	case c.Hermes.Completed != nil && !*c.Hermes.Completed, strings.EqualFold(r.header.Get("X-Hermes-Completed"), "false"):
		return autoreply.Answer{}, c.failure(autoreply.ReasonCutOff, "the agent did not complete its turn")
	case finish != "" && finish != "stop":
		return autoreply.Answer{}, c.failure(autoreply.ReasonNoAnswer, "the answer has another reason to end than being complete")
	case first.Message.Refusal != "", text == "":
		return autoreply.Answer{}, c.failure(autoreply.ReasonNoAnswer, "the model gave no words")
	}
	return autoreply.Answer{Text: text, Tokens: c.Usage.TotalTokens}, nil
}

// failure is one that cost tokens. The next try may have better luck.
func (c *completion) failure(reason autoreply.Reason, cause string) error {
	failure := autoreply.Failf(reason, true, "%s%s", cause, c.Hermes.ErrorCode.suffix())
	failure.Tokens = c.Usage.TotalTokens
	return failure
}

// hasError reports whether there is an error, a text or an object.
func (o *hermesOutcome) hasError() bool {
	text := string(o.Error)
	return text != "" && text != "null" && text != `""` && text != "false"
}
