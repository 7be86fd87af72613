package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/account"
)

// Ensures that a write without the token, or from a foreign page, is refused and
// changes nothing, whatever its route, and that the same write with both succeeds.
func TestScenario02_WritesNeedTokenAndOrigin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	agent := c.agent("Ann")
	before := c.cursor()
	for _, route := range f.routes {
		if route.Method == http.MethodGet || !strings.HasPrefix(route.Path, "/api/app/") {
			continue
		}
		path := filled(strings.TrimPrefix(route.Path, "/api/app"), agent)
		without := c.request(route.Method, path, strings.NewReader("{}"))
		without.Header.Del(account.CSRFHeader)
		c.send(without).want(http.StatusForbidden, "invalid_csrf")
		foreign := c.request(route.Method, path, strings.NewReader("{}"))
		foreign.Header.Set("Origin", "https://evil.example")
		c.send(foreign).want(http.StatusForbidden, "invalid_origin")
	}
	if c.cursor() != before {
		t.Error("a refused write changed something")
	}
	c.patch("/agents/"+agent, obj{"name": "Bea"}).want(http.StatusOK)
}

// filled returns a route's path with an id in each of its places.
func filled(path, id string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = id
		}
	}
	return strings.Join(parts, "/")
}

// Ensures that bootstrap gives an anonymous client a token with its cookie, that
// signing in replaces it, and that the old one no longer serves.
func TestScenario03_TokenRotates(t *testing.T) {
	t.Parallel()
	c := newFixture(t).anonymous()
	first := c.get("/bootstrap").want(http.StatusOK)
	if first.at("authenticated") != false || first.str("csrfToken") == "" || len(cookiesOf(c)) != 1 {
		t.Errorf("the answer is %s with cookies %v", first.body, cookiesOf(c))
	}
	old := c.csrf
	c.post("/login", obj{"username": "ann", "password": password}).want(http.StatusOK)
	if c.csrf == old {
		t.Error("signing in keeps the token")
	}
	stale := c.request(http.MethodPost, "/agents", strings.NewReader("{}"))
	stale.Header.Set(account.CSRFHeader, old)
	c.send(stale).want(http.StatusForbidden, "invalid_csrf")
}

// Ensures that an upstream that never answers keeps lists and history from nobody.
// That bootstrap itself answers within 3 s is held where it is served.
func TestScenario04_UpstreamHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	chat := c.direct(c.agent("Ann"))
	c.say(chat, "hello")
	f.upstreams.set("local", hang)
	ctx, cancel := context.WithCancel(t.Context())
	asking := c.request(http.MethodGet, "/agents/sources", nil).WithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err := c.http.Do(asking)
		if err == nil {
			_ = response.Body.Close()
		}
	}()
	boot := c.get("/bootstrap").want(http.StatusOK)
	if boot.at("upstreamReady") != false {
		t.Errorf("the answer is %s", boot.body)
	}
	c.get("/agents").want(http.StatusOK)
	c.get("/conversations").want(http.StatusOK)
	if list := c.get("/conversations/" + chat + "/messages").list("messages"); len(list) != 1 {
		t.Errorf("the history has %d messages", len(list))
	}
	f.as("bob")
	cancel()
	<-done
}

// Ensures that a path that is none answers as a missing route, whatever its form,
// and that a method that is none says which there are.
func TestPaths_UnknownAndMethods(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	for _, path := range []string{"/nothing", "/agents/", "//api", "//api/", "//api/nothing", "//auth/nothing", "/conversations/x/y", "/../app/agents"} {
		c.get(path).want(http.StatusNotFound, "not_found")
	}
	for path, allow := range map[string]string{"/agents": "GET, HEAD, POST", "/events": "GET, HEAD", "/conversations/x": "GET, HEAD, PATCH"} {
		a := c.delete(path).want(http.StatusMethodNotAllowed, "method_not_allowed")
		allowed := strings.Split(a.header.Get("Allow"), ", ")
		slices.Sort(allowed)
		if strings.Join(allowed, ", ") != allow {
			t.Errorf("DELETE %s allows %q", path, a.header.Get("Allow"))
		}
	}
}

// Ensures that answers are kept by no cache and carry the headers that keep pages
// of other hosts out.
func TestHeaders(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	for _, a := range []answer{c.get("/agents"), c.get("/nothing"), c.get("/events"), c.get("//healthz"), c.get("/groups"), c.post("/agents", obj{})} {
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", a.what, name, got, want)
			}
		}
		if !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("%s: the policy is %q", a.what, a.header.Get("Content-Security-Policy"))
		}
	}
}

// Ensures that whatever was retired answers 410 to whoever asks by whatever
// method, and that the upstream hears nothing of it.
func TestScenario78_RetiredPaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	signedIn, stranger := f.as("ann"), f.anonymous()
	stranger.csrf = ""
	plugin := []string{
		"//api/plugins/yaoyao", "//api/plugins/yaoyao/install", "//plugins/yaoyao/x", "/plugins/yaoyao/reconcile",
		"/groups", "/groups/1/messages", "//api/app//groups", "//x/../api/app/groups",
	}
	streams := []string{"/realtime-leases", "/realtime-leases/1", "//api/auth/ws-ticket", "//api/ws", "//ws/chat", "//ws/groups"}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		for _, c := range []*client{signedIn, stranger} {
			for _, path := range plugin {
				c.do(method, path, nil).want(http.StatusGone, "retired_plugin_api")
			}
			for _, path := range streams {
				c.do(method, path, nil).want(http.StatusGone, "http_sse_required")
			}
		}
	}
	for _, path := range []string{"/events", "/agents", "//anything"} {
		r := stranger.request(http.MethodGet, path, nil)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "WebSocket")
		stranger.send(r).want(http.StatusGone, "http_sse_required")
	}
	signedIn.get("/groupsx").want(http.StatusNotFound, "not_found")
	if f.upstreams.asked != 0 {
		t.Errorf("the upstream was asked %d times", f.upstreams.asked)
	}
}

// Ensures that the eight presets have a leading role first and four or five roles
// each, and that applying one fills roles for every member and leaves agents as
// they are.
func TestScenario79_Presets(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	presets := c.get("/team-presets").want(http.StatusOK).list("presets")
	if len(presets) != 8 {
		t.Fatalf("there are %d presets", len(presets))
	}
	var agents []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		agents = append(agents, c.agent(name))
	}
	for _, p := range presets {
		roles := p.(obj)["roles"].([]any)
		if len(roles) < 4 || len(roles) > 5 || len(roles) <= 3 {
			t.Errorf("%v has %d roles", p.(obj)["id"], len(roles))
		}
		duties := obj{}
		for i, role := range roles {
			if role.(obj)["host"] != (i == 0) {
				t.Errorf("%v: role %d leads: %v", p.(obj)["id"], i, role.(obj)["host"])
			}
			duties[agents[i]] = obj{"name": role.(obj)["name"], "description": role.(obj)["description"]}
		}
		made := c.post("/conversations", obj{
			"name": p.(obj)["name"], "memberIds": agents[:len(roles)], "administratorId": agents[0],
			"instructions": p.(obj)["instructions"], "memberRoles": duties, "mode": "host", "maxReplyRounds": 3,
		}).want(http.StatusCreated)
		if got := made.at("conversation", "memberRoles"); !equal(got, duties) {
			t.Errorf("the roles are %v, want %v", got, duties)
		}
	}
	for _, agent := range c.get("/agents").list("agents") {
		if agent.(obj)["revision"].(interface{ String() string }).String() != "1" || agent.(obj)["instructions"] != "" {
			t.Errorf("an agent was changed: %v", agent)
		}
	}
}

// Ensures that the health route answers whoever asks.
func TestHealth(t *testing.T) {
	t.Parallel()
	newFixture(t).anonymous().get("//healthz").want(http.StatusOK)
}
