package api

import (
	"context"
	"net/http"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

func (a *API) nodeRoutes() []account.Route {
	return []account.Route{
		on(http.MethodGet, "/nodes", a.nodes),
		on(http.MethodPost, "/nodes", a.addNode),
		on(http.MethodDelete, "/nodes/{id}", a.deleteNode),
	}
}

type nodeList struct {
	Nodes []workspace.Node `json:"nodes"`
}

// nodes answers GET /nodes (section 3.8).
func (a *API) nodes(r *request) error {
	nodes, err := a.opts.Store.Nodes(r.Context(), r.owner)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, nodeList{nodes})
}

// addNode answers POST /nodes: what is stored was reached and signed in to.
func (a *API) addNode(r *request) error {
	var in workspace.NewNode
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	node, secret, err := workspace.CheckNode(in, "")
	if err != nil {
		return err
	}
	target := Target{Node: node, Credentials: secret, Confined: !r.user.IsAdmin()}
	if err := a.reach(r.Context(), target); err != nil {
		return err
	}
	if _, err := a.opts.Store.AddNode(r.Context(), r.owner, node, secret); err != nil {
		return err
	}
	return r.ok(http.StatusCreated)
}

// reach finds out whether a node is an upstream that can be used.
func (a *API) reach(ctx context.Context, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if t.Confined {
		if err := checkHost(ctx, t.Node.URL); err != nil {
			return err
		}
	}
	status, err := a.opts.Upstreams.Status(ctx, t)
	if err != nil {
		return workspace.FailCause(workspace.CodeNodeUnavailable, err)
	}
	if status.Kind == workspace.ServerKind {
		return workspace.Fail(workspace.CodeNativeGateway)
	}
	if _, err := a.opts.Upstreams.Profiles(ctx, t); err != nil {
		return workspace.FailCause(workspace.CodeNodeUnavailable, err)
	}
	return nil
}

// deleteNode answers DELETE /nodes/:id.
func (a *API) deleteNode(r *request) error {
	id, err := pathID[workspace.NodeID](r, "id")
	if err != nil {
		return err
	}
	if err := r.noMembers(); err != nil {
		return err
	}
	if err := a.opts.Store.DeleteNode(r.Context(), r.owner, id); err != nil {
		return err
	}
	a.opts.Upstreams.Forget(id)
	a.opts.Runtime.Wake()
	return r.ok(http.StatusOK)
}
