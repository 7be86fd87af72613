package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

// isStrict reports whether a dialect asks by requests and numbers its events.
func isStrict(dialect hermestest.Dialect) bool {
	return dialect == hermestest.DialectNew || dialect == hermestest.DialectGated
}

// Ensures that an approval is shown without the choice that would outlive the
// session, and answered as each dialect takes it (W3).
func TestW03_Approval(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, dialect hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Approval("make deploy", "once", "session", "always", "deny"), hermestest.Complete(""))
		s := r.submit("x")
		q := until[hermes.Asked](r, s).Question
		if q.Kind != hermes.Approval || q.Detail != "make deploy" || q.Text != "runs a shell command" ||
			!cmp.Equal(q.Choices, []hermes.Choice{hermes.Once, hermes.ForSession, hermes.Deny}) {
			r.Errorf("question %+v", q)
		}
		if got := s.State().Questions; len(got) != 1 || got[0].ID != q.ID {
			r.Errorf("open questions %+v", got)
		}
		r.wantKind(s.AnswerApproval(r.Context(), q.ID, "always"), hermes.KindRejected)
		r.wantKind(s.AnswerApproval(r.Context(), "other", hermes.Once), hermes.KindNotFound)
		r.wantKind(s.AnswerClarification(r.Context(), q.ID, nil), hermes.KindNotFound)
		if err := s.AnswerApproval(r.Context(), q.ID, hermes.ForSession); err != nil {
			r.Fatal(err)
		}
		if got := r.completed(s); got != "[approval: session]" {
			r.Errorf("answer %q", got)
		}
		if byRequest := len(r.fake.Answers()) == 1; byRequest != isStrict(dialect) {
			r.Errorf("answers %v", r.fake.Answers())
		}
	})
}

// Ensures that two approvals of a build that gives them no ids are two questions,
// answered in their order (W3).
func TestW03_ApprovalsWithoutIDs(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Approval("first", "once", "deny"), hermestest.Approval("second", "once", "deny"), hermestest.Complete(""))
		s := r.submit("x")
		first := until[hermes.Asked](r, s).Question
		if err := s.AnswerApproval(r.Context(), first.ID, hermes.Once); err != nil {
			r.Fatal(err)
		}
		second := until[hermes.Asked](r, s).Question
		if second.ID == first.ID || second.Detail != "second" {
			r.Errorf("second question %+v", second)
		}
		r.wantKind(s.AnswerApproval(r.Context(), first.ID, hermes.Deny), hermes.KindExpired)
		if err := s.AnswerApproval(r.Context(), second.ID, hermes.Deny); err != nil {
			r.Fatal(err)
		}
		if got := r.completed(s); got != "[approval: once][approval: deny]" {
			r.Errorf("answer %q", got)
		}
	})
}

// Ensures that what the client can answer is announced on every connection before
// a prompt, so that a gated build keeps questions open (W3).
func TestW03_Announces(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Hold(gate), hermestest.Approval("x", "once"), hermestest.Complete(""))
		s := r.submit("x")
		<-gate.Reached()
		r.fake.DropConnections()
		until[hermes.Reconnected](r, s)
		gate.Open()
		q := until[hermes.Asked](r, s).Question
		if err := s.AnswerApproval(r.Context(), q.ID, hermes.Once); err != nil {
			r.Fatal(err)
		}
		if got := r.completed(s); got != "[approval: once]" {
			r.Errorf("answer %q", got)
		}
		if got := len(r.fake.Calls("client.capabilities")); got != 2 {
			r.Errorf("announced %d times", got)
		}
	})
}

// Ensures that single questions, batches, several values, skipped items and a
// cancelled question have the exact shapes of each dialect (W4).
func TestW04_Clarify(t *testing.T) {
	t.Parallel()
	single := []hermestest.Item{{ID: "q1", Text: "Which quarter?", Choices: []string{"Q1", "Q2"}}}
	batch := append(single, hermestest.Item{ID: "q2", Text: "Which colours?", Multiple: true}, hermestest.Item{ID: "q3", Text: "Why?"})
	for name, test := range map[string]struct {
		items       []hermestest.Item
		answers     hermes.Answers
		old, strict any
	}{
		"single": {single, hermes.Answers{"q1": {"Q2"}}, "Q2", map[string]any{"answers": map[string]any{"q1": "Q2"}}},
		"batch": {
			batch, hermes.Answers{"q1": {"Q2"}, "q2": {"red", "blue"}},
			`{"q1":"Q2","q2":"[\"red\",\"blue\"]","q3":null}`,
			map[string]any{"answers": map[string]any{"q1": "Q2", "q2": `["red","blue"]`, "q3": nil}},
		},
		"skipped":   {single, hermes.Answers{}, "", map[string]any{"answers": map[string]any{"q1": nil}}},
		"cancelled": {single, nil, "", map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inDialects(t, func(r *rig, dialect hermestest.Dialect) {
				r.fake.Script(profile, hermestest.Clarify(test.items...), hermestest.Complete(""))
				s := r.submit("x")
				q := until[hermes.Asked](r, s).Question
				if q.Kind != hermes.Clarification || len(q.Items) != len(test.items) || q.Items[0].Text != "Which quarter?" ||
					!cmp.Equal(q.Items[0].Choices, []string{"Q1", "Q2"}) || !strings.HasPrefix(q.Text, "Which quarter?") {
					r.Errorf("question %+v", q)
				}
				if err := s.AnswerClarification(r.Context(), q.ID, test.answers); err != nil {
					r.Fatal(err)
				}
				r.completed(s)
				if isStrict(dialect) {
					if diff := cmp.Diff(test.strict, any(r.fake.Answers()[0].Result)); diff != "" {
						r.Error(diff)
					}
					return
				}
				call := r.fake.Calls("clarify.respond")[0].Params
				if diff := cmp.Diff(map[string]any{"request_id": q.ID, "answer": test.old}, call); diff != "" {
					r.Error(diff)
				}
			})
		})
	}
}

// Ensures that what people do not answer is refused at once, so that the agent
// does not hang (W5).
func TestW05_UnknownRequests(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sudo", "secret", "vault.code", "weather"} {
		inDialects(t, func(r *rig, _ hermestest.Dialect) {
			began := time.Now()
			r.fake.Script(profile, hermestest.Ask(kind), hermestest.Complete(""))
			events := r.rest(r.submit("x"))
			if end := events[len(events)-1].(hermes.Completed); end.Text != "["+kind+": error -32601]" {
				r.Errorf("answer %q", end.Text)
			}
			for _, event := range events {
				if _, ok := event.(hermes.Asked); ok {
					r.Errorf("it was shown to people: %+v", event)
				}
			}
			if took := time.Since(began); took > time.Second {
				r.Errorf("it took %v", took)
			}
		}, hermestest.DialectNew, hermestest.DialectGated)
	}
}

// Ensures that a question that expires is closed, and that a late answer says so
// and is not repeated (W6).
func TestW06_Expires(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, dialect hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Approval("x", "once"), hermestest.Hold(gate), hermestest.Complete(""))
		s := r.submit("x")
		q := until[hermes.Asked](r, s).Question
		<-gate.Reached() // after 300 s of the fake's time
		if dialect != hermestest.Dialect019 {
			if closed := until[hermes.Answered](r, s); closed.ID != q.ID || closed.Reason != "timeout" {
				r.Errorf("closed %+v", closed)
			}
		}
		r.wantKind(s.AnswerApproval(r.Context(), q.ID, hermes.Once), hermes.KindExpired)
		r.wantKind(s.AnswerApproval(r.Context(), q.ID, hermes.Once), hermes.KindExpired)
		if got := len(r.fake.Calls("approval.respond")); got > 1 {
			r.Errorf("answered %d times", got)
		}
		gate.Open()
		r.completed(s)
	})
}

// Ensures that open questions are shown once, whether the event repeats or a
// resume reports them (W3, W9).
func TestQuestion_ShownOnce(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Approval("x", "once"), hermestest.Complete(""))
		s := r.submit("x")
		q := until[hermes.Asked](r, s).Question
		r.fake.DropConnections()
		until[hermes.Reconnected](r, s)
		if err := s.AnswerApproval(r.Context(), q.ID, hermes.Once); err != nil {
			r.Fatal(err)
		}
		for _, event := range r.rest(s) {
			if _, ok := event.(hermes.Asked); ok {
				r.Error("it was shown again")
			}
		}
	})
}

// Ensures that an approval whose event was lost is asked for while the session
// waits.
func TestQuestion_LostEvent(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.SetLoseQuestions()
		r.fake.Script(profile, hermestest.Approval("x", "once"), hermestest.Complete(""))
		s := r.submit("x")
		q := until[hermes.Asked](r, s).Question
		if err := s.AnswerApproval(r.Context(), q.ID, hermes.Once); err != nil {
			r.Fatal(err)
		}
		if got := r.completed(s); got != "[approval: once]" {
			r.Errorf("answer %q", got)
		}
	}, hermestest.DialectOld)
}

// Ensures that an answer that is not acknowledged is uncertain, and not repeated
// by itself where the server counts answers.
func TestQuestion_AnswerUncertain(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Approval("x", "once"), hermestest.Complete(""))
		s := r.submit("x")
		q := until[hermes.Asked](r, s).Question
		r.fake.Inject(hermestest.After("approval.respond", hermestest.Drop()))
		err := s.AnswerApproval(r.Context(), q.ID, hermes.Once)
		r.wantKind(err, hermes.KindUncertain)
		if got := r.completed(s); got != "[approval: once]" {
			r.Errorf("answer %q", got)
		}
		if got := len(r.fake.Calls("approval.respond")); got != 1 {
			r.Errorf("answered %d times", got)
		}
	}, hermestest.Dialect019, hermestest.DialectOld)
}

// Ensures that nothing dangerous is ever sent.
func TestNothingDangerous(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Approval("x"), hermestest.Complete(""))
		s := r.submit("x")
		if err := s.AnswerApproval(r.Context(), until[hermes.Asked](r, s).Question.ID, hermes.Once); err != nil {
			r.Fatal(err)
		}
		r.completed(s)
		for _, call := range r.fake.Calls("") {
			raw, err := json.Marshal(call)
			if err != nil {
				r.Fatal(err)
			}
			for _, word := range []string{"always", `"all"`, "truncate", "yolo", "queued"} {
				if strings.Contains(string(raw), word) {
					r.Errorf("%q was sent: %s", word, raw)
				}
			}
		}
	})
}
