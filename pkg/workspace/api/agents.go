package api

import (
	"context"
	"net/http"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

type agentList struct {
	Agents []workspace.Agent `json:"agents"`
}

type agentBody struct {
	Agent workspace.Agent `json:"agent"`
}

// agents answers GET /agents (section 3.1).
func (a *API) agents(r *request) error {
	agents, err := a.opts.Store.Agents(r.Context(), r.owner)
	if err != nil {
		return err
	}
	for i, agent := range agents {
		agents[i] = agent.Public()
	}
	return r.json(http.StatusOK, agentList{agents})
}

// createAgent answers POST /agents. Of all sources only those of the node that
// the agent is to stand on are asked for, so that another node that does not
// answer delays nothing.
func (a *API) createAgent(r *request) error {
	var in workspace.NewAgent
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	on := in.NodeID.Or(workspace.LocalNode)
	agent, err := a.opts.Store.CreateAgent(r.Context(), r.owner, in, func(ctx context.Context) ([]workspace.Source, error) {
		return a.sourcesOn(ctx, r, on)
	})
	if err != nil {
		return err
	}
	return r.json(http.StatusCreated, agentBody{agent})
}

// editAgent answers PATCH /agents/:id.
func (a *API) editAgent(r *request) error {
	id, err := pathID[workspace.AgentID](r, "id")
	if err != nil {
		return err
	}
	var in workspace.AgentPatch
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	agent, stopped, err := a.opts.Store.EditAgent(r.Context(), r.owner, id, in)
	if err != nil {
		return err
	}
	a.carryOut(stopped)
	return r.json(http.StatusOK, agentBody{agent})
}
