package workspace_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that a new group has the defaults of section 2.3.
func TestCreateGroupDefaults(t *testing.T) {
	t.Parallel()
	c := mustGroup(t, team(2))
	want := workspace.Conversation{
		ID: id[workspace.ConversationID](100), Kind: workspace.Group, Name: "小组",
		MemberIDs: ids(team(2)), MemberRoles: map[workspace.AgentID]workspace.Role{},
		AdministratorID: id[workspace.AgentID](1), Mode: workspace.ModeHost,
		AutoReplyIDs: []workspace.AgentID{}, MaxReplyRounds: 3,
		Activity:  workspace.Activity{ActiveAgentStates: map[workspace.AgentID]workspace.TaskStatus{}},
		CreatedAt: now, UpdatedAt: now,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
}

// Ensure that a group is created with 2 to 8 members, and with no fewer and no
// more (section 5.1, scenario 11).
func TestCreateGroupSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]workspace.Code{
		1: workspace.CodeInvalidRequest, 2: "", 8: "", 9: workspace.CodeInvalidRequest,
	} {
		agents := team(n)
		_, err := workspace.CreateGroup(request(agents), agents, "c", now)
		wantCode(t, err, want)
	}
}

// Ensure that a request for a group is refused with the code of its first
// fault, in the order of section 3.2.
func TestCreateGroupRefusals(t *testing.T) {
	t.Parallel()
	a, b, stranger := id[workspace.AgentID](1), id[workspace.AgentID](2), id[workspace.AgentID](9)
	archived := team(2)
	gone := archived[b]
	gone.Archived = true
	archived[b] = gone
	tests := map[string]struct {
		change func(*workspace.NewGroup)
		agents map[workspace.AgentID]workspace.Agent
		want   workspace.Code
	}{
		"no name":              {func(in *workspace.NewGroup) { in.Name = workspace.Optional[string]{} }, nil, workspace.CodeInvalidRequest},
		"no administrator":     {func(in *workspace.NewGroup) { in.AdministratorID = workspace.Optional[workspace.AgentID]{} }, nil, workspace.CodeInvalidRequest},
		"member that is no id": {func(in *workspace.NewGroup) { in.MemberIDs = workspace.Some([]workspace.AgentID{a, "b"}) }, nil, workspace.CodeInvalidRequest},
		"unknown mode":         {func(in *workspace.NewGroup) { in.Mode = workspace.Some[workspace.Mode]("boss") }, nil, workspace.CodeInvalidRequest},
		"null mode":            {func(in *workspace.NewGroup) { in.Mode = workspace.Null[workspace.Mode]() }, nil, workspace.CodeInvalidRequest},
		"role without name": {func(in *workspace.NewGroup) {
			in.MemberRoles = workspace.Some(map[workspace.AgentID]workspace.Role{a: {}})
		}, nil, workspace.CodeInvalidRequest},
		"duty of 501": {func(in *workspace.NewGroup) {
			in.MemberRoles = workspace.Some(map[workspace.AgentID]workspace.Role{a: {Name: "n", Description: strings.Repeat("职", 501)}})
		}, nil, workspace.CodeInvalidRequest},
		"member twice":          {func(in *workspace.NewGroup) { in.MemberIDs = workspace.Some([]workspace.AgentID{a, a}) }, nil, workspace.CodeInvalidMembers},
		"administrator outside": {func(in *workspace.NewGroup) { in.AdministratorID = workspace.Some(stranger) }, nil, workspace.CodeInvalidMembers},
		"automatic outside":     {func(in *workspace.NewGroup) { in.AutoReplyIDs = workspace.Some([]workspace.AgentID{stranger}) }, nil, workspace.CodeInvalidMembers},
		"role outside": {func(in *workspace.NewGroup) {
			in.MemberRoles = workspace.Some(map[workspace.AgentID]workspace.Role{stranger: {Name: "n"}})
		}, nil, workspace.CodeInvalidMembers},
		"member of another user (scenario 14)": {func(in *workspace.NewGroup) { in.MemberIDs = workspace.Some([]workspace.AgentID{a, stranger}) }, nil, workspace.CodeRowNotFound},
		"archived member (scenario 14)":        {func(*workspace.NewGroup) {}, archived, workspace.CodeAgentArchived},
		"faults of members come before missing ones": {func(in *workspace.NewGroup) {
			in.MemberIDs = workspace.Some([]workspace.AgentID{a, stranger})
			in.AdministratorID = workspace.Some(b)
		}, nil, workspace.CodeInvalidMembers},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents := tt.agents
			if agents == nil {
				agents = team(2)
			}
			in := request(team(2))
			tt.change(&in)
			_, err := workspace.CreateGroup(in, agents, "c", now)
			wantCode(t, err, tt.want)
		})
	}
}

// Ensure that ids are compared in lower case and role names trimmed.
func TestCreateGroupNormalises(t *testing.T) {
	t.Parallel()
	agents := map[workspace.AgentID]workspace.Agent{}
	for i := 0xa; i <= 0xb; i++ {
		agents[id[workspace.AgentID](i)] = agent(i, string(rune('A'+i)))
	}
	upper := func(id workspace.AgentID) workspace.AgentID { return workspace.AgentID(strings.ToUpper(string(id))) }
	in := request(agents)
	first := ids(agents)[0]
	in.AdministratorID = workspace.Some(upper(first))
	in.MemberRoles = workspace.Some(map[workspace.AgentID]workspace.Role{upper(first): {Name: " 主理 "}})
	c, err := workspace.CreateGroup(in, agents, "c", now)
	if err != nil {
		t.Fatal(err)
	}
	if c.AdministratorID != first || c.MemberRoles[first].Name != "主理" {
		t.Errorf("administrator %s, roles %v", c.AdministratorID, c.MemberRoles)
	}
	in.MemberRoles = workspace.Some(map[workspace.AgentID]workspace.Role{upper(first): {Name: "x"}, first: {Name: "y"}})
	_, err = workspace.CreateGroup(in, agents, "c", now)
	wantCode(t, err, workspace.CodeInvalidRequest)
}

// Ensure that changing the administrator and removing the old one are two saves
// (section 5.1, scenario 12), and that a group may shrink to its administrator
// alone but no further (scenario 13).
func TestAdministratorChangeIsTwoSaves(t *testing.T) {
	t.Parallel()
	agents := team(2)
	a, b := id[workspace.AgentID](1), id[workspace.AgentID](2)
	c := mustGroup(t, agents)
	onlyB := workspace.Some([]workspace.AgentID{b})
	for _, p := range []workspace.ConversationPatch{
		{MemberIDs: onlyB},
		{MemberIDs: onlyB, AdministratorID: workspace.Some(b)},
	} {
		_, err := workspace.EditConversation(c, p, agents, now)
		wantCode(t, err, workspace.CodeAdminRequired)
	}
	first := mustEdit(t, c, workspace.ConversationPatch{AdministratorID: workspace.Some(b)}, agents)
	second := mustEdit(t, first.Conversation, workspace.ConversationPatch{MemberIDs: onlyB}, agents)
	if diff := cmp.Diff([]workspace.AgentID{a}, second.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if got := second.Conversation; got.AdministratorID != b || len(got.MemberIDs) != 1 {
		t.Errorf("group after both saves: %+v", got)
	}
	_, err := workspace.EditConversation(c, workspace.ConversationPatch{MemberIDs: workspace.Some([]workspace.AgentID{})}, agents, now)
	wantCode(t, err, workspace.CodeInvalidRequest)
}

// Ensure that a removed member leaves the automatic members and the roles in
// the same save, and that nothing moves the time of the last message (section
// 5.6, scenario 15).
func TestRemoveMember(t *testing.T) {
	t.Parallel()
	agents := team(3)
	a, b, c3 := id[workspace.AgentID](1), id[workspace.AgentID](2), id[workspace.AgentID](3)
	at := workspace.Millis(5)
	c := mustGroup(t, agents)
	c.LastMessageAt = &at
	c = mustEdit(t, c, workspace.ConversationPatch{
		AutoReplyIDs: workspace.Some([]workspace.AgentID{b, c3, b}),
		MemberRoles:  workspace.Some(map[workspace.AgentID]workspace.Role{a: {Name: "主理"}, b: {Name: "执行"}}),
	}, agents).Conversation
	edit := mustEdit(t, c, workspace.ConversationPatch{MemberIDs: workspace.Some([]workspace.AgentID{c3, a})}, agents)
	got := edit.Conversation
	if diff := cmp.Diff([]workspace.AgentID{c3}, got.AutoReplyIDs); diff != "" {
		t.Errorf("automatic members (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[workspace.AgentID]workspace.Role{a: {Name: "主理"}}, got.MemberRoles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]workspace.AgentID{c3, a}, got.MemberIDs); diff != "" {
		t.Errorf("display order (-want +got):\n%s", diff)
	}
	if *got.LastMessageAt != at || got.UpdatedAt != now+1 {
		t.Errorf("last message at %d, updated at %d", *got.LastMessageAt, got.UpdatedAt)
	}
	if len(c.MemberRoles) != 2 || len(c.AutoReplyIDs) != 2 || len(c.MemberIDs) != 3 {
		t.Errorf("the edit changed the conversation that it was given: %+v", c)
	}
}

// Ensure that old members may be named although the same save removes them, and
// that those who never were members may not (section 3.2).
func TestEditNamesOldMembers(t *testing.T) {
	t.Parallel()
	agents := team(2)
	a, b, stranger := id[workspace.AgentID](1), id[workspace.AgentID](2), id[workspace.AgentID](9)
	c := mustGroup(t, agents)
	onlyA := workspace.Some([]workspace.AgentID{a})
	edit := mustEdit(t, c, workspace.ConversationPatch{
		MemberIDs: onlyA, AutoReplyIDs: workspace.Some([]workspace.AgentID{b}),
		MemberRoles: workspace.Some(map[workspace.AgentID]workspace.Role{b: {Name: "x"}}),
	}, agents)
	if got := edit.Conversation; len(got.AutoReplyIDs) != 0 || len(got.MemberRoles) != 0 {
		t.Errorf("a removed member stayed: %+v", got)
	}
	for _, p := range []workspace.ConversationPatch{
		{AutoReplyIDs: workspace.Some([]workspace.AgentID{stranger})},
		{MemberRoles: workspace.Some(map[workspace.AgentID]workspace.Role{stranger: {Name: "x"}})},
		{AdministratorID: workspace.Some(stranger)},
		{MemberIDs: workspace.Some([]workspace.AgentID{a, b, b})},
	} {
		_, err := workspace.EditConversation(c, p, agents, now)
		wantCode(t, err, workspace.CodeInvalidMembers)
	}
}

// Ensure that new members exist and are not archived, and that an archived one
// that was inside may stay (section 5.1, scenario 14).
func TestAddMembers(t *testing.T) {
	t.Parallel()
	agents := team(4)
	for _, n := range []int{2, 4} {
		a := agents[id[workspace.AgentID](n)]
		a.Archived = true
		agents[a.ID] = a
	}
	c := mustGroup(t, team(2))
	add := func(n int) workspace.ConversationPatch {
		return workspace.ConversationPatch{MemberIDs: workspace.Some(append(slices.Clone(c.MemberIDs), id[workspace.AgentID](n)))}
	}
	edit := mustEdit(t, c, add(3), agents)
	if diff := cmp.Diff([]workspace.AgentID{id[workspace.AgentID](3)}, edit.Added); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	_, err := workspace.EditConversation(c, add(4), agents, now)
	wantCode(t, err, workspace.CodeAgentArchived)
	_, err = workspace.EditConversation(c, add(7), agents, now)
	wantCode(t, err, workspace.CodeRowNotFound)
}

// Ensure that of a direct chat the pin alone may be edited, whatever the value
// (section 5.4, scenario 16).
func TestEditDirect(t *testing.T) {
	t.Parallel()
	_, direct, err := workspace.CreateAgent(newAgent(func(*workspace.NewAgent) {}), id[workspace.AgentID](1), "c", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []workspace.ConversationPatch{
		{Name: workspace.Some(direct.Name)},
		{Archived: workspace.Some(false)},
		{Mode: workspace.Some(workspace.ModeHost), Pinned: workspace.Some(true)},
	} {
		_, err := workspace.EditConversation(direct, p, nil, now)
		wantCode(t, err, workspace.CodeEditAgentInstead)
	}
	edit := mustEdit(t, direct, workspace.ConversationPatch{Pinned: workspace.Some(true)}, nil)
	if !edit.Conversation.Pinned || !edit.Changed {
		t.Errorf("pinning: %+v", edit)
	}
	if nothing := mustEdit(t, direct, workspace.ConversationPatch{}, nil); nothing.Changed || nothing.Conversation.UpdatedAt != now {
		t.Errorf("empty patch: %+v", nothing)
	}
}

// Ensure that the limit of rounds is -1 or 1 to 100 (scenario 17).
func TestReplyRounds(t *testing.T) {
	t.Parallel()
	c := mustGroup(t, team(2))
	for n, want := range map[int]workspace.Code{
		0: workspace.CodeInvalidRequest, 101: workspace.CodeInvalidRequest, -2: workspace.CodeInvalidRequest, -1: "", 1: "", 100: "",
	} {
		_, err := workspace.EditConversation(c, workspace.ConversationPatch{MaxReplyRounds: workspace.Some(n)}, nil, now)
		wantCode(t, err, want)
	}
}

// Ensure that archiving a group asks to stop its runs, that restoring does not,
// and that an empty patch changes nothing (section 5.5, section 11 item 32).
func TestArchiveGroup(t *testing.T) {
	t.Parallel()
	c := mustGroup(t, team(2))
	archived := mustEdit(t, c, workspace.ConversationPatch{Archived: workspace.Some(true)}, nil)
	if !archived.StopRuns || !archived.Conversation.Archived {
		t.Errorf("archiving: %+v", archived)
	}
	restored := mustEdit(t, archived.Conversation, workspace.ConversationPatch{Archived: workspace.Some(false)}, nil)
	if restored.StopRuns || restored.Conversation.Archived {
		t.Errorf("restoring: %+v", restored)
	}
	if nothing := mustEdit(t, c, workspace.ConversationPatch{}, nil); nothing.Changed || !cmp.Equal(c, nothing.Conversation) {
		t.Errorf("empty patch: %+v", nothing)
	}
}

// Ensure that a patch with roles replaces the whole map (section 2.4), and that
// a null is refused where absence is fine.
func TestRolesAreReplaced(t *testing.T) {
	t.Parallel()
	a, b := id[workspace.AgentID](1), id[workspace.AgentID](2)
	c := mustGroup(t, team(2))
	for _, key := range []workspace.AgentID{a, b} {
		c = mustEdit(t, c, workspace.ConversationPatch{MemberRoles: workspace.Some(map[workspace.AgentID]workspace.Role{key: {Name: "x"}})}, nil).Conversation
	}
	if got := slices.Collect(maps.Keys(c.MemberRoles)); !slices.Equal(got, []workspace.AgentID{b}) {
		t.Errorf("roles of %v, want of %s alone", got, b)
	}
	_, err := workspace.EditConversation(c, workspace.ConversationPatch{MemberRoles: workspace.Null[map[workspace.AgentID]workspace.Role]()}, nil, now)
	wantCode(t, err, workspace.CodeInvalidRequest)
}

// Ensure the order of a list (section 3.2, scenario 28): pinned first, then the
// last message, where 0 is a valid time, then the id by code point.
func TestCompareConversations(t *testing.T) {
	t.Parallel()
	at := func(ms workspace.Millis) *workspace.Millis { return &ms }
	want := []workspace.Conversation{
		{ID: "z", Pinned: true, CreatedAt: 1},
		{ID: "d", LastMessageAt: at(9), CreatedAt: 1},
		{ID: "c", CreatedAt: 7},
		{ID: "B", LastMessageAt: at(5), CreatedAt: 50},
		{ID: "a", LastMessageAt: at(5), CreatedAt: 60},
		{ID: "e", LastMessageAt: at(0), CreatedAt: 100},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, workspace.CompareConversations)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// Ensure that only a member's tasks can be stopped by its name (section 3.5).
func TestRequireMember(t *testing.T) {
	t.Parallel()
	c := mustGroup(t, team(2))
	wantCode(t, workspace.RequireMember(c, id[workspace.AgentID](2)), "")
	wantCode(t, workspace.RequireMember(c, id[workspace.AgentID](3)), workspace.CodeInvalidMembers)
}

// FuzzEditConversation holds, for any patch of any members: what is accepted
// keeps the promises of section 5.1 to 5.6, and the given conversation stays.
func FuzzEditConversation(f *testing.F) {
	f.Add([]byte{1, 2}, []byte{2}, byte(1), 3, true)
	f.Add([]byte{2, 3, 3}, []byte{9}, byte(2), 0, false)
	f.Fuzz(func(t *testing.T, membersIn, autoIn []byte, admin byte, rounds int, changeAdmin bool) {
		agents := team(9)
		gone := agents[id[workspace.AgentID](9)]
		gone.Archived = true
		agents[gone.ID] = gone
		c := mustGroup(t, team(3))
		before := mustGroup(t, team(3))
		toIDs := func(bytes []byte) []workspace.AgentID {
			list := make([]workspace.AgentID, len(bytes))
			for i, b := range bytes {
				list[i] = id[workspace.AgentID](int(b))
			}
			return list
		}
		p := workspace.ConversationPatch{
			MemberIDs: workspace.Some(toIDs(membersIn)), AutoReplyIDs: workspace.Some(toIDs(autoIn)),
			MaxReplyRounds: workspace.Some(rounds),
		}
		if changeAdmin {
			p.AdministratorID = workspace.Some(id[workspace.AgentID](int(admin)))
		}
		edit, err := workspace.EditConversation(c, p, agents, now)
		if !cmp.Equal(before, c) {
			t.Fatal("the edit changed the conversation that it was given")
		}
		if err != nil {
			if workspace.CodeOf(err) == workspace.CodeInternal {
				t.Fatalf("error without a code: %v", err)
			}
			return
		}
		got := edit.Conversation
		if !got.HasMember(got.AdministratorID) || !got.HasMember(c.AdministratorID) || got.HasMember(gone.ID) {
			t.Fatalf("members %v, administrator %s", got.MemberIDs, got.AdministratorID)
		}
		for _, auto := range got.AutoReplyIDs {
			if !got.HasMember(auto) {
				t.Fatalf("automatic member %s is no member of %v", auto, got.MemberIDs)
			}
		}
		if len(got.MemberIDs) > workspace.MaxMembers || len(c.MemberIDs)+len(edit.Added)-len(edit.Removed) != len(got.MemberIDs) {
			t.Fatalf("%d members, %d added, %d removed", len(got.MemberIDs), len(edit.Added), len(edit.Removed))
		}
	})
}
