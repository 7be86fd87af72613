package api_test

import (
	"net/http"
	"slices"
	"testing"
)

// agents creates agents with the names and returns their ids.
func (c *client) agents(names ...string) []string {
	c.Helper()
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = c.agent(name)
	}
	return ids
}

// Ensures that a new group has 2 to 8 members.
func TestScenario11_GroupSize(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	ids := c.agents("a", "b", "c", "d", "e", "f", "g", "h", "i")
	create := func(members []string) answer {
		return c.post("/conversations", obj{"name": "team", "memberIds": members, "administratorId": ids[0]})
	}
	create(ids[:1]).want(http.StatusBadRequest, "invalid_workspace_request")
	create(ids[:9]).want(http.StatusBadRequest, "invalid_workspace_request")
	create(ids[:2]).want(http.StatusCreated)
	made := create(ids[:8]).want(http.StatusCreated)
	want := obj{"mode": "host", "maxReplyRounds": "3", "instructions": "", "archived": false, "pinned": false, "kind": "group"}
	for field, value := range want {
		if got := made.at("conversation", field); got != value && field != "maxReplyRounds" {
			t.Errorf("%s is %v, want %v", field, got, value)
		}
	}
	if made.num("conversation", "maxReplyRounds") != 3 {
		t.Errorf("the group is %s", made.body)
	}
	create([]string{ids[0], ids[0]}).want(http.StatusBadRequest, "invalid_members")
	create(ids[1:3]).want(http.StatusBadRequest, "invalid_members")
}

// Ensures that changing and removing an administrator are two saves.
func TestScenario12_AdministratorLeavesInTwoSaves(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	ids := c.agents("a", "b")
	path := "/conversations/" + c.group(ids...)
	c.patch(path, obj{"memberIds": ids[1:]}).want(http.StatusBadRequest, "administrator_required")
	c.patch(path, obj{"memberIds": ids[1:], "administratorId": ids[1]}).want(http.StatusBadRequest, "administrator_required")
	c.patch(path, obj{"administratorId": ids[1]}).want(http.StatusOK)
	after := c.patch(path, obj{"memberIds": ids[1:]}).want(http.StatusOK)
	if !equal(after.list("conversation", "memberIds"), []any{ids[1]}) {
		t.Errorf("the group is %s", after.body)
	}
}

// Ensures that a group may shrink to its administrator and keeps its history.
func TestScenario13_GroupOfOne(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	ids := c.agents("a", "b", "c")
	chat := c.group(ids...)
	c.say(chat, "before")
	before := c.get("/conversations/" + chat + "/messages").list("messages")
	c.patch("/conversations/"+chat, obj{"memberIds": ids[:1]}).want(http.StatusOK)
	if after := c.get("/conversations/" + chat + "/messages").list("messages"); !equal(before, after) {
		t.Errorf("the history is %v, was %v", after, before)
	}
	c.patch("/conversations/"+chat, obj{"memberIds": []string{}}).want(http.StatusBadRequest, "invalid_workspace_request")
}

// Ensures that an archived agent and one of somebody else cannot be added, and
// that an archived one that was inside may stay.
func TestScenario14_WhoMayBeAdded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	ids := c.agents("a", "b", "c")
	foreign := f.as("bob").agent("x")
	chat := c.group(ids[:2]...)
	c.patch("/agents/"+ids[2], obj{"archived": true}).want(http.StatusOK)
	c.patch("/conversations/"+chat, obj{"memberIds": ids}).want(http.StatusConflict, "agent_archived")
	c.patch("/conversations/"+chat, obj{"memberIds": []string{ids[0], foreign}}).want(http.StatusNotFound, "workspace_not_found")
	c.post("/conversations", obj{"name": "x", "memberIds": []string{ids[0], ids[2]}, "administratorId": ids[0]}).want(http.StatusConflict, "agent_archived")
	c.post("/conversations", obj{"name": "x", "memberIds": []string{ids[0], foreign}, "administratorId": ids[0]}).want(http.StatusNotFound, "workspace_not_found")
	c.patch("/agents/"+ids[1], obj{"archived": true}).want(http.StatusOK)
	c.patch("/conversations/"+chat, obj{"memberIds": []string{ids[1], ids[0]}}).want(http.StatusOK)
}

// Ensures that a removed member leaves the automatic members and the roles, that
// messages stay, that the change is told, and that no time of a message moves.
func TestScenario15_RemovedMember(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	ids := c.agents("a", "b")
	chat := c.group(ids...)
	c.patch("/conversations/"+chat, obj{
		"autoReplyIds": ids[1:], "memberRoles": obj{ids[0]: obj{"name": "lead", "description": ""}, ids[1]: obj{"name": "aid", "description": "helps"}},
	}).want(http.StatusOK)
	c.say(chat, "hello")
	before := c.get("/conversations/" + chat).want(http.StatusOK)
	cursor := c.cursor()
	f.clock.advance(1e9)
	after := c.patch("/conversations/"+chat, obj{"memberIds": ids[:1]}).want(http.StatusOK)
	if len(after.list("conversation", "autoReplyIds")) != 0 || len(after.at("conversation", "memberRoles").(obj)) != 1 {
		t.Errorf("the group is %s", after.body)
	}
	if after.at("conversation", "lastMessageAt") != before.at("conversation", "lastMessageAt") {
		t.Error("the time of the last message moved")
	}
	if got := types(c.allEvents(cursor)); !slices.Contains(got, "conversation") {
		t.Errorf("the events are %v", got)
	}
	if now := c.get("/conversations/" + chat).list("messages"); !equal(now, before.list("messages")) {
		t.Errorf("the messages are %v", now)
	}
}

// Ensures that of a direct chat only the pin may be edited.
func TestScenario16_DirectChat(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	path := "/conversations/" + c.direct(c.agent("Ann"))
	for _, patch := range []obj{{"name": "x"}, {"name": "Ann"}, {"archived": true}, {"pinned": true, "mode": "free"}} {
		c.patch(path, patch).want(http.StatusBadRequest, "edit_agent_instead")
	}
	if a := c.patch(path, obj{"pinned": true}).want(http.StatusOK); a.at("conversation", "pinned") != true {
		t.Errorf("the chat is %s", a.body)
	}
}

// Ensures the bounds of the limit of rounds.
func TestScenario17_Rounds(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	path := "/conversations/" + c.group(c.agents("a", "b")...)
	for _, n := range []any{0, 101, 1.5, -2, "3", nil} {
		c.patch(path, obj{"maxReplyRounds": n}).want(http.StatusBadRequest, "invalid_workspace_request")
	}
	for _, n := range []int64{-1, 1, 100} {
		if a := c.patch(path, obj{"maxReplyRounds": n}).want(http.StatusOK); a.num("conversation", "maxReplyRounds") != n {
			t.Errorf("the group is %s", a.body)
		}
	}
}

// Ensures that archiving a group stops its runs before the answer, refuses
// sending, and that restoring allows it; reading goes on (section 5.5).
func TestArchive_StopsAndRestores(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	chat := c.group(c.agents("a", "b")...)
	c.say(chat, "hello")
	archived := c.patch("/conversations/"+chat, obj{"archived": true}).want(http.StatusOK)
	if archived.at("conversation", "activeRunId") != nil || archived.num("conversation", "queuedMessageCount") != 0 {
		t.Errorf("the group is %s", archived.body)
	}
	send := obj{"requestId": uuid(), "content": "again"}
	c.post("/conversations/"+chat+"/messages", send).want(http.StatusConflict, "conversation_archived")
	c.get("/conversations/" + chat).want(http.StatusOK)
	c.patch("/conversations/"+chat, obj{"archived": false}).want(http.StatusOK)
	c.post("/conversations/"+chat+"/messages", send).want(http.StatusAccepted)
}

// Ensures that absent, null, default and unknown are four different things.
func TestBodies_AreStrict(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	ids := c.agents("a", "b")
	path := "/conversations/" + c.group(ids...)
	c.patch(path, obj{"instructions": "rules", "autoReplyIds": ids[1:]}).want(http.StatusOK)
	kept := c.patch(path, obj{"pinned": true}).want(http.StatusOK)
	if kept.str("conversation", "instructions") != "rules" || len(kept.list("conversation", "autoReplyIds")) != 1 {
		t.Errorf("what was absent changed: %s", kept.body)
	}
	c.patch(path, obj{"instructions": nil}).want(http.StatusBadRequest, "invalid_workspace_request")
	emptied := c.patch(path, obj{"instructions": "", "autoReplyIds": []string{}}).want(http.StatusOK)
	if emptied.str("conversation", "instructions") != "" || len(emptied.list("conversation", "autoReplyIds")) != 0 {
		t.Errorf("what was emptied stayed: %s", emptied.body)
	}
	refused := c.patch(path, obj{"topicId": "x"}).want(http.StatusBadRequest, "invalid_workspace_request")
	if refused.str("error") != "topicId: 不支持的字段" {
		t.Errorf("the answer is %s", refused.body)
	}
	for _, body := range []string{`[]`, `"x"`, `1`, `{"name":"a","name":"b"}`, `{"memberRoles":{"` + ids[0] + `":{"name":"x","duty":"y"}}}`,
		`{"memberIds":[null]}`, `{"memberIds":"` + ids[0] + `"}`, `{"memberRoles":{"` + ids[0] + `":{"name":"x","description":null}}}`,
	} {
		a := c.patch(path, body).want(http.StatusBadRequest)
		if code := a.str("code"); code != "invalid_workspace_request" && code != "invalid_json_body" {
			t.Errorf("%s: the answer is %s", body, a.body)
		}
	}
	for _, body := range []string{`{`, `{"a":}`, "\xff", `{} {}`} {
		c.patch(path, body).want(http.StatusBadRequest, "invalid_json_body")
	}
}
