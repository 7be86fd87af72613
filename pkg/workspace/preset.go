package workspace

import (
	"fmt"
	"slices"
)

// Preset is a team that a new group may start from (section 5.7). It assigns
// its roles to agents that exist, and creates none.
type Preset struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Summary string `json:"summary"`
	// Instructions are the rules of the group.
	Instructions string `json:"instructions"`
	// Roles has the leading role first.
	Roles []PresetRole `json:"roles"`
}

// PresetRole is one part in a team.
type PresetRole struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Host marks the leading role, whose agent administers the group.
	Host bool `json:"host"`
}

// Presets returns the eight teams.
func Presets() []Preset {
	copied := slices.Clone(presets)
	for i := range copied {
		copied[i].Roles = slices.Clone(copied[i].Roles)
	}
	return copied
}

// Missing returns how many agents that are not archived are missing for the
// team; 0 means that it may be used.
func (p Preset) Missing(agents []Agent) int {
	usable := keep(agents, func(a Agent) bool { return !a.Archived })
	return max(0, len(p.Roles)-len(usable))
}

// Assign returns the assignment with the agent in the given role. An agent that
// had another role already swaps with the one it replaces, so that nobody has
// two. Place i of an assignment is the agent of role i.
func Assign(assignment []AgentID, role int, agent AgentID) []AgentID {
	next := slices.Clone(assignment)
	if other := slices.Index(next, agent); other >= 0 {
		next[other] = next[role]
	}
	next[role] = agent
	return next
}

// Apply returns the request that creates the team's group with one agent for
// each role, all of which may be changed before it is sent. It refuses an
// assignment that leaves a role open, names an agent twice, or names one that is
// archived or not the owner's.
func (p Preset) Apply(assignment []AgentID, agents map[AgentID]Agent) (NewGroup, error) {
	if len(assignment) != len(p.Roles) {
		return NewGroup{}, FailText(CodeInvalidMembers, fmt.Sprintf("该模板需要 %d 个角色，已选择 %d 个", len(p.Roles), len(assignment)))
	}
	if len(unique(assignment)) != len(assignment) {
		return NewGroup{}, FailText(CodeInvalidMembers, "同一角色不能承担两项分工")
	}
	if err := checkAdded(assignment, agents); err != nil {
		return NewGroup{}, err
	}
	group := NewGroup{
		Name:           Some(p.Name),
		MemberIDs:      Some(slices.Clone(assignment)),
		Instructions:   Some(p.Instructions),
		Mode:           Some(ModeHost),
		AutoReplyIDs:   Some([]AgentID{}),
		MaxReplyRounds: Some(DefaultReplyRounds),
	}
	duties := make(map[AgentID]Role, len(p.Roles))
	for i, role := range p.Roles {
		duties[assignment[i]] = Role{Name: role.Name, Description: role.Description}
		if role.Host {
			group.AdministratorID = Some(assignment[i])
		}
	}
	group.MemberRoles = Some(duties)
	return group, nil
}
