package api_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// estate is one of everything that a user may own.
type estate struct{ agent, chat, group, run, question, file, node string }

// estate gives the user one of everything.
func (c *client) estate(f *fixture) estate {
	c.Helper()
	e := estate{agent: c.agent("Ann")}
	e.chat = c.direct(e.agent)
	e.group = c.group(e.agent, c.agent("Bea"))
	e.run = c.say(e.group, "a private word")
	e.file = c.file("private.txt", "text/plain", "a private word")
	c.post("/nodes", obj{"name": "private", "url": "http://10.0.0.1", "username": "u", "password": "p"}).want(http.StatusCreated)
	e.node = c.get("/nodes").str("nodes", "0", "id")
	e.question = f.ask(e.run, "approval")
	c.put("/session-context/native", obj{"usedTokens": 1, "observedAt": 1}).want(http.StatusOK)
	return e
}

// inPath returns what of the estate belongs in a place of a route's path.
func (e estate) inPath(route string) map[string]string {
	id := e.chat
	switch {
	case strings.Contains(route, "/agents/{id}"):
		id = e.agent
	case strings.Contains(route, "/runs/"):
		id = e.run
	case strings.Contains(route, "/interactions/"):
		id = e.question
	case strings.Contains(route, "/nodes/"):
		id = e.node
	case strings.HasSuffix(route, "/{id}/agents/{agent}/stop"):
		id = e.group
	}
	return map[string]string{"{id}": id, "{agent}": e.agent, "{file}": e.file, "{session}": "native", "{provider}": "edge", "{secret}": "x"}
}

// reasonable returns a body that the route's own user would succeed with.
func (e estate) reasonable(route account.Route) any {
	switch {
	case strings.HasSuffix(route.Path, "/messages"):
		return obj{"requestId": uuid(), "content": "intruding"}
	case strings.HasSuffix(route.Path, "/read"):
		return obj{"seq": 1}
	case strings.HasSuffix(route.Path, "/respond"):
		return obj{"answer": "once"}
	case route.Method == http.MethodPatch && strings.Contains(route.Path, "conversations"):
		return obj{"pinned": true}
	case route.Method == http.MethodPatch:
		return obj{"instructions": "intruding"}
	}
	return obj{}
}

// Ensures that a second user, on every route and with every id of the first,
// meets missing rows, changes nothing, and has an empty log.
func TestScenario18_ForeignRowsAreMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	owner, other := f.as("ann"), f.as("bob")
	e := owner.estate(f)
	before, cursor := owner.everything(e), owner.cursor()
	tried := 0
	for _, route := range f.routes {
		path, isApp := strings.CutPrefix(route.Path, "/api/app")
		if !isApp || !strings.Contains(path, "{") || strings.Contains(path, "/settings/") || strings.Contains(path, "/admin/") {
			continue
		}
		for place, id := range e.inPath(path) {
			path = strings.ReplaceAll(path, place, id)
		}
		a := other.do(route.Method, path, e.reasonable(route))
		tried++
		if strings.Contains(path, "session-context") {
			if route.Method == http.MethodGet && (a.status != http.StatusOK || a.at("snapshot") != nil) {
				t.Errorf("%s answers %s", a.what, a.body)
			}
			continue
		}
		a.want(http.StatusNotFound, "workspace_not_found")
		missing := path
		for _, id := range []string{e.agent, e.chat, e.group, e.run, e.question, e.file, e.node} {
			missing = strings.ReplaceAll(missing, id, uuid())
		}
		if b := other.do(route.Method, missing, e.reasonable(route)); !bytes.Equal(a.body, b.body) || a.status != b.status {
			t.Errorf("%s answers %s, a missing row %s", a.what, a.body, b.body)
		}
	}
	if tried < 12 {
		t.Errorf("only %d routes were tried", tried)
	}
	own := other.agents("x", "y")
	mine := other.direct(own[0])
	other.post("/conversations/"+mine+"/messages", obj{"requestId": uuid(), "content": "x", "fileIds": []string{e.file}}).want(http.StatusNotFound, "upload_not_found")
	other.post("/conversations", obj{"name": "x", "memberIds": []string{own[0], e.agent}, "administratorId": own[0]}).want(http.StatusNotFound, "workspace_not_found")
	other.post("/agents", obj{"name": "z", "profile": "default", "nodeId": e.node}).want(http.StatusConflict, "source_unavailable")
	for _, event := range other.allEvents(0) {
		if text := event["data"]; strings.Contains(string(mustJSON(t, text)), "private") {
			t.Errorf("somebody else's log has %v", event)
		}
	}
	for _, path := range []string{"/agents", "/conversations", "/files", "/nodes"} {
		if a := other.get(path); bytes.Contains(a.body, []byte("private")) || bytes.Contains(a.body, []byte(e.agent)) {
			t.Errorf("somebody else's %s has %s", path, a.body)
		}
	}
	if after := owner.everything(e); !bytes.Equal(before, after) || owner.cursor() != cursor {
		t.Errorf("the owner's rows changed from\n%s\nto\n%s", before, after)
	}
}

// everything returns all that the user sees of the estate.
func (c *client) everything(e estate) []byte {
	c.Helper()
	var all []byte
	for _, path := range []string{"/agents", "/conversations", "/conversations/" + e.chat, "/conversations/" + e.group, "/files", "/nodes", "/session-context/native", "/events"} {
		all = append(append(all, c.get(path).want(http.StatusOK).body...), '\n')
	}
	return all
}

// Ensures that a session of a conversation, by any id that it has or had, is no
// native session for anybody, also not for its owner, and that no upstream is
// asked about it. Lists, searches and calls of native sessions are served nowhere.
func TestScenario77_HiddenSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	owner, other := f.as("ann"), f.as("bob")
	e := owner.estate(f)
	err := f.store.SaveBinding(context.Background(), f.idOf("ann"), workspace.Binding{
		ConversationID: workspace.ConversationID(e.chat), AgentID: workspace.AgentID(e.agent), NodeID: workspace.LocalNode, Profile: "default",
		StoredID: "stored-2", RuntimeID: "runtime-1", Aliases: []string{"stored-1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := f.upstreams.asked
	for _, c := range []*client{owner, other} {
		for _, id := range []string{"stored-2", "stored-1", "runtime-1", "stored%2D2"} {
			c.get("/session-context/"+id).want(http.StatusNotFound, "session_not_found")
			c.put("/session-context/"+id+"?profile=x", obj{"usedTokens": 1, "observedAt": 1}).want(http.StatusNotFound, "session_not_found")
			for _, path := range []string{"//api/sessions/" + id, "//api/sessions", "//api/sessions/search?q=" + id, "//api/rpc", "/sessions/" + id + "/messages"} {
				c.get(path).want(http.StatusNotFound, "not_found")
			}
		}
		c.get("/session-context/native-2").want(http.StatusOK)
	}
	if f.upstreams.asked != asked {
		t.Error("the upstream was asked")
	}
}

// Ensures that nothing secret of section 9.4 is in what a user can read.
func TestAnswers_HoldNothingSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	e := c.estate(f)
	all := c.everything(e)
	for _, word := range []string{"digest", "password", "upstreamRequestId", "request-1", "taskStatus", "launchConfig", f.dir} {
		if bytes.Contains(all, []byte(word)) {
			t.Errorf("%q is told", word)
		}
	}
}
