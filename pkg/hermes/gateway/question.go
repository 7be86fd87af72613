package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/newos4/relay/pkg/hermes"
)

// form is how a question came, and so how it is answered.
type form struct {
	event   bool            // by an event, answered by a call
	request json.RawMessage // else the id of the server's request
	batch   bool            // a clarification of several questions
	unnamed bool            // an approval without an id: the oldest one is answered
}

// question is a question with what is needed to answer it.
type question struct {
	hermes.Question
	form   form
	number int
	closed bool
	answer any // what was sent as the request's result
}

// requested handles a request of the server. Whatever people do not answer is
// refused at once: a silent client blocks the agent. The lock is held.
func (s *session) requested(f frame) {
	var scope struct {
		SessionID string `json:"session_id"`
	}
	_ = json.Unmarshal(f.Params, &scope)
	if scope.SessionID != "" && scope.SessionID != s.state.RuntimeID {
		return
	}
	switch f.Method {
	case "approval":
		s.ask(approvalOf(f.Params, form{request: f.ID}))
	case "clarify":
		s.ask(clarificationOf(f.Params, form{request: f.ID}))
	default:
		l := s.link
		s.spawnLocked(func(ctx context.Context) { l.refuse(ctx, f.ID, f.Method) })
	}
}

// refuse answers a server's request with "unknown method".
func (l *link) refuse(ctx context.Context, id json.RawMessage, method string) {
	_ = l.write(ctx, "refuse a request", map[string]any{
		"jsonrpc": "2.0", "id": id, "error": rpcError{Code: codeNoMethod, Message: "not supported: " + method},
	})
}

// approvalOf reads an approval, or returns nil.
func approvalOf(raw json.RawMessage, form form) *question {
	var p struct {
		RequestID   string   `json:"request_id"`
		Command     string   `json:"command"`
		Description string   `json:"description"`
		Choices     []string `json:"choices"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil
	}
	q := &question{form: form, Question: hermes.Question{
		ID: p.RequestID, Kind: hermes.Approval, Text: p.Description, Detail: p.Command,
	}}
	for _, choice := range []hermes.Choice{hermes.Once, hermes.ForSession, hermes.Deny} {
		if len(p.Choices) == 0 && choice != hermes.ForSession || slices.Contains(p.Choices, string(choice)) {
			q.Choices = append(q.Choices, choice)
		}
	}
	q.form.unnamed = p.RequestID == ""
	q.adoptRequest()
	return q
}

// clarificationOf reads a clarification, or returns nil.
func clarificationOf(raw json.RawMessage, form form) *question {
	type item struct {
		QID      string   `json:"qid"`
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
		Multiple bool     `json:"multi_select"`
	}
	var p struct {
		RequestID string `json:"request_id"`
		item
		Questions []item `json:"questions"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil
	}
	form.batch = len(p.Questions) > 0
	if !form.batch {
		p.Questions = []item{p.item}
	}
	q := &question{form: form, Question: hermes.Question{ID: p.RequestID, Kind: hermes.Clarification}}
	var texts []string
	for i, row := range p.Questions {
		if row.QID == "" {
			row.QID = fmt.Sprintf("q%d", i+1)
		}
		q.Items = append(q.Items, hermes.Item{ID: row.QID, Text: row.Question, Choices: row.Choices, Multiple: row.Multiple})
		texts = append(texts, row.Question)
	}
	q.Text = strings.Join(texts, "\n")
	q.adoptRequest()
	return q
}

// adoptRequest makes the id of the server's request that of the question.
func (q *question) adoptRequest() {
	var id string
	if json.Unmarshal(q.form.request, &id) == nil && id != "" {
		q.ID = id
	} else if len(q.form.request) > 0 {
		q.ID = string(q.form.request)
	}
}

// ask tells of a question, once. One that was answered, and is open still, gets
// its answer again. The lock is held.
func (s *session) ask(q *question) {
	if q == nil {
		return
	}
	s.asked++
	q.number = s.asked
	if q.ID == "" {
		q.ID = fmt.Sprintf("%s-%d", q.Kind, q.number)
	}
	if known := s.questions[q.ID]; known != nil {
		if known.answer != nil {
			known.form = q.form
			l, answer := s.link, known.answer
			s.spawnLocked(func(ctx context.Context) { _ = l.reply(ctx, "repeat an answer", q.form.request, answer) })
		}
		return
	}
	s.questions[q.ID] = q
	s.queue.add(hermes.Asked{Question: q.Question})
}

// closeQuestion notes that a question is open no longer. The lock is held.
func (s *session) closeQuestion(id, reason string) {
	q := s.questions[id]
	if q == nil || q.closed {
		return
	}
	q.closed = true
	s.queue.add(hermes.Answered{ID: id, Reason: s.client.safe(reason)})
}

// closeQuestions closes all of them. The lock is held.
func (s *session) closeQuestions(reason string) {
	ids := make([]string, 0, len(s.questions))
	for id := range s.questions {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return s.questions[a].number - s.questions[b].number })
	for _, id := range ids {
		s.closeQuestion(id, reason)
	}
}

// open returns a question that can be answered.
func (s *session) openQuestion(doing, id string, kind hermes.QuestionKind) (*question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.questions[id]
	if q == nil || q.Kind != kind {
		return nil, &hermes.Error{Kind: hermes.KindNotFound, Doing: doing, Text: "there is no such question"}
	}
	if q.closed {
		return nil, expired(doing)
	}
	return q, nil
}

func expired(doing string) *hermes.Error {
	return &hermes.Error{Kind: hermes.KindExpired, Doing: doing, Text: "the question is no longer open"}
}

// AnswerApproval answers an approval.
func (s *session) AnswerApproval(ctx context.Context, id string, choice hermes.Choice) error {
	const doing = "answer an approval"
	q, err := s.openQuestion(doing, id, hermes.Approval)
	if err != nil {
		return err
	}
	if !slices.Contains(q.Choices, choice) {
		return &hermes.Error{Kind: hermes.KindRejected, Doing: doing, Text: fmt.Sprintf("choice %.20q is not offered", choice)}
	}
	if !q.form.event {
		return s.answerRequest(ctx, doing, q, map[string]any{"choice": choice})
	}
	params := map[string]any{"choice": choice}
	if !q.form.unnamed {
		params["request_id"] = q.ID
	}
	var result struct {
		Resolved *int   `json:"resolved"`
		Status   string `json:"status"`
	}
	if err := s.callScoped(ctx, doing, "approval.respond", params, s.client.timers.Answer, &result); err != nil {
		return s.answerFailure(doing, q, err)
	}
	if result.Resolved != nil && *result.Resolved == 0 || result.Status == "expired" {
		return s.answerFailure(doing, q, expired(doing))
	}
	s.answered(q, nil)
	return nil
}

// AnswerClarification answers a clarification.
func (s *session) AnswerClarification(ctx context.Context, id string, answers hermes.Answers) error {
	const doing = "answer a clarification"
	q, err := s.openQuestion(doing, id, hermes.Clarification)
	if err != nil {
		return err
	}
	if !q.form.event {
		return s.answerRequest(ctx, doing, q, q.result(answers))
	}
	l, err := s.await(ctx, doing)
	if err != nil {
		return err
	}
	var result struct {
		Status string `json:"status"`
	}
	err = l.call(ctx, doing, "clarify.respond", map[string]any{"request_id": q.ID, "answer": q.oldAnswer(answers)}, s.client.timers.Answer, &result)
	if codeOf(err) == codeNoMethod {
		err = l.call(ctx, doing, "request.answer", map[string]any{"id": q.ID, "result": q.result(answers)}, s.client.timers.Answer, &result)
	}
	if codeOf(err) == codeBusy || err == nil && result.Status == "expired" {
		err = expired(doing)
	}
	if err != nil {
		return s.answerFailure(doing, q, err)
	}
	s.answered(q, nil)
	return nil
}

// result is the answers as the result of a request. A skipped item is null, and a
// cancelled question has an empty result.
func (q *question) result(answers hermes.Answers) map[string]any {
	if answers == nil {
		return map[string]any{}
	}
	values := make(map[string]any)
	for _, item := range q.Items {
		values[item.ID] = itemValue(item, answers[item.ID])
	}
	return map[string]any{"answers": values}
}

// oldAnswer is the answers as old builds take them: the text itself, or for a
// batch a JSON object in a string.
func (q *question) oldAnswer(answers hermes.Answers) string {
	if answers == nil {
		return ""
	}
	if !q.form.batch {
		text, _ := itemValue(q.Items[0], answers[q.Items[0].ID]).(string)
		return text
	}
	return encode(q.result(answers)["answers"])
}

func encode(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}

// itemValue is the answer to one item: null if it is skipped, and a JSON list in
// a string if more than one value is allowed.
func itemValue(item hermes.Item, values []string) any {
	switch {
	case len(values) == 0:
		return nil
	case item.Multiple:
		return encode(values)
	default:
		return values[0]
	}
}

// answerRequest answers a server's request. Nothing acknowledges a result; one
// that got lost is repeated when the question is shown again.
func (s *session) answerRequest(ctx context.Context, doing string, q *question, result any) error {
	l, err := s.await(ctx, doing)
	if err != nil {
		return err
	}
	s.mu.Lock()
	q.answer = result
	request := q.form.request
	s.mu.Unlock()
	if err := l.reply(ctx, doing, request, result); err != nil {
		return s.answerFailure(doing, q, err)
	}
	s.answered(q, result)
	return nil
}

// reply sends the result of a server's request.
func (l *link) reply(ctx context.Context, doing string, id json.RawMessage, result any) error {
	return l.write(ctx, doing, map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// answered notes that a question has its answer.
func (s *session) answered(q *question, result any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.answer = result
	s.closeQuestion(q.ID, "resolved")
}

// answerFailure returns the failure of an answer: one that may have arrived is
// uncertain, and a question that is gone is closed.
func (s *session) answerFailure(doing string, q *question, err error) error {
	if hermes.KindOf(err) == hermes.KindExpired {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closeQuestion(q.ID, "expired")
		return err
	}
	return uncertain(doing, err)
}
