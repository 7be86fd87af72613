package store

import (
	"context"

	"github.com/newos4/relay/pkg/workspace"
)

// nodeSecret is the kind of the credentials of nodes.
const nodeSecret = "node"

func scanNode(r row) (workspace.Node, error) {
	var n workspace.Node
	err := r.Scan((*string)(&n.ID), &n.Name, &n.URL)
	return n, err
}

// Nodes returns the owner's nodes in the order of their creation.
func (s *Store) Nodes(ctx context.Context, owner workspace.OwnerID) (nodes []workspace.Node, err error) {
	err = s.peek(ctx, "reading nodes", func(v view) error {
		nodes, err = all(v, scanNode, `SELECT id, name, url FROM node WHERE owner = ? ORDER BY created_at, id`, owner)
		return err
	})
	return nodes, err
}

// Node returns a node of the owner with its credentials.
func (s *Store) Node(ctx context.Context, owner workspace.OwnerID, id workspace.NodeID) (n workspace.Node, secret workspace.NodeCredentials, err error) {
	err = s.read(ctx, "reading a node", func(v view) error {
		if n, err = found(one(v, scanNode, `SELECT id, name, url FROM node WHERE owner = ? AND id = ?`, owner, id)); err != nil {
			return err
		}
		return s.secret(v, place{owner, nodeSecret, string(id)}, &secret)
	})
	return n, secret, err
}

// AddNode stores a node that was checked and reached (section 3.8), its
// credentials encrypted. The store gives it its id.
func (s *Store) AddNode(ctx context.Context, owner workspace.OwnerID, n workspace.Node, secret workspace.NodeCredentials) (workspace.Node, error) {
	n.ID = workspace.NodeID(s.opts.NewID())
	err := s.write(ctx, owner, "adding a node", func(t *tx) error {
		_, err := t.exec(`INSERT INTO node (owner, id, name, url, created_at) VALUES (?, ?, ?, ?, ?)`, owner, n.ID, n.Name, n.URL, t.now)
		if err != nil {
			return err
		}
		if err := t.putSecret(place{owner, nodeSecret, string(n.ID)}, secret); err != nil {
			return err
		}
		return t.changed(workspace.NodesChanged())
	})
	return n, err
}

// DeleteNode removes a node and its credentials. Agents on it stay.
func (s *Store) DeleteNode(ctx context.Context, owner workspace.OwnerID, id workspace.NodeID) error {
	return s.write(ctx, owner, "deleting a node", func(t *tx) error {
		n, err := t.exec(`DELETE FROM node WHERE owner = ? AND id = ?`, owner, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return workspace.Fail(workspace.CodeRowNotFound)
		}
		if err := t.dropSecret(place{owner, nodeSecret, string(id)}); err != nil {
			return err
		}
		return t.changed(workspace.NodesChanged())
	})
}
