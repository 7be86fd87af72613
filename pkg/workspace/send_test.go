package workspace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

func sendRequest(content string) workspace.SendMessage {
	return workspace.SendMessage{RequestID: workspace.Some(id[workspace.RequestID](1)), Content: workspace.Some(content)}
}

func mustCheckSend(t *testing.T, to workspace.ConversationID, in workspace.SendMessage) workspace.Send {
	t.Helper()
	s, err := workspace.CheckSend(to, in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure the bounds of a send (section 3.3, scenario 23).
func TestCheckSend(t *testing.T) {
	t.Parallel()
	file := []workspace.FileID{id[workspace.FileID](1)}
	many := make([]workspace.AgentID, 9)
	for i := range many {
		many[i] = id[workspace.AgentID](i)
	}
	tests := map[string]struct {
		change func(*workspace.SendMessage)
		want   workspace.Code
	}{
		"text":              {func(*workspace.SendMessage) {}, ""},
		"65536 code points": {func(in *workspace.SendMessage) { in.Content = workspace.Some(strings.Repeat("字", 65536)) }, ""},
		"65537 code points": {func(in *workspace.SendMessage) { in.Content = workspace.Some(strings.Repeat("字", 65537)) }, workspace.CodeInvalidRequest},
		"blank":             {func(in *workspace.SendMessage) { in.Content = workspace.Some(" \n　") }, workspace.CodeInvalidRequest},
		"blank with a file": {func(in *workspace.SendMessage) { in.Content, in.FileIDs = workspace.Some(" "), workspace.Some(file) }, ""},
		"a file alone": {func(in *workspace.SendMessage) {
			in.Content, in.FileIDs = workspace.Optional[string]{}, workspace.Some(file)
		}, ""},
		"null content": {func(in *workspace.SendMessage) {
			in.Content, in.FileIDs = workspace.Null[string](), workspace.Some(file)
		}, workspace.CodeInvalidRequest},
		"no request id":        {func(in *workspace.SendMessage) { in.RequestID = workspace.Optional[workspace.RequestID]{} }, workspace.CodeInvalidRequest},
		"request id no UUID":   {func(in *workspace.SendMessage) { in.RequestID = workspace.Some[workspace.RequestID]("1") }, workspace.CodeInvalidRequest},
		"eight mentions":       {func(in *workspace.SendMessage) { in.MentionIDs = workspace.Some(many[:8]) }, ""},
		"nine mentions":        {func(in *workspace.SendMessage) { in.MentionIDs = workspace.Some(many) }, workspace.CodeInvalidRequest},
		"a file that is no id": {func(in *workspace.SendMessage) { in.FileIDs = workspace.Some([]workspace.FileID{"../../x"}) }, workspace.CodeInvalidRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := sendRequest("你好")
			tt.change(&in)
			_, err := workspace.CheckSend("c", in)
			wantCode(t, err, tt.want)
		})
	}
}

// Ensure that a request id stands for one conversation, text, list of mentions
// and list of files, after defaults and with ids in lower case (section 3.3,
// scenarios 19 and 20).
func TestFingerprint(t *testing.T) {
	t.Parallel()
	a, b := workspace.AgentID("0000000a-0000-4000-8000-000000000000"), id[workspace.AgentID](2)
	base := sendRequest("你好")
	stored := mustCheckSend(t, "c", base).Fingerprint()
	same := base
	same.MentionIDs, same.FileIDs = workspace.Some([]workspace.AgentID{}), workspace.Some([]workspace.FileID{})
	wantCode(t, mustCheckSend(t, "c", same).CheckRepeat(stored), "")

	mention := base
	mention.MentionIDs = workspace.Some([]workspace.AgentID{a, b})
	upper := base
	upper.MentionIDs = workspace.Some([]workspace.AgentID{workspace.AgentID(strings.ToUpper(string(a))), b})
	wantCode(t, mustCheckSend(t, "c", upper).CheckRepeat(mustCheckSend(t, "c", mention).Fingerprint()), "")

	file := base
	file.FileIDs = workspace.Some([]workspace.FileID{workspace.FileID(a), workspace.FileID(b)})
	for name, other := range map[string]workspace.Send{
		"content":       mustCheckSend(t, "c", sendRequest("您好")),
		"mentions":      mustCheckSend(t, "c", mention),
		"files":         mustCheckSend(t, "c", file),
		"conversation":  mustCheckSend(t, "d", base),
		"shifted texts": {ConversationID: "c你", Content: "好"},
	} {
		if workspace.CodeOf(other.CheckRepeat(stored)) != workspace.CodeIdempotency {
			t.Errorf("another %s counts as the same request", name)
		}
	}
}

func arrival(c workspace.Conversation, agents map[workspace.AgentID]workspace.Agent) workspace.Arrival {
	return workspace.Arrival{Conversation: c, Members: agents, MessageID: id[workspace.MessageID](50), RunID: id[workspace.RunID](60), Now: now + 9}
}

// Ensure that a message leads to the tasks of section 6.5 (scenarios 39, 48 and
// 49), and that archived members are not asked automatically (section 11, item
// 17).
func TestAdmitTurns(t *testing.T) {
	t.Parallel()
	a, b, c3, d := id[workspace.AgentID](1), id[workspace.AgentID](2), id[workspace.AgentID](3), id[workspace.AgentID](4)
	turn := func(agent workspace.AgentID, mode workspace.ReplyMode, required bool) workspace.Turn {
		return workspace.Turn{AgentID: agent, BatchID: workspace.BatchID(id[workspace.RunID](60)), ReplyMode: mode, RequiredReply: required, TriggerSeq: 1}
	}
	agents := team(4)
	archived := agents[d]
	archived.Archived = true
	agents[d] = archived
	group := mustGroup(t, team(4))
	group.AutoReplyIDs = []workspace.AgentID{c3, a, d, b}
	free := group
	free.Mode = workspace.ModeFree
	direct := workspace.Conversation{ID: "d", Kind: workspace.Direct, MemberIDs: []workspace.AgentID{a}, AdministratorID: a, Mode: workspace.ModeHost, MaxReplyRounds: 1}
	tests := map[string]struct {
		conversation workspace.Conversation
		content      string
		want         []workspace.Turn
	}{
		"direct": {direct, "@B 你好", []workspace.Turn{turn(a, workspace.ReplyMentioned, false)}},
		"host, whatever is mentioned (scenario 39)": {group, "@B 你好", []workspace.Turn{turn(a, workspace.ReplyAutomatic, true)}},
		"free, mentioned only (scenario 48)": {free, "@C @B 你好", []workspace.Turn{
			turn(c3, workspace.ReplyMentioned, false), turn(b, workspace.ReplyMentioned, false)}},
		"free, an archived member by name": {free, "@D 你好", []workspace.Turn{turn(d, workspace.ReplyMentioned, false)}},
		"free, no mention (scenario 49)": {free, "你好", []workspace.Turn{
			turn(a, workspace.ReplyAutomatic, true), turn(c3, workspace.ReplyAutomatic, false), turn(b, workspace.ReplyAutomatic, false)}},
		"free, a mention in code": {free, "`@B`", []workspace.Turn{
			turn(a, workspace.ReplyAutomatic, true), turn(c3, workspace.ReplyAutomatic, false), turn(b, workspace.ReplyAutomatic, false)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustCheckSend(t, tt.conversation.ID, sendRequest(tt.content))
			got, err := workspace.Admit(s, arrival(tt.conversation, agents))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Turns); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
		})
	}
}

// Ensure that a send stores the user's own trimmed text with its files and a
// queued run (sections 2.5, 2.7 and 6.1, scenarios 22 and 29).
func TestAdmitStores(t *testing.T) {
	t.Parallel()
	agents := team(2)
	c := mustGroup(t, agents)
	c.ActiveRunID = "busy"
	in := sendRequest(" @B 你好\n")
	file := workspace.File{ID: id[workspace.FileID](7), Name: "a.txt"}
	in.FileIDs = workspace.Some([]workspace.FileID{file.ID, file.ID})
	at := arrival(c, agents)
	at.Files = map[workspace.FileID]workspace.File{file.ID: file}
	got, err := workspace.Admit(mustCheckSend(t, c.ID, in), at)
	if err != nil {
		t.Fatal(err)
	}
	wantMessage := workspace.Message{
		ID: at.MessageID, ConversationID: c.ID, Seq: 1, Role: workspace.RoleUser, Content: "@B 你好", RunID: at.RunID,
		Status: workspace.MessageComplete, Attachments: []workspace.File{file}, Tools: []workspace.Tool{}, CreatedAt: at.Now,
	}
	if diff := cmp.Diff(wantMessage, got.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	wantRun := workspace.Run{
		ID: at.RunID, ConversationID: c.ID, MessageID: at.MessageID, MentionIDs: []workspace.AgentID{id[workspace.AgentID](2)},
		ActiveAgentID: id[workspace.AgentID](1), Status: workspace.RunQueued, CreatedAt: at.Now, UpdatedAt: at.Now,
	}
	if diff := cmp.Diff(wantRun, got.Run); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if got.Conversation.LastSeq != 1 || *got.Conversation.LastMessageAt != at.Now || got.Conversation.Preview != "@B 你好" {
		t.Errorf("conversation: %+v", got.Conversation)
	}
	task := got.Turns[0].Task("owner", got.Run, "t", at.Now)
	wantTask := workspace.Task{
		ID: "t", Owner: "owner", RunID: at.RunID, ConversationID: c.ID, AgentID: id[workspace.AgentID](1), MessageID: at.MessageID,
		TriggerSeq: 1, BatchID: workspace.BatchID(at.RunID), ReplyMode: workspace.ReplyAutomatic, RequiredReply: true,
		Status: workspace.TaskQueued, CreatedAt: at.Now,
	}
	if diff := cmp.Diff(wantTask, task); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
}

// Ensure that a send is refused for an archived chat, then a mention of a
// non-member, then a file of somebody else (section 3.3).
func TestAdmitRefusals(t *testing.T) {
	t.Parallel()
	agents := team(2)
	c := mustGroup(t, agents)
	in := sendRequest("你好")
	in.FileIDs = workspace.Some([]workspace.FileID{id[workspace.FileID](7)})
	_, err := workspace.Admit(mustCheckSend(t, c.ID, in), arrival(c, agents))
	wantCode(t, err, workspace.CodeUploadNotFound)
	in.MentionIDs = workspace.Some([]workspace.AgentID{id[workspace.AgentID](8)})
	_, err = workspace.Admit(mustCheckSend(t, c.ID, in), arrival(c, agents))
	wantCode(t, err, workspace.CodeInvalidMentions)
	c.Archived = true
	_, err = workspace.Admit(mustCheckSend(t, c.ID, in), arrival(c, agents))
	wantCode(t, err, workspace.CodeArchived)
}
