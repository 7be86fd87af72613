package workspace_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that each change is the event of section 4.3: its type, whether it
// names a conversation, and the whole entity as clients see it.
func TestChanges(t *testing.T) {
	t.Parallel()
	a := agent(1, "A")
	direct := workspace.Conversation{ID: "c", Kind: workspace.Direct, AdministratorID: a.ID}
	tests := []struct {
		change       workspace.Change
		kind         workspace.EventType
		conversation workspace.ConversationID
		entity       string
	}{
		{workspace.AgentChanged(a), "agent.changed", "", string(a.ID)},
		{workspace.ConversationChanged(direct), "conversation.changed", "c", "c"},
		{workspace.MessageChanged(workspace.Message{ID: "m", ConversationID: "c", Hidden: true}), "message.changed", "c", "m"},
		{workspace.RunChanged(workspace.Run{ID: "r", ConversationID: "c"}), "run.changed", "c", "r"},
		{workspace.InteractionChanged(workspace.Interaction{ID: "i", ConversationID: "c"}), "interaction.changed", "c", "i"},
		{workspace.ContextChanged("c", []byte(`{"usedTokens":1}`)), "context.changed", "c", "c"},
		{workspace.FilesChanged(workspace.File{ID: "f"}), "files.changed", "", "f"},
		{workspace.NodesChanged(), "nodes.changed", "", ""},
	}
	for _, tt := range tests {
		if tt.change.Type != tt.kind || tt.change.ConversationID != tt.conversation || tt.change.EntityID != tt.entity {
			t.Errorf("change %+v, want %s of %q in %q", tt.change, tt.kind, tt.entity, tt.conversation)
		}
		if _, err := json.Marshal(tt.change.Data); err != nil {
			t.Errorf("data of %s: %v", tt.kind, err)
		}
	}
	shown, ok := workspace.ConversationChanged(direct).Data.(workspace.Conversation)
	if !ok || shown.Avatar != a.Public().Avatar {
		t.Errorf("an event does not show the derived portrait: %+v", shown)
	}
}

// Ensure that only old rows of messages and conversations that have a newer one
// go, and that the newest of each entity and owner stays (section 4.4).
func TestSuperseded(t *testing.T) {
	t.Parallel()
	old, young := now-workspace.SupersededAge-1, now-workspace.SupersededAge
	row := func(seq int64, owner workspace.OwnerID, kind workspace.EventType, entity string, at workspace.Millis) workspace.EventRow {
		return workspace.EventRow{Seq: seq, Owner: owner, Type: kind, EntityID: entity, CreatedAt: at}
	}
	rows := []workspace.EventRow{
		row(1, "u", workspace.EventMessage, "m", old),
		row(2, "u", workspace.EventConversation, "m", old),
		row(3, "v", workspace.EventMessage, "m", old),
		row(4, "u", workspace.EventRun, "r", old),
		row(5, "u", workspace.EventRun, "r", old),
		row(6, "u", workspace.EventMessage, "m", young),
		row(7, "u", workspace.EventMessage, "m", now),
		row(8, "u", workspace.EventConversation, "m", old),
	}
	if diff := cmp.Diff([]int64{1, 2}, workspace.Superseded(rows, now)); diff != "" {
		t.Errorf("superseded (-want +got):\n%s", diff)
	}
}
