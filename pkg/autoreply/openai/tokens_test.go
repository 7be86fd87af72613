package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
	"github.com/newos4/relay/pkg/autoreply/openai"
)

// Ensures that tokens are added up as the server reports them, or estimated, and
// that no request is made for which there are too few.
func TestAnswer_Tokens(t *testing.T) {
	t.Parallel()
	calls := []autoreplytest.Call{{Name: "list_files", Arguments: "{}"}}
	f := newFixture(t, autoreplytest.Options{})
	f.server.Script("", autoreplytest.Turn{Calls: calls, Tokens: 1000}, autoreplytest.Turn{Text: "fine", Tokens: 1500})
	if got := f.answer(question("hello")).Tokens; got != 2500 {
		t.Errorf("%d tokens, want 2500", got)
	}

	f.server.Script("", autoreplytest.Turn{Text: strings.Repeat("a", 6000), NoUsage: true})
	if got := f.answer(question("hello")).Tokens; got < 2000 || got > 5000 {
		t.Errorf("%d tokens estimated", got)
	}

	f.server.Script("", autoreplytest.Turn{Calls: calls, Tokens: 9900})
	q := question("hello")
	q.Budget.Tokens = 10000
	if got := f.failure(q, autoreply.ReasonBudget, false).Tokens; got != 9900 {
		t.Errorf("%d tokens, want 9900", got)
	}

	f.server.Script("", autoreplytest.Turn{Calls: calls, Tokens: 8500}, autoreplytest.Turn{Text: "brief", Tokens: 10})
	if got := f.answer(q); got.Text != "brief" || got.Tokens != 8510 {
		t.Errorf("answer %+v", got)
	}
	requests := f.server.Requests()
	if last := requests[len(requests)-1]; len(last.Tools) > 0 {
		t.Error("tools are offered although there are no tokens for another round")
	}

	before := len(requests)
	q.Budget.Tokens = 100
	f.fails(q, autoreply.ReasonBudget, false)
	if after := len(f.server.Requests()); after != before {
		t.Errorf("%d requests without tokens", after-before)
	}
}

// Ensures that nonsense in the usage is not believed.
func TestAnswer_StrangeUsage(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{`null`, `"x"`, `{}`, `{"total_tokens":-5}`, `{"total_tokens":1e300}`, `{"total_tokens":"7"}`, `[]`} {
		f := newFixture(t, autoreplytest.Options{})
		f.server.Script("", autoreplytest.Turn{Body: `{"choices":[{"message":{"content":"x"}}],"usage":` + usage + `}`})
		if got := f.answer(question("hello")).Tokens; got < 100 || got > 5000 {
			t.Errorf("usage %s: %d tokens", usage, got)
		}
	}
}

// Ensures that a reply is bounded by the budget, in the field that the server
// knows, which is found out once.
func TestAnswer_MaxTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, autoreplytest.Options{NewField: true}, func(o *openai.Options) { o.MaxTokens = 77 })
	for range 2 {
		f.answer(question("hello"))
	}
	requests := f.server.Requests()
	if len(requests) != 2 || !strings.Contains(requests[0].Body, `"max_completion_tokens":77`) {
		t.Errorf("%d requests, the first of %s", len(requests), requests[0].Body)
	}
	old := newFixture(t, autoreplytest.Options{})
	q := question("hello")
	q.Budget.Tokens = 2000
	old.answer(q)
	var sent struct {
		Max int `json:"max_tokens"`
	}
	if err := json.Unmarshal([]byte(old.server.Requests()[0].Body), &sent); err != nil || sent.Max < 256 || sent.Max >= 2000 {
		t.Errorf("max_tokens is %d, %v", sent.Max, err)
	}
}
