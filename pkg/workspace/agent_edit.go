package workspace

import "slices"

// CreateAgent returns a new agent and its one direct chat (sections 3.1 and
// 5.4). That the name is free among those of the owner, by [NameKey], and that
// the source is there ([RequireSource]) is for the caller to ensure.
func CreateAgent(in NewAgent, id AgentID, direct ConversationID, now Millis) (Agent, Conversation, error) {
	var f faults
	required(&f, "name", in.Name)
	required(&f, "profile", in.Profile)
	a := Agent{
		ID:           id,
		Name:         checked(&f, "name", present(in.Name), agentName).Or(""),
		Avatar:       checked(&f, "avatar", in.Avatar, avatar).Or(""),
		Instructions: checked(&f, "instructions", in.Instructions, textOf(0, MaxInstructions)).Or(""),
		NodeID:       checked(&f, "nodeId", in.NodeID, node).Or(LocalNode),
		Profile:      checked(&f, "profile", present(in.Profile), textOf(1, MaxProfile)).Or(""),
		Revision:     1,
		CreatedAt:    now,
		UpdatedAt:    now,
	}
	if err := f.err(); err != nil {
		return Agent{}, Conversation{}, err
	}
	return a, newDirect(a, direct, now), nil
}

// present drops a null, which required has found already.
func present[T any](o Optional[T]) Optional[T] {
	if o.IsNull() {
		return Optional[T]{}
	}
	return o
}

func node(f *faults, field string, id NodeID) NodeID {
	if id == LocalNode {
		return id
	}
	return uuid(f, field, id)
}

// RequireSource returns an error with code [CodeSourceUnavailable] when the
// agent's pair of node and profile is not among the live sources (section 3.1).
func RequireSource(a Agent, live []Source) error {
	same := func(s Source) bool { return s.NodeID == a.NodeID && s.Profile == a.Profile }
	if !slices.ContainsFunc(live, same) {
		return Fail(CodeSourceUnavailable)
	}
	return nil
}

func newDirect(a Agent, id ConversationID, now Millis) Conversation {
	return mirror(Conversation{
		ID:              id,
		Kind:            Direct,
		MemberIDs:       []AgentID{a.ID},
		AdministratorID: a.ID,
		Mode:            ModeHost,
		AutoReplyIDs:    []AgentID{},
		MaxReplyRounds:  directReplyRounds,
		Activity:        Activity{ActiveAgentStates: map[AgentID]TaskStatus{}},
		CreatedAt:       now,
	}, a, now)
}

// mirror returns a direct chat with its agent's name, avatar and archive state.
func mirror(direct Conversation, a Agent, now Millis) Conversation {
	direct.Name, direct.Avatar, direct.Archived = a.Name, a.Avatar, a.Archived
	direct.UpdatedAt = now
	return direct
}

// AgentEdit is what an edit of an agent leads to.
type AgentEdit struct {
	Agent  Agent
	Direct Conversation
	// Changed is false for an empty patch, which appends no event.
	Changed bool
	// StopRuns asks to stop the live runs of the direct chat.
	StopRuns bool
}

// EditAgent returns what a patch makes of an agent and of its direct chat
// (section 3.1). What is absent stays; every edit that is not empty counts as a
// revision. That a new name is free among those of the owner is for the caller
// to ensure.
func EditAgent(a Agent, direct Conversation, p AgentPatch, now Millis) (AgentEdit, error) {
	var f faults
	p = AgentPatch{
		Name:         checked(&f, "name", p.Name, agentName),
		Avatar:       checked(&f, "avatar", p.Avatar, avatar),
		Instructions: checked(&f, "instructions", p.Instructions, textOf(0, MaxInstructions)),
		Archived:     checked(&f, "archived", p.Archived, anything),
	}
	if err := f.err(); err != nil {
		return AgentEdit{}, err
	}
	if p == (AgentPatch{}) {
		return AgentEdit{Agent: a, Direct: direct}, nil
	}
	a.Name = p.Name.Or(a.Name)
	a.Avatar = p.Avatar.Or(a.Avatar)
	a.Instructions = p.Instructions.Or(a.Instructions)
	a.Archived = p.Archived.Or(a.Archived)
	a.Revision++
	a.UpdatedAt = now
	return AgentEdit{Agent: a, Direct: mirror(direct, a, now), Changed: true, StopRuns: p.Archived.Or(false)}, nil
}
