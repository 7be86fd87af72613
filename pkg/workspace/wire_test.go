package workspace_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that entities have the wire form of section 2: camelCase, times in
// milliseconds, and what is absent left out instead of null.
func TestWireForm(t *testing.T) {
	t.Parallel()
	zero := workspace.Millis(0)
	tests := map[string]struct {
		value any
		want  string
	}{
		"2.1 agent": {
			workspace.Agent{ID: "a", Name: "竹儿", NodeID: workspace.LocalNode, Profile: "default", Revision: 1, CreatedAt: 2, UpdatedAt: 3},
			`{"id":"a","name":"竹儿","avatar":"","instructions":"","nodeId":"local","profile":"default","archived":false,"revision":1,"createdAt":2,"updatedAt":3}`,
		},
		"2.3 empty group": {
			workspace.Conversation{ID: "c", Kind: workspace.Group, MemberRoles: map[workspace.AgentID]workspace.Role{}, Mode: workspace.ModeHost, MaxReplyRounds: 3},
			`{"id":"c","kind":"group","name":"","avatar":"","memberIds":[],"memberRoles":{},"instructions":"","administratorId":"","mode":"host","autoReplyIds":[],"maxReplyRounds":3,"archived":false,"pinned":false,"readSeq":0,"lastSeq":0,"preview":"","activeAgentStates":{},"queuedMessageCount":0,"createdAt":0,"updatedAt":0}`,
		},
		"2.3 direct chat whose last message came at time 0": {
			workspace.Conversation{ID: "c", Kind: workspace.Direct, LastMessageAt: &zero},
			`{"id":"c","kind":"direct","name":"","avatar":"","memberIds":[],"instructions":"","administratorId":"","mode":"","autoReplyIds":[],"maxReplyRounds":0,"archived":false,"pinned":false,"readSeq":0,"lastSeq":0,"lastMessageAt":0,"preview":"","activeAgentStates":{},"queuedMessageCount":0,"createdAt":0,"updatedAt":0}`,
		},
		"2.5 hidden message": {
			workspace.Message{ID: "m", ConversationID: "c", Seq: 1, Role: workspace.RoleAssistant, Hidden: true, Status: workspace.MessageStreaming},
			`{"id":"m","conversationId":"c","seq":1,"role":"assistant","content":"","reasoning":"","visible":false,"status":"streaming","attachments":[],"tools":[],"createdAt":0}`,
		},
		"2.5 visible message": {
			workspace.Message{ID: "m", ConversationID: "c", Seq: 1, Role: workspace.RoleUser, Status: workspace.MessageComplete},
			`{"id":"m","conversationId":"c","seq":1,"role":"user","content":"","reasoning":"","status":"complete","attachments":[],"tools":[],"createdAt":0}`,
		},
		"2.7 queued run": {
			workspace.Run{ID: "r", ConversationID: "c", MessageID: "m", Status: workspace.RunQueued},
			`{"id":"r","conversationId":"c","messageId":"m","mentionIds":[],"status":"queued","round":0,"createdAt":0,"updatedAt":0}`,
		},
		"2.9 open interaction, its origin left out": {
			workspace.Interaction{ID: "i", Kind: workspace.Approval, Origin: workspace.InteractionFrom{TaskID: "t"}},
			`{"id":"i","conversationId":"","runId":"","agentId":"","kind":"approval","message":"","choices":[],"resolved":false}`,
		},
		"2.10 event of nodes": {
			workspace.Event{Seq: 7, Type: workspace.EventNodes, Data: []byte(`{}`)},
			`{"seq":7,"type":"nodes.changed","data":{}}`,
		},
		"2.12 uploaded file": {
			workspace.File{ID: "f", Name: "a.txt", MIMEType: "text/plain", Size: 3, Sender: workspace.SenderUser},
			`{"id":"f","name":"a.txt","mimeType":"text/plain","size":3,"createdAt":0,"sender":"user"}`,
		},
		"2.16 snapshot keeps null": {
			workspace.SessionContext{UsedTokens: workspace.Some[int64](5), LimitTokens: workspace.Null[int64]()},
			`{"usedTokens":5,"limitTokens":null}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(tt.value, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("wire form (-want +got):\n%s", diff)
			}
		})
	}
}

// Ensure that a request tells absent, null and a value apart, and that
// strictness reaches into its fields (section 1.8).
func TestOptionalDecoding(t *testing.T) {
	t.Parallel()
	var patch workspace.ConversationPatch
	strict := json.RejectUnknownMembers(true)
	if err := json.Unmarshal([]byte(`{"name":null,"pinned":false}`), &patch, strict); err != nil {
		t.Fatal(err)
	}
	if !patch.Name.IsNull() || !patch.Name.Present() {
		t.Errorf("name = %+v, want null", patch.Name)
	}
	if pinned, ok := patch.Pinned.Get(); !ok || pinned {
		t.Errorf("pinned = %+v, want false", patch.Pinned)
	}
	if patch.Archived.Present() {
		t.Errorf("archived = %+v, want absent", patch.Archived)
	}
	for _, body := range []string{
		`{"topicId":"x"}`,
		`{"memberRoles":{"a":{"name":"n","duty":"d"}}}`,
		`{"maxReplyRounds":1.5}`,
		`{"pinned":"yes"}`,
	} {
		if err := json.Unmarshal([]byte(body), &workspace.ConversationPatch{}, strict); err == nil {
			t.Errorf("%s was accepted", body)
		}
	}
}

// Ensure that a message read back is the message written, hidden or not.
func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	for _, hidden := range []workspace.Hidden{true, false} {
		want := workspace.Message{ID: "m", Seq: 4, Role: workspace.RoleAssistant, Hidden: hidden,
			Attachments: []workspace.File{{ID: "f"}}, Tools: []workspace.Tool{[]byte(`{"id":"1"}`)}}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got workspace.Message
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round trip (-want +got):\n%s", diff)
		}
	}
}

// Ensure that a wrong "visible" is refused.
func TestHiddenRefusesOtherWords(t *testing.T) {
	t.Parallel()
	var m workspace.Message
	if err := json.Unmarshal([]byte(`{"visible":"no"}`), &m); err == nil {
		t.Error(`"visible":"no" was accepted`)
	}
}
