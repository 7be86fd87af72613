package workspace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

func newAgent(change func(*workspace.NewAgent)) workspace.NewAgent {
	in := workspace.NewAgent{Name: workspace.Some("竹儿"), Profile: workspace.Some("default")}
	change(&in)
	return in
}

// Ensure that a new agent has the defaults of section 2.1 and exactly one direct
// chat with the values of section 2.3 (scenario 5).
func TestCreateAgent(t *testing.T) {
	t.Parallel()
	in := newAgent(func(in *workspace.NewAgent) { in.Name = workspace.Some("\ufeff 竹儿\t") })
	a, direct, err := workspace.CreateAgent(in, id[workspace.AgentID](1), id[workspace.ConversationID](2), now)
	if err != nil {
		t.Fatal(err)
	}
	want := workspace.Agent{ID: id[workspace.AgentID](1), Name: "竹儿", NodeID: "local", Profile: "default", Revision: 1, CreatedAt: now, UpdatedAt: now}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
	wantDirect := workspace.Conversation{
		ID: id[workspace.ConversationID](2), Kind: workspace.Direct, Name: "竹儿",
		MemberIDs: []workspace.AgentID{a.ID}, AdministratorID: a.ID, Mode: workspace.ModeHost,
		AutoReplyIDs: []workspace.AgentID{}, MaxReplyRounds: 1,
		Activity:  workspace.Activity{ActiveAgentStates: map[workspace.AgentID]workspace.TaskStatus{}},
		CreatedAt: now, UpdatedAt: now,
	}
	if diff := cmp.Diff(wantDirect, direct); diff != "" {
		t.Errorf("direct chat (-want +got):\n%s", diff)
	}
}

// Ensure that each bound of section 2.1 holds at its edge and one beyond, and
// that the fault names its field.
func TestAgentBounds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*workspace.NewAgent)
		field  string // "" where the request is fine
	}{
		"name of 100":             {func(in *workspace.NewAgent) { in.Name = workspace.Some(strings.Repeat("名", 100)) }, ""},
		"name of 101":             {func(in *workspace.NewAgent) { in.Name = workspace.Some(strings.Repeat("名", 101)) }, "name"},
		"name of 100 astral":      {func(in *workspace.NewAgent) { in.Name = workspace.Some(strings.Repeat("😀", 100)) }, ""},
		"blank name":              {func(in *workspace.NewAgent) { in.Name = workspace.Some(" \t") }, "name"},
		"name with @":             {func(in *workspace.NewAgent) { in.Name = workspace.Some("a@b") }, "name"},
		"name with newline":       {func(in *workspace.NewAgent) { in.Name = workspace.Some("a\nb") }, "name"},
		"name with NUL":           {func(in *workspace.NewAgent) { in.Name = workspace.Some("a\x00b") }, "name"},
		"name not UTF-8":          {func(in *workspace.NewAgent) { in.Name = workspace.Some("a\xff") }, "name"},
		"name all":                {func(in *workspace.NewAgent) { in.Name = workspace.Some("All") }, "name"},
		"name 所有人":                {func(in *workspace.NewAgent) { in.Name = workspace.Some("所有人") }, "name"},
		"name 所有人员":               {func(in *workspace.NewAgent) { in.Name = workspace.Some("所有人员") }, ""},
		"no name":                 {func(in *workspace.NewAgent) { in.Name = workspace.Optional[string]{} }, "name"},
		"null name":               {func(in *workspace.NewAgent) { in.Name = workspace.Null[string]() }, "name"},
		"no profile":              {func(in *workspace.NewAgent) { in.Profile = workspace.Optional[string]{} }, "profile"},
		"empty profile":           {func(in *workspace.NewAgent) { in.Profile = workspace.Some("") }, "profile"},
		"profile of 256":          {func(in *workspace.NewAgent) { in.Profile = workspace.Some(strings.Repeat("p", 256)) }, ""},
		"profile of 257":          {func(in *workspace.NewAgent) { in.Profile = workspace.Some(strings.Repeat("p", 257)) }, "profile"},
		"instructions of 24000":   {func(in *workspace.NewAgent) { in.Instructions = workspace.Some(strings.Repeat("则", 24000)) }, ""},
		"instructions of 24001":   {func(in *workspace.NewAgent) { in.Instructions = workspace.Some(strings.Repeat("则", 24001)) }, "instructions"},
		"null instructions":       {func(in *workspace.NewAgent) { in.Instructions = workspace.Null[string]() }, "instructions"},
		"node of a user":          {func(in *workspace.NewAgent) { in.NodeID = workspace.Some(id[workspace.NodeID](9)) }, ""},
		"node that is no id":      {func(in *workspace.NewAgent) { in.NodeID = workspace.Some[workspace.NodeID]("../x") }, "nodeId"},
		"avatar that is a script": {func(in *workspace.NewAgent) { in.Avatar = workspace.Some("javascript:alert(1)") }, "avatar"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := workspace.CreateAgent(newAgent(tt.change), "a", "c", now)
			if tt.field == "" {
				wantCode(t, err, "")
				return
			}
			wantCode(t, err, workspace.CodeInvalidRequest)
			if refusal, ok := errors.AsType[*workspace.Error](err); !ok || !strings.HasPrefix(refusal.Text, tt.field+": ") {
				t.Errorf("text %v does not begin with %q", err, tt.field)
			}
		})
	}
}

// Ensure that names are the same whatever their case and Unicode form
// (scenario 7, section 5.2).
func TestNameKey(t *testing.T) {
	t.Parallel()
	same := [][2]string{{"Ann", "aNN"}, {"é", "e\u0301"}, {"ſ", "S"}, {"Σ", "ς"}, {" Ann ", "ann"}, {"K", "\u212a"}}
	for _, pair := range same {
		if workspace.NameKey(pair[0]) != workspace.NameKey(pair[1]) {
			t.Errorf("%q and %q have different keys", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"Ann", "Anna"}, {"é", "e"}, {"竹儿", "瑶儿"}} {
		if workspace.NameKey(pair[0]) == workspace.NameKey(pair[1]) {
			t.Errorf("%q and %q have the same key", pair[0], pair[1])
		}
	}
}

// Ensure that an edit touches what it names alone, counts a revision, and is
// mirrored on the direct chat (section 3.1, scenarios 9 and 10).
func TestEditAgent(t *testing.T) {
	t.Parallel()
	in := newAgent(func(in *workspace.NewAgent) { in.Avatar = workspace.Some("builtin:team-animal:fox") })
	a, direct, err := workspace.CreateAgent(in, id[workspace.AgentID](1), id[workspace.ConversationID](2), now)
	if err != nil {
		t.Fatal(err)
	}
	edit, err := workspace.EditAgent(a, direct, workspace.AgentPatch{Instructions: workspace.Some("少说")}, now+5)
	if err != nil {
		t.Fatal(err)
	}
	want := a
	want.Instructions, want.Revision, want.UpdatedAt = "少说", 2, now+5
	if diff := cmp.Diff(want, edit.Agent); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
	renamed, err := workspace.EditAgent(a, direct, workspace.AgentPatch{Name: workspace.Some("瑶儿"), Archived: workspace.Some(true)}, now+5)
	if err != nil {
		t.Fatal(err)
	}
	if d := renamed.Direct; d.Name != "瑶儿" || !d.Archived || d.Avatar != a.Avatar || d.Public().Avatar != renamed.Agent.Public().Avatar {
		t.Errorf("direct chat does not mirror its agent: %+v", d)
	}
	if !renamed.StopRuns || edit.StopRuns {
		t.Errorf("archiving asks to stop runs: %v, another edit: %v", renamed.StopRuns, edit.StopRuns)
	}
}

// Ensure that an empty patch changes nothing and a wrong one is refused
// (section 11, item 32).
func TestEditAgentNothingAndNull(t *testing.T) {
	t.Parallel()
	a, direct, err := workspace.CreateAgent(newAgent(func(*workspace.NewAgent) {}), "a", "c", now)
	if err != nil {
		t.Fatal(err)
	}
	edit, err := workspace.EditAgent(a, direct, workspace.AgentPatch{}, now+5)
	if err != nil || edit.Changed || edit.Agent != a {
		t.Errorf("empty patch: %+v, %v", edit, err)
	}
	for _, p := range []workspace.AgentPatch{
		{Avatar: workspace.Null[string]()},
		{Archived: workspace.Null[bool]()},
		{Name: workspace.Some("")},
	} {
		_, err := workspace.EditAgent(a, direct, p, now+5)
		wantCode(t, err, workspace.CodeInvalidRequest)
	}
}

// Ensure that an agent needs a live source (scenario 8).
func TestRequireSource(t *testing.T) {
	t.Parallel()
	a := agent(1, "A")
	live := []workspace.Source{{NodeID: "local", Profile: "other"}, {NodeID: id[workspace.NodeID](1), Profile: "default"}}
	wantCode(t, workspace.RequireSource(a, live), workspace.CodeSourceUnavailable)
	wantCode(t, workspace.RequireSource(a, append(live, workspace.Source{NodeID: "local", Profile: "default"})), "")
}

// Ensure that only the accepted avatar strings of section 2.14 are accepted.
func TestValidAvatar(t *testing.T) {
	t.Parallel()
	head := "data:image/png;base64,"
	accepted := []string{
		"", head + "iVBORw0KGgo=", "data:image/jpeg;base64,/9j/4AAQ", "data:image/webp;base64,UklGRg==",
		"yaoyao-mascot:v1:cloud:A1b2C3:calm", "yaoyao-mascot:v1:droplet:009957:friendly",
		"builtin:team-animal:whale",
		head + strings.Repeat("A", workspace.MaxAvatar-len(head)),
	}
	for _, s := range accepted {
		if !workspace.ValidAvatar(s) {
			t.Errorf("%.60q was refused", s)
		}
	}
	refused := []string{
		"javascript:alert(1)", "https://x.example/a.png", "data:image/svg+xml;base64,PHN2Zz4=", "data:text/html;base64,AAAA",
		head, head + "<script>", head + "AAAA\nAAAA", head + "A===", "data:image/png;base64", " " + head + "AAAA",
		"yaoyao-mascot:v1:star:009957:calm", "yaoyao-mascot:v1:cloud:00995:calm", "yaoyao-mascot:v2:cloud:009957:calm",
		"yaoyao-mascot:v1:cloud:009957:angry", "builtin:team-animal:cat", "builtin:team-animal:fox\n",
		head + strings.Repeat("A", workspace.MaxAvatar-len(head)+4),
	}
	for _, s := range refused {
		if workspace.ValidAvatar(s) {
			t.Errorf("%.60q was accepted", s)
		}
	}
}

// Ensure that the derived portrait is the one of section 2.14, by values that
// were computed elsewhere, and that it depends on the id alone (scenario 10).
func TestDerivedAvatar(t *testing.T) {
	t.Parallel()
	for agentID, want := range map[workspace.AgentID]string{
		"2f0c0000-0000-4000-8000-000000000001": "yaoyao-mascot:v1:triangle:01a492:focused",
		"c3b80000-0000-4000-8000-000000000002": "yaoyao-mascot:v1:circle:009957:focused",
	} {
		if got := workspace.DerivedAvatar(agentID); got != want || !workspace.ValidAvatar(got) {
			t.Errorf("portrait of %s = %q, want %q", agentID, got, want)
		}
	}
	before, after := agent(1, "A"), agent(1, "B")
	if before.Public().Avatar != after.Public().Avatar || before.Avatar != "" {
		t.Error("the portrait depends on more than the id, or was stored")
	}
}
