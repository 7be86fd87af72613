package workspace_test

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that there are the eight teams of section 5.7, each with its number of
// roles, one that leads and stands first, and texts within the bounds of a group
// (scenario 79).
func TestPresets(t *testing.T) {
	t.Parallel()
	want := []string{"research", "product", "engineering", "writing", "project", "data", "meeting", "operations"}
	sizes := []int{4, 5, 5, 4, 4, 4, 4, 4}
	presets := workspace.Presets()
	if len(presets) != len(want) {
		t.Fatalf("%d presets", len(presets))
	}
	for i, p := range presets {
		if p.ID != want[i] || len(p.Roles) != sizes[i] || p.Summary == "" || p.Instructions == "" {
			t.Errorf("preset %d: %s with %d roles", i, p.ID, len(p.Roles))
		}
		for j, role := range p.Roles {
			if role.Host != (j == 0) || role.Name == "" || role.Description == "" || utf8.RuneCountInString(role.Description) > workspace.MaxRoleDescription {
				t.Errorf("preset %s: role %+v", p.ID, role)
			}
		}
	}
	presets[0].Roles[0].Name = "changed"
	if workspace.Presets()[0].Roles[0].Name == "changed" {
		t.Error("a caller can change the presets")
	}
}

// Ensure that a team needs as many agents that are not archived as it has roles
// (scenario 79).
func TestPresetMissing(t *testing.T) {
	t.Parallel()
	agents := []workspace.Agent{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d", Archived: true}}
	for _, p := range workspace.Presets() {
		if got, want := p.Missing(agents), len(p.Roles)-3; got != want {
			t.Errorf("preset %s misses %d, want %d", p.ID, got, want)
		}
	}
	if got := workspace.Presets()[0].Missing(append(agents, workspace.Agent{ID: "e"}, workspace.Agent{ID: "f"})); got != 0 {
		t.Errorf("with five agents a team of four misses %d", got)
	}
}

// Ensure that applying a team gives every member its role and the lead the
// administration, and leaves the agents as they were (scenario 79).
func TestApplyPreset(t *testing.T) {
	t.Parallel()
	agents := team(5)
	before := team(5)
	for _, p := range workspace.Presets() {
		assignment := ids(agents)[:len(p.Roles)]
		in, err := p.Apply(assignment, agents)
		if err != nil {
			t.Fatal(err)
		}
		c, err := workspace.CreateGroup(in, agents, "c", now)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.MemberRoles) != len(p.Roles) || c.AdministratorID != assignment[0] || c.Mode != workspace.ModeHost ||
			c.MaxReplyRounds != 3 || len(c.AutoReplyIDs) != 0 || c.Name != p.Name || c.Instructions != p.Instructions {
			t.Errorf("preset %s gives %+v", p.ID, c)
		}
	}
	if diff := cmp.Diff(before, agents); diff != "" {
		t.Errorf("the agents changed:\n%s", diff)
	}
}

// Ensure that a team is not applied with too few agents, one agent twice, an
// archived one or another user's.
func TestApplyPresetRefusals(t *testing.T) {
	t.Parallel()
	p := workspace.Presets()[0]
	agents := team(5)
	archived := agents[id[workspace.AgentID](5)]
	archived.Archived = true
	agents[archived.ID] = archived
	all := ids(agents)
	for name, tt := range map[string]struct {
		assignment []workspace.AgentID
		want       workspace.Code
	}{
		"three":        {all[:3], workspace.CodeInvalidMembers},
		"one twice":    {[]workspace.AgentID{all[0], all[1], all[2], all[0]}, workspace.CodeInvalidMembers},
		"archived":     {all[1:5], workspace.CodeAgentArchived},
		"another user": {[]workspace.AgentID{all[0], all[1], all[2], id[workspace.AgentID](9)}, workspace.CodeRowNotFound},
	} {
		_, err := p.Apply(tt.assignment, agents)
		if workspace.CodeOf(err) != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// Ensure that choosing an agent that has a role already swaps the two (section
// 5.7).
func TestAssignSwaps(t *testing.T) {
	t.Parallel()
	old := []workspace.AgentID{"a", "b", "c"}
	for _, tt := range []struct {
		role  int
		agent workspace.AgentID
		want  []workspace.AgentID
	}{
		{0, "c", []workspace.AgentID{"c", "b", "a"}},
		{1, "x", []workspace.AgentID{"a", "x", "c"}},
		{1, "b", []workspace.AgentID{"a", "b", "c"}},
	} {
		if diff := cmp.Diff(tt.want, workspace.Assign(old, tt.role, tt.agent)); diff != "" {
			t.Errorf("role %d to %s (-want +got):\n%s", tt.role, tt.agent, diff)
		}
	}
}
