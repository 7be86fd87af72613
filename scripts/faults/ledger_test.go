package main

import (
	"testing"

	"github.com/newos4/relay/pkg/chat"
)

const testToken = chat.Token("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

// history is a ledger with the thread that it should lead to.
type history struct {
	ledger *ledger
	seen   []message
}

// newHistory has three acknowledged messages, then one refused and one of
// unknown fate, which stands.
func newHistory() *history {
	h := &history{ledger: newLedger()}
	for epoch := range int64(3) {
		h.acknowledge(h.ledger.offer(testToken, "operator", "word"), 100+epoch)
	}
	h.ledger.refuse(h.ledger.offer(testToken, "operator", "refused"))
	h.show(h.ledger.offer(testToken, "hermes", "cut"), "id-cut", 200)
	return h
}

func (h *history) acknowledge(e *entry, epoch int64) {
	id := "id-" + e.text
	h.ledger.acknowledge(e, id, epoch)
	h.show(e, id, epoch)
}

func (h *history) show(e *entry, id string, epoch int64) {
	h.seen = append(h.seen, message{ID: id, Epoch: epoch, Author: e.author, Text: e.text})
}

// Ensures that what a reader may not see is found, each under its own name, and
// that nothing is found in a sound thread.
func TestLedger_Judge(t *testing.T) {
	t.Parallel()
	type found struct{ lost, doubled, phantom, foreign int }
	for name, test := range map[string]struct {
		spoil func(*history)
		want  found
	}{
		"sound":             {func(*history) {}, found{}},
		"cut and gone":      {func(h *history) { h.seen = h.seen[:3] }, found{}},
		"lost":              {func(h *history) { h.seen = append(h.seen[:1], h.seen[2:]...) }, found{lost: 1}},
		"all lost":          {func(h *history) { h.seen = nil }, found{lost: 3}},
		"newest lost":       {func(h *history) { h.acknowledge(h.ledger.offer(testToken, "agent", "x"), 300); h.seen = h.seen[:4] }, found{lost: 1}},
		"doubled":           {func(h *history) { h.again(1, 300) }, found{doubled: 1}},
		"unknown doubled":   {func(h *history) { h.again(3, 300) }, found{doubled: 1}},
		"phantom":           {func(h *history) { h.seen = append(h.seen, message{"id", 300, "operator", "refused 7"}) }, found{phantom: 1}},
		"foreign":           {func(h *history) { h.seen = append(h.seen, message{"id", 300, "operator", "what"}) }, found{foreign: 1}},
		"wrong id":          {func(h *history) { h.seen[1].ID = "other" }, found{lost: 1}},
		"wrong epoch":       {func(h *history) { h.seen[2].Epoch++ }, found{lost: 1}},
		"wrong author":      {func(h *history) { h.seen[3].Author = "operator" }, found{lost: 1}},
		"epochs stand":      {func(h *history) { h.seen[3].Epoch = 102 }, found{lost: 1}},
		"swapped":           {func(h *history) { h.seen[0], h.seen[1] = h.seen[1], h.seen[0] }, found{lost: 2}},
		"acknowledged late": {func(h *history) { h.late() }, found{lost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			test.spoil(h)
			v := newVerdict()
			h.ledger.judge(v, testToken, h.seen, false)
			got := found{len(v.lost), len(v.doubled), len(v.phantom), len(v.foreign)}
			if got != test.want {
				t.Errorf("found %+v, want %+v: %v", got, test.want, v)
			}
		})
	}
}

// again shows a message a second time, at another epoch.
func (h *history) again(i int, epoch int64) {
	m := h.seen[i]
	m.Epoch = epoch
	h.seen = append(h.seen, m)
}

// late offers and acknowledges a message, and puts it before one that was
// acknowledged earlier, with epochs that fit.
func (h *history) late() {
	e := h.ledger.offer(testToken, "operator", "late")
	h.ledger.acknowledge(e, "id", 50)
	h.seen = append([]message{{"id", 50, e.author, e.text}}, h.seen...)
}

// Ensures that a message counts once as lost when both readers miss it, that an
// agent's answers are counted and not foreign, and that a second answer to one
// question is.
func TestLedger_JudgeTwice(t *testing.T) {
	t.Parallel()
	h := newHistory()
	question := h.ledger.offer(testToken, "agent", "question")
	h.show(question, "id-question", 250)
	answered := append(h.seen[1:], message{"id", 300, "hermes", "an answer"})
	v := newVerdict()
	h.ledger.judge(v, testToken, answered, true)
	h.ledger.judge(v, testToken, answered, true)
	if len(v.lost) != 1 || v.answers[testToken] != 1 || len(v.foreign) != 0 {
		t.Errorf("%d lost, %d answers, %d foreign", len(v.lost), v.answers[testToken], len(v.foreign))
	}
	h.ledger.judge(v, testToken, append(answered, message{"id-2", 301, "hermes", "an answer"}), true)
	if v.answers[testToken] != 2 || len(v.foreign) != 1 {
		t.Errorf("two answers to one question: %d answers, %d foreign", v.answers[testToken], len(v.foreign))
	}
}
