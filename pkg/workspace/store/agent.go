package store

import (
	"context"
	"fmt"

	"github.com/newos4/relay/pkg/workspace"
)

const agentColumns = `id, name, node_id, profile, archived, revision, created_at, updated_at, instructions, `

func scanAgent(r row) (workspace.Agent, error) {
	var a workspace.Agent
	err := r.Scan((*string)(&a.ID), &a.Name, (*string)(&a.NodeID), &a.Profile, &a.Archived, &a.Revision,
		(*int64)(&a.CreatedAt), (*int64)(&a.UpdatedAt), &a.Instructions, &a.Avatar)
	return a, err
}

func scanShownAgent(r row) (workspace.Agent, error) {
	a, err := scanAgent(r)
	return a.Public(), err
}

// Agents returns the owner's agents as clients see them, archived ones included,
// by creation time and then by id (section 3.1).
func (s *Store) Agents(ctx context.Context, owner workspace.OwnerID) (agents []workspace.Agent, err error) {
	err = s.peek(ctx, "reading agents", func(v view) error {
		agents, err = all(v, scanShownAgent, `SELECT `+agentColumns+fmt.Sprintf(expanded, "agent")+
			` FROM agent WHERE owner = ? ORDER BY created_at, id`, owner)
		return err
	})
	return agents, err
}

// agent returns the agent as it is stored, or an error with code
// [workspace.CodeRowNotFound].
func (t *tx) agent(id workspace.AgentID) (workspace.Agent, error) {
	return found(one(t.view, scanAgent, `SELECT `+agentColumns+`avatar FROM agent WHERE owner = ? AND id = ?`, t.owner, id))
}

// agents returns those of the agents that exist, as they are stored.
func (t *tx) agents(ids []workspace.AgentID) (map[workspace.AgentID]workspace.Agent, error) {
	agents, err := all(t.view, scanAgent, `SELECT `+agentColumns+`avatar FROM agent
		WHERE owner = ? AND id IN (SELECT value FROM json_each(?))`, t.owner, encodeIDs(ids))
	known := make(map[workspace.AgentID]workspace.Agent, len(agents))
	for _, a := range agents {
		known[a.ID] = a
	}
	return known, err
}

// CreateAgent creates an agent and its one direct chat (section 3.1). Sources is
// asked for the live sources once the request is known to be right; it may take
// its time, since no transaction is open. A taken name has the code
// [workspace.CodeDuplicateName].
func (s *Store) CreateAgent(ctx context.Context, owner workspace.OwnerID, in workspace.NewAgent,
	sources func(context.Context) ([]workspace.Source, error)) (workspace.Agent, error) {
	agent, direct, err := workspace.CreateAgent(in,
		workspace.AgentID(s.opts.NewID()), workspace.ConversationID(s.opts.NewID()), s.now())
	if err != nil {
		return workspace.Agent{}, err
	}
	live, err := sources(ctx)
	if err != nil {
		return workspace.Agent{}, fmt.Errorf("asking for sources: %w", err)
	}
	if err := workspace.RequireSource(agent, live); err != nil {
		return workspace.Agent{}, err
	}
	if err := s.write(ctx, owner, "creating an agent", func(t *tx) error { return t.createAgent(agent, direct) }); err != nil {
		return workspace.Agent{}, err
	}
	return agent.Public(), nil
}

func (t *tx) createAgent(agent workspace.Agent, direct workspace.Conversation) (err error) {
	if agent.Avatar, err = t.intern(agent.Avatar); err != nil {
		return err
	}
	direct.Avatar = agent.Avatar
	_, err = t.exec(`INSERT INTO agent (owner, id, name, name_key, node_id, profile, archived, revision, created_at, updated_at, avatar, instructions)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, t.owner, agent.ID, agent.Name, workspace.NameKey(agent.Name), agent.NodeID, agent.Profile,
		agent.Archived, agent.Revision, agent.CreatedAt, agent.UpdatedAt, agent.Avatar, agent.Instructions)
	if err := nameTaken(err); err != nil {
		return err
	}
	c := chat{Conversation: direct}
	if err := t.insertChat(c); err != nil {
		return err
	}
	if err := t.changed(workspace.AgentChanged(agent)); err != nil {
		return err
	}
	return t.chatChanged(c)
}

// nameTaken turns the failure of a row whose name another agent has into the
// error that says so.
func nameTaken(err error) error {
	if isTaken(err) {
		return workspace.FailCause(workspace.CodeDuplicateName, err)
	}
	return err
}

// EditAgent edits an agent and with it its direct chat; archiving stops that
// chat's runs (section 3.1). It returns the agent and what still runs and must
// be interrupted upstream.
func (s *Store) EditAgent(ctx context.Context, owner workspace.OwnerID, id workspace.AgentID, p workspace.AgentPatch) (agent workspace.Agent, stopped Stopped, err error) {
	err = s.write(ctx, owner, "editing an agent", func(t *tx) error {
		agent, stopped, err = t.editAgent(id, p)
		return err
	})
	if err != nil {
		return workspace.Agent{}, Stopped{}, err
	}
	return agent.Public(), stopped, nil
}

func (t *tx) editAgent(id workspace.AgentID, p workspace.AgentPatch) (workspace.Agent, Stopped, error) {
	agent, err := t.agent(id)
	if err != nil {
		return agent, Stopped{}, err
	}
	c, err := t.directChat(id)
	if err != nil {
		return agent, Stopped{}, err
	}
	edit, err := workspace.EditAgent(agent, c.Conversation, p, t.now)
	if err != nil {
		return agent, Stopped{}, err
	}
	agent = edit.Agent
	var stopped Stopped
	if edit.Changed {
		if agent.Avatar, err = t.intern(agent.Avatar); err != nil {
			return agent, stopped, err
		}
		c.Conversation = edit.Direct
		c.Avatar = agent.Avatar
		if stopped, err = t.saveAgent(agent, c, edit.StopRuns); err != nil {
			return agent, stopped, err
		}
	}
	agent.Avatar, err = t.expand(t.owner, agent.Avatar)
	return agent, stopped, err
}

func (t *tx) saveAgent(agent workspace.Agent, c chat, stopRuns bool) (stopped Stopped, err error) {
	_, err = t.exec(`UPDATE agent SET name = ?, name_key = ?, archived = ?, revision = ?, updated_at = ?, avatar = ?, instructions = ?
		WHERE owner = ? AND id = ?`, agent.Name, workspace.NameKey(agent.Name), agent.Archived, agent.Revision, agent.UpdatedAt,
		agent.Avatar, agent.Instructions, t.owner, agent.ID)
	if err := nameTaken(err); err != nil {
		return stopped, err
	}
	if stopRuns {
		if stopped, err = t.stopAll(&c); err != nil {
			return stopped, err
		}
	}
	if err := t.saveChat(c); err != nil {
		return stopped, err
	}
	if err := t.changed(workspace.AgentChanged(agent)); err != nil {
		return stopped, err
	}
	return stopped, t.chatChanged(c)
}
