package runtime

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// ErrRejected says that the upstream did not take an answer for sure, so that
// another may be tried.
var ErrRejected = errors.New("the upstream did not take the answer")

// ask stores a question of the session, and reports whether the task still is
// this execution's.
func (e *execution) ask(ctx context.Context, q hermes.Question) bool {
	e.save(ctx)
	stored := store.Question{ID: q.ID, Kind: workspace.Approval, Message: questionText(q), Choices: choicesOf(q)}
	if q.Kind == hermes.Clarification {
		stored.Kind = workspace.Clarification
	}
	if !e.keep(ctx, func(ctx context.Context) error { return e.r.opts.Store.Ask(ctx, e.ref, stored) }) {
		return false
	}
	e.uncertain = false
	e.mu.Lock()
	e.questions[q.ID] = q
	e.mu.Unlock()
	return true
}

// closeQuestion stores that a question is no longer open.
func (e *execution) closeQuestion(ctx context.Context, event hermes.Answered) bool {
	e.mu.Lock()
	delete(e.questions, event.ID)
	e.mu.Unlock()
	return e.keep(ctx, func(ctx context.Context) error {
		return e.r.opts.Store.CloseQuestion(ctx, e.ref, event.ID, event.Reason == answeredByUs)
	})
}

// answeredByUs is the reason of a question that was closed by its answer.
const answeredByUs = "resolved"

// questionText returns what people read of a question.
func questionText(q hermes.Question) string {
	lines := []string{}
	if len(q.Items) < 2 {
		for _, line := range []string{q.Text, q.Detail} {
			if line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		return workspace.StripMarkers(strings.Join(lines, "\n"))
	}
	for i, item := range q.Items {
		line := fmt.Sprintf("%d. %s", i+1, item.Text)
		if len(item.Choices) > 0 {
			line += "（" + strings.Join(item.Choices, " / ") + "）"
		}
		lines = append(lines, line)
	}
	return workspace.StripMarkers(strings.Join(lines, "\n"))
}

// choicesOf returns the answers that are offered: of an approval, or of the only
// item of a clarification.
func choicesOf(q hermes.Question) []string {
	if q.Kind == hermes.Clarification && len(q.Items) == 1 {
		return q.Items[0].Choices
	}
	choices := []string{}
	for _, choice := range q.Choices {
		choices = append(choices, string(choice))
	}
	return choices
}

// Online reports whether there is a live connection of exactly the question's
// task, on which the question is open (section 6.11).
func (r *Runtime) Online(question workspace.Interaction) bool {
	_, _, ok := r.asking(question)
	return ok
}

// asking returns the session that asks a question, and the question as it has it.
func (r *Runtime) asking(question workspace.Interaction) (hermes.Session, hermes.Question, bool) {
	r.mu.Lock()
	e := r.executions[question.Origin.TaskID]
	r.mu.Unlock()
	if e == nil {
		return nil, hermes.Question{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	q, ok := e.questions[question.Origin.UpstreamRequestID]
	return e.session, q, ok && e.session != nil && e.online
}

// Answer hands the answer of a question to the upstream (section 6.11).
// [ErrRejected] is a definite no; after any other error nobody knows whether it
// arrived. The store is the caller's business.
func (r *Runtime) Answer(ctx context.Context, _ workspace.OwnerID, question workspace.Interaction) error {
	session, q, ok := r.asking(question)
	if !ok {
		return fmt.Errorf("answering a question that nobody asks: %w", ErrRejected)
	}
	var err error
	if q.Kind == hermes.Approval {
		err = session.AnswerApproval(ctx, q.ID, choiceOf(q, question.Answer))
	} else {
		err = session.AnswerClarification(ctx, q.ID, answersOf(q, question.Answer))
	}
	if err == nil {
		return nil
	}
	if hermes.ClassOf(err) == hermes.ClassRejected || hermes.KindOf(err) == hermes.KindDisconnected {
		return fmt.Errorf("answering a question: %w: %w", ErrRejected, err)
	}
	return fmt.Errorf("answering a question: %w", err)
}

// choiceOf returns what is sent for a word of section 6.11. What outlives the
// session is never sent, and what is not offered is the narrower consent.
func choiceOf(q hermes.Question, word string) hermes.Choice {
	switch word {
	case "deny":
		return hermes.Deny
	case "session", "always":
		if slices.Contains(q.Choices, hermes.ForSession) {
			return hermes.ForSession
		}
	}
	return hermes.Once
}

// numbered is how a line may begin that answers one of several items.
var numbered = regexp.MustCompile(`^\s*\d+\s*[.):：、]\s*`)

// answersOf gives the user's one text to the items of a clarification: a line for
// each when there are as many, and else all of it to each.
func answersOf(q hermes.Question, text string) hermes.Answers {
	answers := make(hermes.Answers, len(q.Items))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, item := range q.Items {
		part := strings.TrimSpace(text)
		if len(q.Items) > 1 && len(lines) == len(q.Items) {
			part = strings.TrimSpace(numbered.ReplaceAllString(lines[i], ""))
		}
		answers[item.ID] = valuesOf(item, part)
	}
	return answers
}

// valuesOf returns the values of one item: several where it allows them and all of
// them are choices.
func valuesOf(item hermes.Item, text string) []string {
	if !item.Multiple {
		return []string{text}
	}
	values := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n,，、;；", r) })
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
		if !slices.Contains(item.Choices, values[i]) {
			return []string{text}
		}
	}
	return values
}
