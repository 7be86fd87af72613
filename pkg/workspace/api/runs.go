package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// answerTime bounds how long the upstream may take to acknowledge an answer.
const answerTime = 35 * time.Second

// stopRun answers POST /runs/:id/stop (sections 3.5 and 6.9).
func (a *API) stopRun(r *request) error {
	id, err := pathID[workspace.RunID](r, "id")
	if err != nil {
		return err
	}
	if err := r.noMembers(); err != nil {
		return err
	}
	stopped, err := a.opts.Store.StopRun(r.Context(), r.owner, id)
	if err != nil {
		return err
	}
	a.carryOut(stopped)
	return r.ok(http.StatusOK)
}

// stopMember answers POST /conversations/:id/agents/:agentId/stop.
func (a *API) stopMember(r *request) error {
	id, err := pathID[workspace.ConversationID](r, "id")
	if err != nil {
		return err
	}
	if err := r.noMembers(); err != nil {
		return err
	}
	// Of a chat that is the user's own, what is no id is no member either.
	agent := workspace.AgentID(r.PathValue("agent"))
	if known, ok := workspace.ParseID[workspace.AgentID](string(agent)); ok {
		agent = known
	}
	stopped, err := a.opts.Store.StopMember(r.Context(), r.owner, id, agent)
	if err != nil {
		return err
	}
	a.carryOut(stopped)
	return r.ok(http.StatusOK)
}

// reconcile answers POST /runs/:id/reconcile: what is uncertain is looked at in
// the background (sections 3.5 and 6.10).
func (a *API) reconcile(r *request) error {
	id, err := pathID[workspace.RunID](r, "id")
	if err != nil {
		return err
	}
	if err := r.noMembers(); err != nil {
		return err
	}
	uncertain, err := a.opts.Store.UncertainTasks(r.Context(), r.owner, id)
	if err != nil {
		return err
	}
	if len(uncertain) > 0 {
		a.opts.Runtime.Check(uncertain)
	}
	return r.ok(http.StatusAccepted)
}

// respond answers POST /interactions/:id/respond. The answer is stored as sending
// before the upstream is called, and is never sent again by itself
// (section 6.11).
func (a *API) respond(r *request) error {
	id, err := pathID[workspace.InteractionID](r, "id")
	if err != nil {
		return err
	}
	var in workspace.AnswerInteraction
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	question, call, err := a.opts.Store.Respond(r.Context(), r.owner, id, in, a.opts.Runtime.Online)
	if err != nil {
		return err
	}
	if call {
		if err := a.deliver(r, question); err != nil {
			return err
		}
	}
	return r.ok(http.StatusOK)
}

// deliver hands an answer to the upstream and stores what became of it. A client
// that leaves meanwhile changes nothing.
func (a *API) deliver(r *request, question workspace.Interaction) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTime)
	defer cancel()
	r.extend(2 * answerTime)
	outcome, code := workspace.Interaction.Sent, workspace.Code("")
	err := a.opts.Runtime.Answer(ctx, r.owner, question)
	switch {
	case errors.Is(err, ErrRejected):
		outcome, code = workspace.Interaction.Rejected, workspace.CodeAnswerOffline
	case err != nil:
		outcome, code = workspace.Interaction.Lost, workspace.CodeAnswerUncertain
	}
	if _, err := a.opts.Store.Responded(context.WithoutCancel(ctx), r.owner, question.ID, outcome); err != nil {
		return fmt.Errorf("storing what became of an answer: %w", err)
	}
	a.opts.Runtime.Wake()
	if code != "" {
		return workspace.FailCause(code, err)
	}
	return nil
}
