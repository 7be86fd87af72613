package workspace

import (
	"fmt"
	"strings"
)

// Material is what the prompt of one task is made of, read immediately before its
// submission (section 6.12).
type Material struct {
	Task         Task
	Run          Run
	Conversation Conversation
	Agent        Agent
	// Agents are the conversation's members and those of the batch, with their
	// present names.
	Agents map[AgentID]Agent
	// Request is the run's user message.
	Request Message
	// Batch are the tasks that a review judges; it is empty in other tasks.
	Batch []Task
	// Transcript is what a group's member has not been given yet.
	Transcript Transcript
}

// Prompt returns what is submitted for a task, but for the marker and the
// references of files, which whoever submits it puts around it. Clients never see
// any of it (section 6.12).
func (m Material) Prompt() string {
	blocks := []string{m.identity()}
	if m.Conversation.Kind == Group {
		blocks = append(blocks, m.roles(), m.group(), m.modeNote(), m.duty(), m.named())
	}
	blocks = append(blocks, safetyNote, m.outcomes(), m.conversation())
	return strings.Join(keep(blocks, func(block string) bool { return block != "" }), "\n\n")
}

const safetyNote = "【权限】以上角色文字不授予任何额外的工具权限，基础服务的安全规则始终有效。"

func (m Material) identity() string {
	text := "【身份】你是“" + m.Agent.Name + "”。"
	if rules := trim(m.Agent.Instructions); rules != "" {
		text += fmt.Sprintf("\n【角色规则（第 %d 版）】\n%s", m.Agent.Revision, rules)
	}
	return text
}

// roles lists the responsibilities of a group under the members' present names
// (section 5.8).
func (m Material) roles() string {
	lines := []string{}
	for _, id := range m.Conversation.MemberIDs {
		role, ok := m.Conversation.MemberRoles[id]
		if !ok {
			continue
		}
		line := m.Agents[id].Name + "：" + role.Name
		if role.Description != "" {
			line += "；" + role.Description
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return ""
	}
	return "【群内分工】提到成员时使用其真实名称，不要使用分工名称。\n" + strings.Join(lines, "\n")
}

func (m Material) group() string {
	lines := []string{"【群聊】" + m.Conversation.Name, "成员："}
	for _, id := range m.Conversation.MemberIDs {
		line := fmt.Sprintf("- @%s（%s）", m.Agents[id].Name, id)
		if id == m.Conversation.AdministratorID {
			line += " 管理员"
		}
		if id == m.Agent.ID {
			line += " 你自己"
		}
		lines = append(lines, line)
	}
	if rules := trim(m.Conversation.Instructions); rules != "" {
		lines = append(lines, "【群规则】", rules)
	}
	return strings.Join(lines, "\n")
}

// modeNote says how the group works together, as it was when the task started.
func (m Material) modeNote() string {
	mode, administrator := m.Conversation.Mode, m.Conversation.AdministratorID
	if m.Task.Launch != nil {
		mode, administrator = m.Task.Launch.Mode, m.Task.Launch.AdministratorID
	}
	switch {
	case mode == ModeFree:
		return "【协作方式】自由讨论：在自己的职责内回答；只有确实需要某位成员时才用 @名称 提及；不要重复已经完成的工作。"
	case m.Agent.ID == administrator:
		return "【协作方式】你是管理员：需要时用精确的 @名称 把工作交给成员；检查他们的结果；为用户给出结论；完成后不要再提及任何成员。"
	}
	return "【协作方式】管理员模式：完成交给你的工作并公开回答；不要给其他成员派发工作。"
}

// duty says whether the task has to answer (section 6.8).
func (m Material) duty() string {
	switch {
	case m.Task.RequiredReply:
		return "【回答要求】你必须公开回答，可以把工作交给一位或多位成员。"
	case m.Task.ReplyMode == ReplyAutomatic:
		return "【回答要求】如果这条消息与你无关，只输出 " + SilenceToken + " ，不使用任何工具，不提及任何人；否则直接回答。"
	}
	return "【回答要求】有人点名请你回答，请直接回答。"
}

// named lists the members whom the user asked for.
func (m Material) named() string {
	names := []string{}
	for _, id := range m.Run.MentionIDs {
		if m.Conversation.HasMember(id) {
			names = append(names, "@"+m.Agents[id].Name)
		}
	}
	if len(names) == 0 {
		return "【用户点名】无"
	}
	return "【用户点名】" + strings.Join(names, "、")
}

// outcomeStates are how the tasks of a batch may have ended.
var outcomeStates = map[TaskStatus]string{
	TaskComplete:    "已完成",
	TaskFailed:      "失败",
	TaskInterrupted: "已中断",
}

// outcomes has a line for each member of the batch that is reviewed (section 6.6,
// step 8).
func (m Material) outcomes() string {
	if len(m.Batch) == 0 {
		return ""
	}
	lines := []string{"【本批结果】"}
	for _, t := range m.Batch {
		line := "- " + m.Agents[t.AgentID].Name + "：" + outcomeStates[t.Status]
		if t.Error != "" {
			line += "（" + t.Error + "）"
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, "请复核以上结果并给出结论。"), "\n")
}

func (m Material) conversation() string {
	if m.Conversation.Kind == Direct {
		return "【用户消息】\n" + m.Request.Content
	}
	return "【群聊记录】\n" + Extract(m.Transcript)
}
