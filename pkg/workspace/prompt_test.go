package workspace_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// material returns that of a task of B in a group of A, who administers it, and B.
func material(t *testing.T) workspace.Material {
	t.Helper()
	agents := team(2)
	c := mustGroup(t, agents)
	c.Instructions = "group rules"
	c.MemberRoles = map[workspace.AgentID]workspace.Role{c.MemberIDs[1]: {Name: "tester", Description: "tests it"}}
	return workspace.Material{
		Conversation: c, Agents: agents, Agent: agents[c.MemberIDs[1]],
		Task:       workspace.Task{AgentID: c.MemberIDs[1], ReplyMode: workspace.ReplyMentioned},
		Transcript: workspace.Transcript{Messages: []workspace.Message{{Role: workspace.RoleUser, Content: "please", Status: workspace.MessageComplete}}},
	}
}

// Ensure that a prompt has the blocks of section 6.12 in their order, and that
// those of a group are missing in a direct chat (sections 5.8 and 6.12,
// scenario 75).
func TestPrompt_Blocks(t *testing.T) {
	t.Parallel()
	m := material(t)
	m.Agent.Instructions, m.Agent.Revision = "be brief", 3
	m.Run.MentionIDs = m.Conversation.MemberIDs[:1]
	last := -1
	prompt := m.Prompt()
	for _, part := range []string{"“B”", "第 3 版", "be brief", "B：tester；tests it", "@A", "group rules", "管理员模式", "点名请你回答", "【用户点名】@A", "【权限】", "please"} {
		at := strings.Index(prompt[last+1:], part)
		if at < 0 {
			t.Fatalf("%q is missing or too early in:\n%s", part, prompt)
		}
		last += at
	}
	m.Conversation.Kind, m.Request.Content = workspace.Direct, "hello"
	direct := m.Prompt()
	for _, part := range []string{"tester", "group rules", "点名", workspace.SilenceToken, "please"} {
		if strings.Contains(direct, part) {
			t.Errorf("a direct prompt has %q:\n%s", part, direct)
		}
	}
	if !strings.HasSuffix(direct, "hello") || !strings.Contains(direct, "be brief") {
		t.Errorf("the direct prompt is\n%s", direct)
	}
}

// Ensure that an agent is told what is expected of it: to answer, or that it may
// be silent, and how the group worked when its task started (sections 6.8, 6.12).
func TestPrompt_Duty(t *testing.T) {
	t.Parallel()
	m := material(t)
	m.Task.ReplyMode = workspace.ReplyAutomatic
	if !strings.Contains(m.Prompt(), workspace.SilenceToken) {
		t.Error("an automatic task is not told how to be silent")
	}
	m.Task.RequiredReply = true
	if p := m.Prompt(); strings.Contains(p, workspace.SilenceToken) || !strings.Contains(p, "必须公开回答") {
		t.Errorf("a required task is told\n%s", p)
	}
	m.Task.Launch = &workspace.Launch{Mode: workspace.ModeFree}
	if !strings.Contains(m.Prompt(), "自由讨论") {
		t.Error("the mode is not the one of the launch")
	}
	m.Task.Launch = &workspace.Launch{Mode: workspace.ModeHost, AdministratorID: m.Agent.ID}
	if !strings.Contains(m.Prompt(), "你是管理员") {
		t.Error("the administrator is not the one of the launch")
	}
}

// Ensure section 6.6, step 8: a review is told how each of its batch ended.
func TestPrompt_Review(t *testing.T) {
	t.Parallel()
	m := material(t)
	m.Agents["left"] = workspace.Agent{Name: "Lea"}
	m.Batch = []workspace.Task{
		{AgentID: m.Conversation.MemberIDs[1], Status: workspace.TaskComplete},
		{AgentID: "left", Status: workspace.TaskFailed, Error: "no server"},
	}
	if p := m.Prompt(); !strings.Contains(p, "- B：已完成\n- Lea：失败（no server）") {
		t.Errorf("the prompt is\n%s", p)
	}
}

func said(role workspace.MessageRole, text string) workspace.Message {
	return workspace.Message{Role: role, AgentName: "B", Content: text, Status: workspace.MessageComplete}
}

// Ensure section 6.13: an entry shows speaker, state, text, thoughts, tools by
// harmless names, error and attachments.
func TestExtract_Entry(t *testing.T) {
	t.Parallel()
	m := said(workspace.RoleAssistant, "text")
	m.Status, m.Reasoning, m.Error = workspace.MessageFailed, strings.Repeat("r", 3000), "broken"
	for i := range 20 {
		m.Tools = append(m.Tools, workspace.Tool(fmt.Sprintf(`{"id":"%d","name":"tool<%d>\n"}`, i, i)))
	}
	m.Attachments = []workspace.File{{Name: "a.png", MIMEType: "image/png", SourcePath: "/tmp/a.png"}}
	got := workspace.Extract(workspace.Transcript{Messages: []workspace.Message{m}})
	for _, part := range []string{"[B · 失败]\ntext\n", "tool0、tool1", "tool15\n", "错误：broken", "a.png (image/png) /tmp/a.png"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
	if strings.Count(got, "r") > 2010 || strings.Contains(got, "tool16") || strings.Contains(got, "<") {
		t.Errorf("too much in\n%s", got)
	}
}

// Ensure section 6.13's bounds: the newest 50, 30,000 characters, and a count of
// what was left out.
func TestExtract_Bounds(t *testing.T) {
	t.Parallel()
	var many []workspace.Message
	for i := range 50 {
		many = append(many, said(workspace.RoleUser, fmt.Sprintf("m%d.", i)))
	}
	got := workspace.Extract(workspace.Transcript{Messages: many, Older: 7})
	if !strings.HasPrefix(got, "（更早的 7 条") || !strings.Contains(got, "m0.") || !strings.HasSuffix(got, "m49.") {
		t.Errorf("50 entries give\n%s", got)
	}
	long := []workspace.Message{said(workspace.RoleUser, "old"), said(workspace.RoleUser, strings.Repeat("界", 20_000)), said(workspace.RoleUser, strings.Repeat("面", 20_000))}
	got = workspace.Extract(workspace.Transcript{Messages: long})
	if !strings.HasPrefix(got, "（更早的 2 条") || strings.Contains(got, "界") {
		t.Errorf("the budget does not hold: %.100s", got)
	}
	huge := said(workspace.RoleAssistant, strings.Repeat("a", 60_000))
	huge.Error = strings.Repeat("e", 10_000)
	got = workspace.Extract(workspace.Transcript{Messages: []workspace.Message{said(workspace.RoleUser, "old"), huge}})
	if n := utf8.RuneCountInString(got); n > workspace.MaxExtract+100 || !strings.HasPrefix(got, "（更早的 1 条") || !strings.HasSuffix(got, "e") {
		t.Errorf("an entry that does not fit gives %d characters: %.100s", n, got)
	}
}

// Ensure scenario 76: of a text of 60,000 characters a group's prompt has both
// ends, says that it is shortened, and stays below 32,000 characters.
func TestScenario76_LongMessage(t *testing.T) {
	t.Parallel()
	m := material(t)
	m.Transcript.Messages = []workspace.Message{said(workspace.RoleUser, "BEGIN"+strings.Repeat("x", 60_000-8)+"END")}
	prompt := m.Prompt()
	if n := utf8.RuneCountInString(prompt); n >= 32_000 || !strings.Contains(prompt, "BEGIN") || !strings.HasSuffix(prompt, "END") || !strings.Contains(prompt, "省略 36000 字") {
		t.Errorf("the prompt has %d characters", n)
	}
}

// Ensure section 7.6: the paths of a reply are found where they name a file, each
// once, at most eight, and nothing else passes for one.
func TestProducedPaths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"see [the plan](/tmp/plan.md) and ![](~/a.png \"t\")": {"/tmp/plan.md", "~/a.png"},
		"MEDIA:/tmp/a.png\nMEDIA: `~/b c`":                    {"/tmp/a.png", "~/b"},
		"[a b](</tmp/a b.txt>)":                               {"/tmp/a b.txt"},
		"[x](https://x.example/a) [y](//x/a) [z](/api/app/files/1/download) [d](/tmp/) [r](/) [e](a.txt)": {},
		"plain /etc/passwd":                                               {},
		"[a](/tmp/a) [b](/tmp/a) MEDIA:/tmp/a.":                           {"/tmp/a"},
		strings.Repeat("[a](/tmp/a) [b](/tmp/b)", 3):                      {"/tmp/a", "/tmp/b"},
		"[1](/1)[2](/2)[3](/3)[4](/4)[5](/5)[6](/6)[7](/7)[8](/8)[9](/9)": {"/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8"},
	} {
		if diff := cmp.Diff(want, workspace.ProducedPaths(text, nil)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	tool := workspace.Tool(`{"id":"1","arguments":{"file_path":"/tmp/out.csv","query":"/not/this"}}`)
	if diff := cmp.Diff([]string{"/tmp/out.csv"}, workspace.ProducedPaths("", []workspace.Tool{tool})); diff != "" {
		t.Error(diff)
	}
}
