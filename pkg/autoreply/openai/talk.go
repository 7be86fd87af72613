package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/prompt"
	"github.com/newos4/relay/pkg/autoreply/tools"
	"github.com/newos4/relay/pkg/sandbox"
)

const (
	// bytesPerToken is how many bytes of a request or reply are taken for a
	// token. English has more to a token, most other scripts about as many.
	bytesPerToken = 3
	// minReply is the least number of tokens that is worth a request.
	minReply = 256
	// maxID is the most bytes of a call's id that is used as the server gave it.
	maxID = 64
)

// talk is one answer under way.
type talk struct {
	backend *Backend
	budget  autoreply.Budget
	frame   prompt.Frame
	run     *tools.Run
	offered []wireTool
	// history is what every request repeats, each message encoded.
	history []jsontext.Value
	size    int // of the history and the tools, bytes
	tokens  int // used so far
	ids     map[string]bool
}

// newTalk starts a talk about the question.
func (b *Backend) newTalk(q autoreply.Question) (*talk, error) {
	frame, err := prompt.NewFrame(b.opts.Random)
	if err != nil {
		return nil, err
	}
	t := &talk{backend: b, budget: q.Budget, frame: frame, ids: make(map[string]bool)}
	t.run = tools.NewRun(b.opts.Files, tools.Limits{
		Calls: q.Budget.ToolCalls, Parallel: b.opts.Parallel, Bytes: q.Budget.Bytes,
	})
	text, err := t.begin(q)
	if err != nil {
		return nil, err
	}
	if err := t.add(wireMessage{Role: "system", Content: &text.System}); err != nil {
		return nil, err
	}
	return t, t.add(wireMessage{Role: "user", Content: &text.User})
}

// begin returns the prompt. Tools are not mentioned where there are none.
func (t *talk) begin(q autoreply.Question) (prompt.Text, error) {
	if t.backend.opts.Files == nil || t.run.Spent() {
		return t.frame.WithExcerpts(q, nil, t.backend.opts.PromptBytes)
	}
	t.offered = offer(tools.Definitions())
	encoded, err := encode(t.offered)
	if err != nil {
		return prompt.Text{}, err
	}
	t.size += len(encoded)
	return t.frame.WithTools(q, t.backend.opts.PromptBytes)
}

// add appends a message to the history.
func (t *talk) add(m wireMessage) error {
	encoded, err := encode(m)
	if err != nil {
		return err
	}
	t.history = append(t.history, encoded)
	t.size += len(encoded)
	return nil
}

// answer asks until the model has answered.
func (t *talk) answer(ctx context.Context) (string, error) {
	for round := 1; t.mayCall(round); round++ {
		reply, err := t.ask(ctx)
		if err != nil {
			return "", err
		}
		if len(reply.calls) > 0 {
			if err := t.carryOut(ctx, reply); err != nil {
				return "", err
			}
			continue
		}
		if t.backend.clean.HasCall(t.backend.clean.WithoutThoughts(reply.text)) {
			break
		}
		return t.final(reply)
	}
	if err := t.takeTools(); err != nil {
		return "", err
	}
	reply, err := t.ask(ctx)
	if err != nil {
		return "", err
	}
	return t.final(reply)
}

// mayCall reports whether a round, counted from 1, offers tools: after it, there
// have to be tokens for an answer as well.
func (t *talk) mayCall(round int) bool {
	return len(t.offered) > 0 && round <= t.backend.opts.Rounds && !t.run.Spent() &&
		t.tokensLeft() >= 2*(t.prompted()+minReply)
}

// takeTools makes the next request one without tools.
func (t *talk) takeTools() error {
	if len(t.offered) == 0 {
		return nil
	}
	t.offered = nil
	text := prompt.NoMoreTools
	return t.add(wireMessage{Role: "user", Content: &text})
}

func (t *talk) tokensLeft() int { return t.budget.Tokens - t.tokens }

// prompted is about how many tokens the next request takes, without its reply.
func (t *talk) prompted() int { return t.size / bytesPerToken }

// ask makes one request and counts what it took. The reply is whole.
func (t *talk) ask(ctx context.Context) (*message, error) {
	room := t.tokensLeft() - t.prompted()
	if room < minReply {
		return nil, autoreply.Failf(autoreply.ReasonBudget, false,
			"%d of %d tokens are used, and the next request takes about %d more",
			t.tokens, t.budget.Tokens, t.prompted()+minReply)
	}
	resp, err := t.post(ctx, min(room, t.backend.opts.MaxTokens))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.tokens += t.prompted() // a model that was at work is paid for
		}
		return nil, err
	}
	used := resp.document.usage.tokens()
	if used == 0 {
		used = t.prompted() + resp.size/bytesPerToken
	}
	t.tokens += used
	if failure := incomplete(resp.document.message); failure != nil {
		return nil, failure
	}
	return resp.document.message, nil
}

// incomplete returns what keeps a reply from being one, or nil. The arguments
// of a call may then be cut off, so that it is not made either.
func incomplete(reply *message) *autoreply.Failure {
	switch {
	case reply == nil:
		return autoreply.Failf(autoreply.ReasonUnavailable, true, "the server's response is not a chat completion")
	case reply.finish == "length":
		return autoreply.Failf(autoreply.ReasonCutOff, true, "the reply was cut off")
	case reply.finish == "error":
		return autoreply.Failf(autoreply.ReasonUnavailable, true, "the model failed while it replied")
	case reply.refused, reply.finish == "content_filter":
		return autoreply.Failf(autoreply.ReasonNoAnswer, false, "the model declined")
	}
	return nil
}

// post sends the history. The length of a reply is bounded in a field that has
// two names; which one a server takes is found out by trying, once.
func (t *talk) post(ctx context.Context, maxTokens int) (response, error) {
	newField := t.backend.newField.Load()
	resp, err := t.postWith(ctx, maxTokens, newField)
	if err == nil || newField || resp.status != http.StatusBadRequest || resp.document.fault.param != "max_tokens" {
		return resp, err
	}
	t.backend.newField.Store(true)
	return t.postWith(ctx, maxTokens, true)
}

func (t *talk) postWith(ctx context.Context, maxTokens int, newField bool) (response, error) {
	r := request{Model: t.backend.opts.Model, Messages: t.history, Tools: t.offered}
	if newField {
		r.MaxCompletionTokens = maxTokens
	} else {
		r.MaxTokens = maxTokens
	}
	body, err := encode(r)
	if err != nil {
		return response{}, err
	}
	return t.backend.send(ctx, http.MethodPost, "chat/completions", body)
}

// carryOut makes the calls of a reply and adds them to the history, each with
// its result. What a server sent is not repeated to it: names, ids and arguments
// are as they were understood, since some servers fail on every later request
// that holds a call they cannot read.
func (t *talk) carryOut(ctx context.Context, reply *message) error {
	calls := make([]tools.Call, 0, len(reply.calls))
	for _, c := range reply.calls {
		calls = append(calls, c.Call)
	}
	results, err := t.run.Round(ctx, calls)
	if errors.Is(err, sandbox.ErrNotConfined) {
		return autoreply.Failf(autoreply.ReasonUnsafe, false, "looking at files: %w", err)
	}
	if err != nil {
		return fmt.Errorf("looking at files: %w", err)
	}
	made := make([]wireCall, 0, len(results))
	for i, result := range results {
		made = append(made, wireCall{ID: t.id(reply.calls[i].id), Type: "function", Function: wireCallFunction{
			Name: result.Name, Arguments: string(result.Arguments),
		}})
	}
	if err := t.add(wireMessage{Role: "assistant", Calls: made}); err != nil {
		return err
	}
	for i, result := range results {
		content := t.frame.Wrap(result.Document)
		if err := t.add(wireMessage{Role: "tool", Content: &content, CallID: made[i].ID}); err != nil {
			return err
		}
	}
	return nil
}

// id returns an id for a call: the server's, unless it is missing, was used
// before or is not an identifier. One that is made up has the nine letters and
// digits that the strictest servers ask for.
func (t *talk) id(given string) string {
	isOther := func(r rune) bool { return r <= ' ' || r > '~' }
	for n := len(t.ids) + 1; given == "" || len(given) > maxID || t.ids[given] || strings.ContainsFunc(given, isOther); n++ {
		given = fmt.Sprintf("call%05d", n)
	}
	t.ids[given] = true
	return given
}

// final returns the answer that a reply is, or why it is none. Calls in it are
// not made.
func (t *talk) final(reply *message) (string, error) {
	text := t.backend.clean.Words(reply.text)
	if text == "" {
		return "", autoreply.Failf(autoreply.ReasonNoAnswer, true, "the reply has no text for the reader")
	}
	return text, nil
}
