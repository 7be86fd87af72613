package api_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/api"
)

// Ensures that a signed-in user sees protocol 1 and editable groups, and no
// feature whose routes are not served.
func TestScenario01_Capabilities(t *testing.T) {
	t.Parallel()
	all := newFixture(t).as("bob").get("/capabilities").want(http.StatusOK)
	if all.num("protocolVersion") != 1 || all.str("serverKind") != "yaoyao-web" {
		t.Errorf("the answer is %s", all.body)
	}
	for _, feature := range []string{"agents", "conversations", "editableGroups", "files", "voice", "context", "nodes", "events"} {
		if !slices.Contains(all.list("features"), any(feature)) {
			t.Errorf("%s is missing in %s", feature, all.body)
		}
	}
	if slices.Contains(all.list("features"), any("immutableGroups")) {
		t.Error("the feature of an older protocol is there")
	}
	bare := newFixture(t, func(o *api.Options) { o.Voice, o.Upstreams = false, nil }).as("bob")
	for _, feature := range []string{"voice", "nodes"} {
		if slices.Contains(bare.get("/capabilities").list("features"), any(feature)) {
			t.Errorf("%s is listed and not served", feature)
		}
	}
	for _, path := range []string{"/voice/runtime", "/tts/settings", "/nodes"} {
		bare.get(path).want(http.StatusNotFound, "not_found")
	}
}

// Ensures that an agent has exactly one direct chat, made with it, and that no
// session was opened for it.
func TestScenario05_AgentHasOneDirectChat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	id := c.agent("Ann")
	chats := c.get("/conversations").list("conversations")
	if len(chats) != 1 || chats[0].(obj)["kind"] != "direct" || chats[0].(obj)["administratorId"] != id {
		t.Errorf("the chats are %v", chats)
	}
	if got := types(c.allEvents(0)); !slices.Equal(got, []string{"agent", "conversation"}) {
		t.Errorf("the events are %v", got)
	}
	// The interface to Hermes has no way to open a session; it was asked once.
	if f.upstreams.asked != 1 {
		t.Errorf("the upstream was asked %d times", f.upstreams.asked)
	}
}

// Ensures that node and profile of an agent cannot be changed.
func TestScenario06_SourceIsImmutable(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	id := c.agent("Ann")
	for _, patch := range []obj{{"nodeId": "local"}, {"profile": "coder"}, {"name": "Bea", "profile": "default"}} {
		c.patch("/agents/"+id, patch).want(http.StatusBadRequest, "invalid_workspace_request")
	}
	agent := c.get("/agents").at("agents", "0").(obj)
	if agent["profile"] != "default" || agent["nodeId"] != "local" || agent["name"] != "Ann" {
		t.Errorf("the agent is %v", agent)
	}
}

// Ensures that a name is taken within its user, whatever its case, also by an
// archived agent, and free for another user.
func TestScenario07_NamesAreUniquePerUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	first, second := c.agent("Ann"), c.agent("Bea")
	c.post("/agents", obj{"name": " ann ", "profile": "default"}).want(http.StatusConflict, "duplicate_agent_name")
	c.patch("/agents/"+second, obj{"name": "ANN"}).want(http.StatusConflict, "duplicate_agent_name")
	c.patch("/agents/"+first, obj{"archived": true}).want(http.StatusOK)
	c.post("/agents", obj{"name": "Ann", "profile": "default"}).want(http.StatusConflict, "duplicate_agent_name")
	c.patch("/agents/"+first, obj{"name": "ANN"}).want(http.StatusOK)
	f.as("bob").agent("ann")
}

// Ensures that an agent on a source that is not live is refused and leaves no
// row; a node that does not answer has none, and no other node is asked.
func TestScenario08_SourceMustBeLive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	for _, body := range []obj{
		{"name": "Ann", "profile": "gone"},
		{"name": "Ann", "profile": "default", "nodeId": "7c0f3f0e-0000-4000-8000-000000000000"},
	} {
		c.post("/agents", body).want(http.StatusConflict, "source_unavailable")
	}
	f.upstreams.set("local", func(context.Context) ([]api.Profile, error) { return nil, errors.New("down") })
	c.post("/agents", obj{"name": "Ann", "profile": "default"}).want(http.StatusConflict, "source_unavailable")
	if len(c.get("/agents").list("agents"))+len(c.get("/conversations").list("conversations"))+len(c.allEvents(0)) != 0 {
		t.Error("a refused agent left rows")
	}
}

// Ensures that what is absent from a patch stays, and that an avatar is one of the
// four forms.
func TestScenario09_AbsentStays(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	const portrait = "data:image/png;base64,AAAA"
	id := c.post("/agents", obj{"name": "Ann", "profile": "default", "avatar": portrait}).want(http.StatusCreated).str("agent", "id")
	edited := c.patch("/agents/"+id, obj{"instructions": "be kind"}).want(http.StatusOK)
	if edited.str("agent", "avatar") != portrait || edited.num("agent", "revision") != 2 {
		t.Errorf("the agent is %s", edited.body)
	}
	for _, avatar := range []any{"javascript:alert(1)", "https://x.example/a.png", nil, 1} {
		c.patch("/agents/"+id, obj{"avatar": avatar}).want(http.StatusBadRequest, "invalid_workspace_request")
	}
	c.patch("/agents/"+id, obj{"avatar": ""}).want(http.StatusOK)
	if same := c.patch("/agents/"+id, obj{}).want(http.StatusOK); same.num("agent", "revision") != 3 {
		t.Errorf("an empty patch is a revision: %s", same.body)
	}
}

// Ensures that agent and direct chat show the same derived portrait, before and
// after renaming.
func TestScenario10_DerivedPortrait(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	id := c.agent("Ann")
	portrait := c.get("/agents").str("agents", "0", "avatar")
	if !strings.HasPrefix(portrait, "yaoyao-mascot:v1:") {
		t.Errorf("the portrait is %q", portrait)
	}
	same := func(when string) {
		t.Helper()
		agent, chat := c.get("/agents").at("agents", "0").(obj), c.get("/conversations").at("conversations", "0").(obj)
		if agent["avatar"] != portrait || chat["avatar"] != portrait || agent["name"] != chat["name"] {
			t.Errorf("%s: agent %v, chat %v", when, agent, chat)
		}
	}
	same("at first")
	if renamed := c.patch("/agents/"+id, obj{"name": "Bea"}).want(http.StatusOK); renamed.str("agent", "avatar") != portrait {
		t.Errorf("the answer shows %s", renamed.body)
	}
	same("after renaming")
	for _, e := range c.allEvents(0) {
		if data := e["data"].(obj); data["avatar"] != portrait {
			t.Errorf("the event %v shows another portrait", e)
		}
	}
}

// Ensures that all upstreams are asked at the same time, that one that fails costs
// only itself, and that a source is called by its title.
func TestSources_AskAllAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	c.post("/nodes", obj{"name": "one", "url": "http://10.0.0.1", "username": "u", "password": "p"}).want(http.StatusCreated)
	f.clock.advance(1)
	c.post("/nodes", obj{"name": "two", "url": "http://10.0.0.2", "username": "u", "password": "p"}).want(http.StatusCreated)
	nodes := c.get("/nodes").list("nodes")
	one, two := nodeID(nodes[0]), nodeID(nodes[1])
	meet := make(chan struct{})
	f.upstreams.set("local", func(context.Context) ([]api.Profile, error) {
		<-meet
		return []api.Profile{{Name: "default", Title: "总管"}, {Name: "coder"}}, nil
	})
	f.upstreams.set(one, func(context.Context) ([]api.Profile, error) { return nil, errors.New("down") })
	f.upstreams.set(two, func(context.Context) ([]api.Profile, error) {
		close(meet) // nobody comes here while the first is still being asked alone
		return []api.Profile{{Name: "far"}}, nil
	})
	list := c.get("/agents/sources").want(http.StatusOK)
	want := []any{
		obj{"nodeId": "local", "profile": "default", "name": "总管"},
		obj{"nodeId": "local", "profile": "coder", "name": "coder"},
		obj{"nodeId": string(two), "profile": "far", "name": "far"},
	}
	if !equal(list.list("sources"), want) || !equal(list.list("errors"), []any{string(one)}) {
		t.Errorf("the answer is %s", list.body)
	}
	f.upstreams.set(two, func(context.Context) ([]api.Profile, error) { return []api.Profile{{Name: "far"}}, nil })
	c.post("/agents", obj{"name": "Far", "profile": "far", "nodeId": strings.ToUpper(string(two))}).want(http.StatusCreated)
}

// Ensures that without an upstream there is no source, and the answer says so.
func TestSources_WithoutUpstream(t *testing.T) {
	t.Parallel()
	list := newFixture(t, func(o *api.Options) { o.Upstreams = nil }).as("ann").get("/agents/sources").want(http.StatusOK)
	if len(list.list("sources")) != 0 || !equal(list.list("errors"), []any{"local"}) {
		t.Errorf("the answer is %s", list.body)
	}
}

func nodeID(node any) workspace.NodeID { return workspace.NodeID(node.(obj)["id"].(string)) }

func equal(a, b any) bool { return cmp.Diff(a, b) == "" }
