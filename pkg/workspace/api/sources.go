package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/workspace"
)

// askTime is how long an upstream may take to say what it has.
const askTime = 10 * time.Second

// Upstreams reaches Hermes servers.
type Upstreams interface {
	// Status asks a server what it is, without credentials.
	Status(ctx context.Context, t Target) (Status, error)
	// Profiles signs in where the server wants that, and returns the profiles on
	// which agents can stand.
	Profiles(ctx context.Context, t Target) ([]Profile, error)
	// Forget closes what is open to a node that is no longer there.
	Forget(node workspace.NodeID)
}

// Target is the built-in upstream or a node of somebody's.
type Target struct {
	// Node has the id [workspace.LocalNode] and no URL for the built-in upstream.
	Node        workspace.Node
	Credentials workspace.NodeCredentials
	// Confined asks to refuse addresses that [CheckAddress] refuses, at the moment
	// of dialling: a name may mean another address by then (section 9.8).
	Confined bool
}

// Status is what a server says of itself.
type Status struct {
	// Kind is its server_kind, empty for Hermes.
	Kind string
}

// Profile is a profile of an upstream.
type Profile struct {
	Name string
	// Title is the best name for people; empty for none.
	Title string
}

// errNoUpstream says that there is no Hermes to ask.
var errNoUpstream = errors.New("no upstream is configured")

type sourceList struct {
	Sources []workspace.Source `json:"sources"`
	Errors  []workspace.NodeID `json:"errors"`
}

// sources answers GET /agents/sources: the built-in upstream and all nodes of the
// user are asked at the same time, and one that fails costs only itself
// (section 3.1).
func (a *API) sources(r *request) error {
	targets, err := a.targets(r.Context(), r)
	if err != nil {
		return err
	}
	found := make([][]workspace.Source, len(targets))
	failed := make([]error, len(targets))
	var asking sync.WaitGroup
	for i, target := range targets {
		asking.Go(func() { found[i], failed[i] = a.ask(r.Context(), target) })
	}
	asking.Wait()
	list := sourceList{Sources: []workspace.Source{}, Errors: []workspace.NodeID{}}
	for i, target := range targets {
		list.Sources = append(list.Sources, found[i]...)
		if failed[i] != nil {
			a.opts.Logger.Warn("an upstream does not say which profiles it has", "node", string(target.Node.ID), "error", failed[i])
			list.Errors = append(list.Errors, target.Node.ID)
		}
	}
	return r.json(http.StatusOK, list)
}

// targets returns the built-in upstream and the user's nodes, in this order.
func (a *API) targets(ctx context.Context, r *request) ([]Target, error) {
	targets := []Target{{Node: workspace.Node{ID: workspace.LocalNode}}}
	nodes, err := a.opts.Store.Nodes(ctx, r.owner)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		target, err := a.target(ctx, r, node.ID)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

func (a *API) target(ctx context.Context, r *request, id workspace.NodeID) (Target, error) {
	if id == workspace.LocalNode {
		return Target{Node: workspace.Node{ID: id}}, nil
	}
	node, secret, err := a.opts.Store.Node(ctx, r.owner, id)
	if err != nil {
		return Target{}, err
	}
	return Target{Node: node, Credentials: secret, Confined: !r.user.IsAdmin()}, nil
}

// ask returns the sources of one upstream.
func (a *API) ask(ctx context.Context, t Target) ([]workspace.Source, error) {
	if a.opts.Upstreams == nil {
		return nil, errNoUpstream
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	profiles, err := a.opts.Upstreams.Profiles(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("asking for profiles: %w", err)
	}
	sources := make([]workspace.Source, len(profiles))
	for i, p := range profiles {
		sources[i] = workspace.Source{NodeID: t.Node.ID, Profile: p.Name, Name: p.Title}
		if p.Title == "" {
			sources[i].Name = p.Name
		}
	}
	return sources, nil
}

// sourcesOn returns the live sources of one node. A node that is not the user's,
// or does not answer, has none (section 3.1).
func (a *API) sourcesOn(ctx context.Context, r *request, id workspace.NodeID) ([]workspace.Source, error) {
	if known, ok := workspace.ParseID[workspace.NodeID](string(id)); ok {
		id = known
	}
	target, err := a.target(ctx, r, id)
	if workspace.CodeOf(err) == workspace.CodeRowNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sources, err := a.ask(ctx, target)
	if err != nil {
		a.opts.Logger.Warn("an agent cannot be created: its upstream does not answer", "node", string(id), "error", err)
		return nil, nil
	}
	return sources, nil
}
