package api_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/api"
)

// Ensures that a node shows id, name and URL alone, that its password is nowhere
// in the database, and that it is its user's alone.
func TestScenario33_Nodes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, other := f.as("ann"), f.as("bob")
	const secret = "a-very-secret-word"
	c.post("/nodes", obj{"name": " far ", "url": "https://hermes.example/base/", "username": "me", "password": secret}).want(http.StatusCreated)
	list := c.get("/nodes").want(http.StatusOK)
	node := list.at("nodes", "0").(obj)
	if len(node) != 3 || node["name"] != "far" || node["url"] != "https://hermes.example/base" {
		t.Errorf("the node is %v", node)
	}
	if data := f.data(); bytes.Contains(data, []byte(secret)) || !bytes.Contains(data, []byte("hermes.example")) {
		t.Error("the password is in the database, or nothing is")
	}
	if got := types(c.allEvents(0)); !equal(got, []string{"nodes"}) {
		t.Errorf("the events are %v", got)
	}
	id := node["id"].(string)
	if len(other.get("/nodes").list("nodes")) != 0 {
		t.Error("somebody else sees the node")
	}
	other.delete("/nodes/"+id).want(http.StatusNotFound, "workspace_not_found")
	c.delete("/nodes/" + id).want(http.StatusOK)
	c.delete("/nodes/"+id).want(http.StatusNotFound, "workspace_not_found")
	if !equal(f.upstreams.forgot, []workspace.NodeID{workspace.NodeID(id)}) {
		t.Errorf("forgotten are %v", f.upstreams.forgot)
	}
}

// Ensures that only a node that is an upstream and lets the user in is stored, and
// that users who are no administrators reach no address of the host's own.
func TestNodes_AreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin, c := f.as("ann"), f.as("bob")
	node := func(url string) obj { return obj{"name": "far", "url": url, "username": "u", "password": "p"} }
	for _, url := range []string{"ftp://x.example", "http://u:p@x.example", "http://x.example?a=b", "http://x.example#a", "x.example", "http://"} {
		c.post("/nodes", node(url)).want(http.StatusBadRequest, "invalid_node")
	}
	for _, url := range []string{"http://169.254.169.254/latest", "http://[fe80::1]:80", "http://100.100.100.200", "http://0.0.0.0", "http://[::ffff:169.254.169.254]", "http://[fd00:ec2::254]"} {
		c.post("/nodes", node(url)).want(http.StatusBadRequest, "invalid_node")
	}
	c.post("/nodes", obj{"name": "", "url": "http://10.0.0.1"}).want(http.StatusBadRequest, "invalid_workspace_request")
	f.upstreams.kind = workspace.ServerKind
	c.post("/nodes", node("http://10.0.0.1")).want(http.StatusBadRequest, "native_gateway_required")
	f.upstreams.kind = ""
	f.upstreams.signIn = func(t api.Target) error {
		if t.Credentials.Password != "right" {
			return errors.New("no")
		}
		return nil
	}
	c.post("/nodes", node("http://10.0.0.1")).want(http.StatusBadRequest, "node_unavailable")
	if len(c.get("/nodes").list("nodes")) != 0 || len(c.allEvents(0)) != 0 {
		t.Error("a refused node left something")
	}
	f.upstreams.signIn = func(api.Target) error { return nil }
	c.post("/nodes", node("http://10.0.0.1")).want(http.StatusCreated)
	admin.post("/nodes", node("http://169.254.1.1")).want(http.StatusCreated)
}

// Ensures that a snapshot that was observed earlier replaces none, and that other
// users and profiles see none.
func TestScenario34_SessionContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, other := f.as("ann"), f.as("bob")
	const path = "/session-context/20260101_abc?profile=coder"
	if a := c.get(path).want(http.StatusOK); a.at("snapshot") != nil {
		t.Errorf("the snapshot is %s", a.body)
	}
	c.put(path, obj{"usedTokens": 5, "observedAt": 20, "limitTokens": nil, "model": "m"}).want(http.StatusOK)
	late := c.put(path, obj{"usedTokens": 9, "observedAt": 10}).want(http.StatusOK)
	if late.num("snapshot", "usedTokens") != 5 || late.num("snapshot", "observedAt") != 20 {
		t.Errorf("the answer is %s", late.body)
	}
	if a := c.get(path); a.num("snapshot", "usedTokens") != 5 || a.str("snapshot", "sessionId") != "20260101_abc" {
		t.Errorf("the snapshot is %s", a.body)
	}
	c.put(path, obj{"usedTokens": 7, "observedAt": 20}).want(http.StatusOK)
	if a := c.get(path); a.num("snapshot", "usedTokens") != 7 {
		t.Errorf("an equal time does not replace: %s", a.body)
	}
	for _, a := range []answer{other.get(path), c.get("/session-context/20260101_abc"), c.get("/session-context/x?profile=coder")} {
		if a.want(http.StatusOK).at("snapshot") != nil {
			t.Errorf("%s sees %s", a.what, a.body)
		}
	}
	header := c.request(http.MethodGet, "/session-context/20260101_abc?profile=", nil)
	header.Header.Set("X-Hermes-Profile", "coder")
	if a := c.send(header); a.at("snapshot") == nil {
		t.Error("the header names no profile")
	}
	c.put("/session-context/d", obj{"usedTokens": 1, "observedAt": 1}).want(http.StatusOK)
	if a := c.get("/session-context/d?profile=default"); a.at("snapshot") == nil {
		t.Error("a missing profile is not the default one")
	}
	for _, body := range []obj{{"observedAt": 1}, {"usedTokens": 1}, {"usedTokens": -1, "observedAt": 1}, {"usedTokens": nil, "observedAt": 1},
		{"usedTokens": 1, "observedAt": 1, "limitTokens": 0}, {"usedTokens": 1, "observedAt": 1, "percent": -1}, {"usedTokens": 1, "observedAt": 1, "sessionId": "x"}} {
		c.put(path, body).want(http.StatusBadRequest, "invalid_workspace_request")
	}
	c.get("/session-context/"+repeated(600)).want(http.StatusBadRequest, "invalid_workspace_request")
}

// Ensures that administrators see that there is a key and not which, and that each
// user has a voice of the own.
func TestScenario35_DuplexVoice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin, c := f.as("ann"), f.as("bob")
	const secret = "sk-very-secret"
	voices := []obj{{"id": "v1", "name": "One"}, {"id": "v2", "name": "Two"}}
	set := admin.put("/admin/duplex-voice", obj{"apiKey": secret, "voices": voices, "currentVoiceId": "v1"}).want(http.StatusOK)
	shown := admin.get("/admin/duplex-voice").want(http.StatusOK)
	if set.at("hasApiKey") != true || bytes.Contains(shown.body, []byte(secret)) || shown.str("currentVoiceId") != "v1" {
		t.Errorf("the administrator sees %s", shown.body)
	}
	if bytes.Contains(f.data(), []byte(secret)) || strings.Contains(f.log.String(), secret) {
		t.Error("the key is in the database or in the log")
	}
	c.put("/voice/current-voice", obj{"currentVoiceId": "v2"}).want(http.StatusOK)
	c.put("/voice/current-voice", obj{"currentVoiceId": "v3"}).want(http.StatusBadRequest, "invalid_workspace_request")
	if mine, theirs := c.get("/voice/runtime"), admin.get("/voice/runtime"); mine.str("currentVoiceId") != "v2" || theirs.str("currentVoiceId") != "v1" || mine.str("apiKey") != secret {
		t.Errorf("the voices are %s and %s", mine.body, theirs.body)
	}
	kept := admin.put("/admin/duplex-voice", obj{"voices": voices[:1], "currentVoiceId": ""}).want(http.StatusOK)
	if kept.at("hasApiKey") != true || c.get("/voice/runtime").str("currentVoiceId") != "" {
		t.Errorf("the record is %s", kept.body)
	}
	for _, body := range []obj{{"voices": voices, "currentVoiceId": "v3"}, {"voices": []obj{voices[0], voices[0]}, "currentVoiceId": ""}, {"currentVoiceId": ""}, {"voices": voices}} {
		admin.put("/admin/duplex-voice", body).want(http.StatusBadRequest, "invalid_workspace_request")
	}
	c.get("/admin/duplex-voice").want(http.StatusForbidden, "admin_required")
	c.put("/admin/duplex-voice", obj{}).want(http.StatusForbidden, "admin_required")
	closed := newFixture(t, func(o *api.Options) { o.ShareVoiceKey = false })
	closed.as("ann").put("/admin/duplex-voice", obj{"apiKey": secret, "voices": voices, "currentVoiceId": ""}).want(http.StatusOK)
	if a := closed.as("bob").get("/voice/runtime").want(http.StatusOK); a.str("apiKey") != "" {
		t.Errorf("a key that is not shared is told: %s", a.body)
	}
}

// Ensures that speech settings are merged, that secrets are shown by name alone
// and kept by their mark, and that what is removed is gone.
func TestSpeech(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin, c := f.as("ann"), f.as("bob")
	for kind, preset := range map[string]string{"/tts": "edge", "/stt": "browser"} {
		base := kind + "/settings"
		if a := c.get(base).want(http.StatusOK); a.str("activeProvider") != preset || len(a.list("settings")) != 0 {
			t.Errorf("at first: %s", a.body)
		}
		admin.put(base+"/active", obj{"provider": "openai"}).want(http.StatusBadRequest, "invalid_workspace_request")
		admin.put(base+"/openai", obj{
			"settings": obj{"voice": "a", "baseUrlPresets": []string{"http://a", "http://b"}, "none": nil},
			"secrets":  obj{"apiKey": "sk-hidden", "other": "x"}, "activeProvider": "openai",
		}).want(http.StatusOK)
		admin.put(base+"/openai", obj{"settings": obj{"speed": 2}, "secrets": obj{"apiKey": "[stored]"}}).want(http.StatusOK)
		a := c.get(base).want(http.StatusOK)
		if a.str("activeProvider") != "openai" || a.str("settings", "0", "settings", "voice") != "a" || a.str("settings", "0", "secrets", "apiKey") != "[stored]" ||
			bytes.Contains(a.body, []byte("sk-hidden")) {
			t.Errorf("merged: %s", a.body)
		}
		a = admin.delete(base + "/openai/base-url-preset?url=" + "http%3A%2F%2Fa").want(http.StatusOK)
		if !equal(a.list("settings", "0", "settings", "baseUrlPresets"), []any{"http://b"}) {
			t.Errorf("without a preset: %s", a.body)
		}
		a = admin.delete(base + "/openai/secret/apiKey").want(http.StatusOK)
		if !equal(a.at("settings", "0", "secrets"), obj{"other": "[stored]"}) {
			t.Errorf("without a secret: %s", a.body)
		}
		admin.put(base+"/openai", obj{"settings": obj{"a": repeated(32_001)}}).want(http.StatusRequestEntityTooLarge, "settings_too_large")
		for _, body := range []string{`{"settings":[]}`, `{"secrets":{"a":1}}`, `{"secrets":{"a":null}}`, `{"x":1}`, `{"secrets":null}`} {
			admin.put(base+"/openai", body).want(http.StatusBadRequest, "invalid_workspace_request")
		}
		a = admin.delete(base + "/openai").want(http.StatusOK)
		if a.str("activeProvider") != preset || len(a.list("settings")) != 0 {
			t.Errorf("removed: %s", a.body)
		}
		c.put(base+"/openai", obj{}).want(http.StatusForbidden, "admin_required")
		c.delete(base+"/openai").want(http.StatusForbidden, "admin_required")
	}
	info := c.get("/voice/providers-info").want(http.StatusOK)
	if info.str("tts", "0") != "edge" || info.str("stt", "0") != "browser" {
		t.Errorf("the providers are %s", info.body)
	}
}

// Ensures that a provider is asked once, that no redirect is followed, and that
// nothing of the key comes back.
func TestProbe(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			if r.Header.Get("Authorization") != "Bearer sk-key" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"tts-1","owned_by":"x"},{"id":""}]}`))
		case "/away/models":
			http.Redirect(w, r, "/v1/models", http.StatusFound)
		default:
			_, _ = w.Write([]byte(`<html>`))
		}
	}))
	t.Cleanup(provider.Close)
	ask := func(path, key string) answer {
		t.Helper()
		return c.post("/voice/probe", obj{"kind": "tts", "compatibility": "openai-compatible", "baseUrl": provider.URL + path, "apiKey": key}).want(http.StatusOK)
	}
	if a := ask("/v1/", "sk-key"); a.at("ok") != true || !equal(a.list("models"), []any{"tts-1"}) || a.str("normalizedBaseUrl") != provider.URL+"/v1" {
		t.Errorf("the answer is %s", a.body)
	}
	for path, summary := range map[string]string{"/v1": "401", "/away": "302", "/other": "模型列表"} {
		if a := ask(path, "sk-wrong"); a.at("ok") != false || !strings.Contains(a.str("errorSummary"), summary) || bytes.Contains(a.body, []byte("sk-wrong")) {
			t.Errorf("%s: the answer is %s", path, a.body)
		}
	}
	manual := c.post("/voice/probe", obj{"kind": "stt", "provider": "custom", "compatibility": "manual", "baseUrl": "http://127.0.0.1:1"}).want(http.StatusOK)
	if manual.at("ok") != true {
		t.Errorf("the answer is %s", manual.body)
	}
	gone := c.post("/voice/probe", obj{"kind": "stt", "compatibility": "openai-compatible", "baseUrl": "http://127.0.0.1:1"}).want(http.StatusOK)
	if gone.at("ok") != false {
		t.Errorf("the answer is %s", gone.body)
	}
	for _, body := range []obj{{}, {"kind": "tts", "compatibility": "x", "baseUrl": "http://a"}, {"kind": "tts", "compatibility": "manual", "baseUrl": "ftp://a"},
		{"kind": "tts", "compatibility": "manual", "baseUrl": "http://a", "apiKey": nil}, {"kind": repeated(200), "compatibility": "manual", "baseUrl": "http://a"}} {
		c.post("/voice/probe", body).want(http.StatusBadRequest, "invalid_workspace_request")
	}
}
