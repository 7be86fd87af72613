package workspace_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// now is the time at which everything in these tests happens.
const now workspace.Millis = 1_760_000_000_000

// id returns the n-th id of any kind.
func id[ID ~string](n int) ID { return ID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n)) }

// agent returns the n-th agent under the given name.
func agent(n int, name string) workspace.Agent {
	return workspace.Agent{ID: id[workspace.AgentID](n), Name: name, NodeID: workspace.LocalNode, Profile: "default", Revision: 1}
}

// team returns agents called A, B, C and so on, numbered from 1.
func team(n int) map[workspace.AgentID]workspace.Agent {
	agents := make(map[workspace.AgentID]workspace.Agent)
	for i := range n {
		a := agent(i+1, string(rune('A'+i)))
		agents[a.ID] = a
	}
	return agents
}

// ids returns the ids of a team in order.
func ids(agents map[workspace.AgentID]workspace.Agent) []workspace.AgentID {
	return slices.Sorted(maps.Keys(agents))
}

// request returns a request for a group of all the agents, the first of whom
// administers it.
func request(agents map[workspace.AgentID]workspace.Agent) workspace.NewGroup {
	return workspace.NewGroup{
		Name:            workspace.Some("小组"),
		MemberIDs:       workspace.Some(ids(agents)),
		AdministratorID: workspace.Some(ids(agents)[0]),
	}
}

// mustGroup returns a group of all the agents.
func mustGroup(t *testing.T, agents map[workspace.AgentID]workspace.Agent) workspace.Conversation {
	t.Helper()
	c, err := workspace.CreateGroup(request(agents), agents, id[workspace.ConversationID](100), now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mustEdit returns what the patch makes of the conversation.
func mustEdit(t *testing.T, c workspace.Conversation, p workspace.ConversationPatch, agents map[workspace.AgentID]workspace.Agent) workspace.ConversationEdit {
	t.Helper()
	edit, err := workspace.EditConversation(c, p, agents, now+1)
	if err != nil {
		t.Fatal(err)
	}
	return edit
}

// wantCode fails the test when err does not have the code; "" is for no error.
func wantCode(t *testing.T, err error, want workspace.Code) {
	t.Helper()
	if got := workspace.CodeOf(err); got != want {
		t.Errorf("error %v has code %q, want %q", err, got, want)
	}
}
