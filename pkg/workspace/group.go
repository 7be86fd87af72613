package workspace

import (
	"maps"
	"slices"
	"strings"
)

// CreateGroup returns a new group (sections 3.2 and 5.1). Agents holds those
// agents of the owner that the request may mean; a member that is not among
// them does not exist. Faults are looked for in this order: the schema, who is
// a member of what, whether the members exist, whether one is archived.
func CreateGroup(in NewGroup, agents map[AgentID]Agent, id ConversationID, now Millis) (Conversation, error) {
	var f faults
	required(&f, "name", in.Name)
	required(&f, "memberIds", in.MemberIDs)
	required(&f, "administratorId", in.AdministratorID)
	p := checkGroup(&f, ConversationPatch{
		Name:            present(in.Name),
		Avatar:          in.Avatar,
		Instructions:    in.Instructions,
		MemberIDs:       present(in.MemberIDs),
		MemberRoles:     in.MemberRoles,
		AdministratorID: present(in.AdministratorID),
		Mode:            in.Mode,
		AutoReplyIDs:    in.AutoReplyIDs,
		MaxReplyRounds:  in.MaxReplyRounds,
	}, MinMembersNew)
	if err := f.err(); err != nil {
		return Conversation{}, err
	}
	c := Conversation{
		ID:             id,
		Kind:           Group,
		Mode:           ModeHost,
		MaxReplyRounds: DefaultReplyRounds,
		Activity:       Activity{ActiveAgentStates: map[AgentID]TaskStatus{}},
		CreatedAt:      now,
		UpdatedAt:      now,
	}
	if err := checkMembers(c, p, agents); err != nil {
		return Conversation{}, err
	}
	return c.with(p), nil
}

// checkGroup returns the fields of a patch as they are stored: names trimmed,
// ids in lower case.
func checkGroup(f *faults, p ConversationPatch, minMembers int) ConversationPatch {
	return ConversationPatch{
		Name:            checked(f, "name", p.Name, plainName),
		Avatar:          checked(f, "avatar", p.Avatar, avatar),
		Instructions:    checked(f, "instructions", p.Instructions, textOf(0, MaxInstructions)),
		MemberIDs:       checked(f, "memberIds", p.MemberIDs, members(minMembers)),
		MemberRoles:     checked(f, "memberRoles", p.MemberRoles, roles),
		AdministratorID: checked(f, "administratorId", p.AdministratorID, uuid[AgentID]),
		Mode:            checked(f, "mode", p.Mode, oneOf(ModeHost, ModeFree)),
		AutoReplyIDs:    checked(f, "autoReplyIds", p.AutoReplyIDs, uuids[AgentID](MaxAutoReply)),
		MaxReplyRounds:  checked(f, "maxReplyRounds", p.MaxReplyRounds, rounds),
		Archived:        checked(f, "archived", p.Archived, anything),
		Pinned:          checked(f, "pinned", p.Pinned, anything),
	}
}

func members(low int) func(*faults, string, []AgentID) []AgentID {
	return func(f *faults, field string, ids []AgentID) []AgentID {
		if len(ids) < low || len(ids) > MaxMembers {
			f.add(field, outside(low, MaxMembers))
			return nil
		}
		return uuids[AgentID](MaxMembers)(f, field, ids)
	}
}

func rounds(f *faults, field string, n int) int {
	if n != UnlimitedRounds && (n < 1 || n > MaxReplyRounds) {
		f.add(field, reasonRounds)
	}
	return n
}

func roles(f *faults, field string, given map[AgentID]Role) map[AgentID]Role {
	if len(given) > MaxRoles {
		f.add(field, tooMany(MaxRoles))
		return nil
	}
	checked := make(map[AgentID]Role, len(given))
	for _, id := range slices.Sorted(maps.Keys(given)) {
		at := field + "." + string(id)
		key := uuid(f, at, id)
		if _, twice := checked[key]; twice {
			f.add(at, reasonTwice)
		}
		checked[key] = Role{
			Name:        textOf(1, MaxName)(f, at+".name", trim(given[id].Name)),
			Description: textOf(0, MaxRoleDescription)(f, at+".description", given[id].Description),
		}
	}
	return checked
}

// checkMembers decides who may be what in the group that the patch makes of c:
// first what the request says of itself and of the stored group, then what the
// owner's agents say. A new group has no members yet.
func checkMembers(c Conversation, p ConversationPatch, agents map[AgentID]Agent) error {
	after := p.MemberIDs.Or(c.MemberIDs)
	if len(unique(after)) != len(after) {
		return FailText(CodeInvalidMembers, "群成员不能重复")
	}
	if c.AdministratorID != "" && !slices.Contains(after, c.AdministratorID) {
		return Fail(CodeAdminRequired)
	}
	if !slices.Contains(after, p.AdministratorID.Or(c.AdministratorID)) {
		return FailText(CodeInvalidMembers, "管理员必须是群成员")
	}
	known := slices.Concat(c.MemberIDs, after)
	stranger := func(id AgentID) bool { return !slices.Contains(known, id) }
	if slices.ContainsFunc(p.AutoReplyIDs.Or(nil), stranger) {
		return FailText(CodeInvalidMembers, "自动参与者必须是群成员")
	}
	for id := range p.MemberRoles.Or(nil) {
		if stranger(id) {
			return FailText(CodeInvalidMembers, "分工对象必须是群成员")
		}
	}
	return checkAdded(without(after, c.MemberIDs...), agents)
}

// checkAdded decides whether agents may be added to a group: all must exist,
// and none may be archived.
func checkAdded(added []AgentID, agents map[AgentID]Agent) error {
	var archived []string
	for _, id := range added {
		agent, ok := agents[id]
		if !ok {
			return Fail(CodeRowNotFound)
		}
		if agent.Archived {
			archived = append(archived, agent.Name)
		}
	}
	if len(archived) > 0 {
		return FailText(CodeAgentArchived, CodeAgentArchived.Text()+"："+strings.Join(archived, "、"))
	}
	return nil
}

// with returns the group as a checked patch leaves it. Whatever is not among
// its members drops out of its automatic members and roles (section 5.6).
func (c Conversation) with(p ConversationPatch) Conversation {
	c.Name = p.Name.Or(c.Name)
	c.Avatar = p.Avatar.Or(c.Avatar)
	c.Instructions = p.Instructions.Or(c.Instructions)
	c.MemberIDs = slices.Clone(p.MemberIDs.Or(c.MemberIDs))
	c.AdministratorID = p.AdministratorID.Or(c.AdministratorID)
	c.Mode = p.Mode.Or(c.Mode)
	c.MaxReplyRounds = p.MaxReplyRounds.Or(c.MaxReplyRounds)
	c.Archived = p.Archived.Or(c.Archived)
	c.Pinned = p.Pinned.Or(c.Pinned)
	c.AutoReplyIDs = keep(unique(p.AutoReplyIDs.Or(c.AutoReplyIDs)), c.HasMember)
	kept := make(map[AgentID]Role)
	for id, role := range p.MemberRoles.Or(c.MemberRoles) {
		if c.HasMember(id) {
			kept[id] = role
		}
	}
	c.MemberRoles = kept
	return c
}

// HasMember reports whether the agent is a member now.
func (c Conversation) HasMember(id AgentID) bool { return slices.Contains(c.MemberIDs, id) }

// ConversationEdit is what an edit of a conversation leads to.
type ConversationEdit struct {
	Conversation Conversation
	// Changed is false for an empty patch, which appends no event.
	Changed bool
	// Added and Removed are the members that came and went. Queued tasks of the
	// latter end as interrupted; their messages and bindings stay.
	Added, Removed []AgentID
	// StopRuns asks to stop all live runs of the group before the answer.
	StopRuns bool
}

// EditConversation returns what a patch makes of a conversation (sections 3.2
// and 5.1 to 5.6). Of a direct chat only the pin may be edited. In a group the
// administrator stored before the request stays a member, so that changing and
// removing it are two saves. Agents holds those agents of the owner that the
// request may add.
func EditConversation(c Conversation, p ConversationPatch, agents map[AgentID]Agent, now Millis) (ConversationEdit, error) {
	var f faults
	p = checkGroup(&f, p, MinMembers)
	if err := f.err(); err != nil {
		return ConversationEdit{}, err
	}
	if c.Kind == Direct {
		return editDirect(c, p, now)
	}
	if p.empty() {
		return ConversationEdit{Conversation: c}, nil
	}
	if err := checkMembers(c, p, agents); err != nil {
		return ConversationEdit{}, err
	}
	edited := c.with(p)
	edited.UpdatedAt = now
	return ConversationEdit{
		Conversation: edited,
		Changed:      true,
		Added:        without(edited.MemberIDs, c.MemberIDs...),
		Removed:      without(c.MemberIDs, edited.MemberIDs...),
		StopRuns:     p.Archived.Or(false),
	}, nil
}

func editDirect(c Conversation, p ConversationPatch, now Millis) (ConversationEdit, error) {
	pinned, ok := p.Pinned.Get()
	p.Pinned = Optional[bool]{}
	if !p.empty() {
		return ConversationEdit{}, Fail(CodeEditAgentInstead)
	}
	if !ok {
		return ConversationEdit{Conversation: c}, nil
	}
	c.Pinned, c.UpdatedAt = pinned, now
	return ConversationEdit{Conversation: c, Changed: true}, nil
}

func (p ConversationPatch) empty() bool {
	return !p.Name.Present() && !p.Avatar.Present() && !p.Instructions.Present() &&
		!p.MemberIDs.Present() && !p.MemberRoles.Present() && !p.AdministratorID.Present() &&
		!p.Mode.Present() && !p.AutoReplyIDs.Present() && !p.MaxReplyRounds.Present() &&
		!p.Archived.Present() && !p.Pinned.Present()
}

// RequireMember returns an error with code [CodeInvalidMembers] when the agent
// is no member, as when a member's tasks are to be stopped (section 3.5).
func RequireMember(c Conversation, id AgentID) error {
	if !c.HasMember(id) {
		return Fail(CodeInvalidMembers)
	}
	return nil
}

// CompareConversations orders a list: pinned first, then the last message or
// else the creation, newest first, then the id by code point (section 3.2).
func CompareConversations(a, b Conversation) int {
	if a.Pinned != b.Pinned {
		if a.Pinned {
			return -1
		}
		return 1
	}
	if x, y := a.sortTime(), b.sortTime(); x != y {
		if x > y {
			return -1
		}
		return 1
	}
	return strings.Compare(string(a.ID), string(b.ID))
}

func (c Conversation) sortTime() Millis {
	if c.LastMessageAt != nil {
		return *c.LastMessageAt
	}
	return c.CreatedAt
}
