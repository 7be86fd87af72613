package api_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/api"
	"github.com/newos4/relay/pkg/workspace/store"
)

// walk tries every route in every way that the description promises.
type walk struct {
	*fixture

	runtime                  *executor
	admin, user, due, nobody *client
	e                        estate
}

// Ensures that every operation of the description answers with each status and
// each code that it promises, and with no other. That every answer also has the
// fields that it promises, the client of the tests holds at each one.
func TestDescription_IsWhatTheServerDoes(t *testing.T) {
	t.Parallel()
	e := &executor{}
	w := &walk{runtime: e, fixture: newFixture(t, withRuntime(e), func(o *api.Options) { o.Quota = store.Quota{PerOwner: 60 << 20} })}
	first := newFixture(t)
	w.admin, w.user, w.nobody = w.as("ann"), w.as("bob"), w.anonymous()
	if _, err := w.accounts.Add(t.Context(), account.NewUser{Username: "due", Password: password, Role: account.RoleAdmin, MustChangePassword: true}); err != nil {
		t.Fatal(err)
	}
	w.due = w.as("due")
	w.e = w.user.estate(w.fixture)
	w.guarded()
	w.accountRoutes()
	w.agentRoutes()
	w.conversationRoutes()
	w.runRoutes()
	w.fileRoutes()
	w.otherRoutes()
	w.faults()
	setup(first)
	var missing []string
	for _, promise := range w.schema.promised() {
		if !w.schema.seen[promise] && !first.schema.seen[promise] {
			missing = append(missing, promise)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d promises were not kept:\n%s", len(missing), strings.Join(missing, "\n"))
	}
}

// path returns a route's path with an estate's ids, as clients of the tests take it.
func (w *walk) path(route account.Route, e estate) string {
	path, isApp := strings.CutPrefix(route.Path, "/api/app")
	if !isApp {
		path = "/" + route.Path
	}
	for place, id := range e.inPath(path) {
		path = strings.ReplaceAll(path, place, id)
	}
	return path
}

// guarded tries what the guard refuses on every route.
func (w *walk) guarded() {
	w.Helper()
	for _, route := range w.routes {
		path, isWrite := w.path(route, w.e), route.Method != http.MethodGet
		elsewhere := w.admin.request(route.Method, path, nil)
		elsewhere.Host = "elsewhere.example"
		w.admin.send(elsewhere).want(http.StatusMisdirectedRequest, "invalid_host")
		if isWrite {
			foreign := w.admin.request(route.Method, path, strings.NewReader("{}"))
			foreign.Header.Set("Origin", "http://elsewhere.example")
			w.admin.send(foreign).want(http.StatusForbidden, "invalid_origin")
		}
		if isWrite && strings.HasPrefix(route.Path, "/api/app/") {
			bare := w.admin.request(route.Method, path, strings.NewReader("{}"))
			bare.Header.Del(account.CSRFHeader)
			w.admin.send(bare).want(http.StatusForbidden, "invalid_csrf")
		}
		if route.Access != account.Anyone {
			w.nobody.do(route.Method, path, nil).want(http.StatusUnauthorized, "authentication_required")
		}
		if route.Access == account.SignedIn || route.Access == account.AdminOnly {
			w.due.do(route.Method, path, nil).want(http.StatusPreconditionRequired, "password_change_required")
		}
		if route.Access == account.AdminOnly {
			w.user.do(route.Method, path, nil).want(http.StatusForbidden, "admin_required")
		}
		if isWrite && !route.RawBody {
			w.bodies(route, path)
		}
	}
}

// bodies tries bodies that no route takes.
func (w *walk) bodies(route account.Route, path string) {
	w.Helper()
	c := w.admin
	c.do(route.Method, path, "{").want(http.StatusBadRequest, "invalid_json_body")
	limit := route.Limit
	if limit == 0 {
		limit = account.MaxBody
	}
	c.do(route.Method, path, `{"a":"`+repeated(int(limit))+`"}`).want(http.StatusRequestEntityTooLarge, "invalid_json_body")
	if route.Path != "/auth/logout" {
		c.do(route.Method, path, obj{"unknown": 1}).want(http.StatusBadRequest, "invalid_workspace_request")
	}
}

// setup makes the first account of a workspace that has none yet, and tries what is
// refused from then on.
func setup(f *fixture) {
	f.Helper()
	f.exec(`DELETE FROM account`)
	c := f.anonymous()
	c.post("/setup", obj{"username": "a/b", "password": password}).want(http.StatusBadRequest, "invalid_username")
	c.post("/setup", obj{"username": "root", "password": "short"}).want(http.StatusBadRequest, "invalid_password")
	c.post("/setup", obj{"username": "root", "password": password}).want(http.StatusOK)
	c.post("/setup", obj{"username": "root", "password": password}).want(http.StatusConflict, "setup_complete")
}

func (w *walk) accountRoutes() {
	w.Helper()
	c := w.admin
	c.get("/bootstrap").want(http.StatusOK)
	made := c.post("/admin/users", obj{"username": "carl", "password": password}).want(http.StatusCreated)
	c.post("/admin/users", obj{"username": "CARL", "password": password}).want(http.StatusConflict, "username_exists")
	c.post("/admin/users", obj{"username": "c@rl", "password": password}).want(http.StatusBadRequest, "invalid_username")
	c.post("/admin/users", obj{"username": "dora", "password": "x"}).want(http.StatusBadRequest, "invalid_password")
	c.get("/admin/users").want(http.StatusOK)
	carl, ann := "/admin/users/"+made.str("id"), "/admin/users/"+string(w.idOf("ann"))
	c.patch(carl, obj{"password": "x"}).want(http.StatusBadRequest, "invalid_password")
	c.patch(carl, obj{"password": password, "enabled": true}).want(http.StatusOK)
	for _, path := range []string{ann, "/admin/users/" + uuid()} {
		status, code := http.StatusConflict, "admin_account_protected"
		if path != ann {
			status, code = http.StatusNotFound, "user_not_found"
		}
		c.patch(path, obj{"enabled": false}).want(status, code)
		c.delete(path).want(status, code)
	}
	carls := w.as("carl")
	credentials := func(current, fresh, name string) answer {
		body := obj{"currentPassword": current, "newPassword": fresh}
		if name != "" {
			body["username"] = name
		}
		return carls.put("/account/credentials", body)
	}
	credentials(password, "short", "").want(http.StatusBadRequest, "invalid_password")
	credentials(password, "another horse", "a b").want(http.StatusBadRequest, "invalid_username")
	credentials(password, "another horse", "ann").want(http.StatusConflict, "username_exists")
	credentials(password, "another horse", "karl").want(http.StatusOK)
	w.throttled(func() answer { return credentials("wrong horse", "another horse", "") }, "invalid_current_password")
	carls.get("//api/auth/me").want(http.StatusOK)
	carls.post("/logout", nil).want(http.StatusOK)
	c.delete(carl).want(http.StatusOK)

	stranger := w.anonymous()
	stranger.post("/login", obj{"username": "ann"}).want(http.StatusBadRequest, "invalid_credentials")
	w.throttled(func() answer { return stranger.post("/login", obj{"username": "x", "password": "wrong horse"}) }, "login_failed")
	w.clock.advance(time.Hour)
	stranger.post("/login", obj{"username": "bob", "password": password}).want(http.StatusOK)
	native := "//auth/password-login"
	stranger.post(native, obj{"username": "ann"}).want(http.StatusBadRequest, "invalid_credentials")
	w.throttled(func() answer { return stranger.post(native, obj{"username": "y", "password": "wrong horse"}) }, "login_failed")
	w.clock.advance(time.Hour)
	stranger.post(native, obj{"username": "bob", "password": password}).want(http.StatusOK)
	stranger.get("//api/status").want(http.StatusOK)
	stranger.get("//api/auth/providers").want(http.StatusOK)
	stranger.post("//auth/logout", nil).want(http.StatusOK)
}

// throttled tries a wrong password until there were too many.
func (w *walk) throttled(try func() answer, wrong string) {
	w.Helper()
	for range 200 {
		a := try()
		if a.status == http.StatusTooManyRequests {
			a.want(http.StatusTooManyRequests, "login_throttled")
			return
		}
		a.want(http.StatusUnauthorized, wrong)
	}
	w.Error("nothing is too often")
}

func (w *walk) agentRoutes() {
	w.Helper()
	c := w.user
	c.get("/agents/sources").want(http.StatusOK)
	c.get("/agents").want(http.StatusOK)
	c.post("/agents", obj{"name": "ann", "profile": "default"}).want(http.StatusConflict, "duplicate_agent_name")
	c.post("/agents", obj{"name": "new", "profile": "gone"}).want(http.StatusConflict, "source_unavailable")
	c.patch("/agents/"+w.e.agent, obj{"name": "bea"}).want(http.StatusConflict, "duplicate_agent_name")
	c.patch("/agents/"+w.e.agent, obj{"instructions": "x"}).want(http.StatusOK)
	c.patch("/agents/"+uuid(), obj{}).want(http.StatusNotFound, "workspace_not_found")
}

func (w *walk) conversationRoutes() {
	w.Helper()
	c, e := w.user, w.e
	archived := c.agent("old")
	c.patch("/agents/"+archived, obj{"archived": true}).want(http.StatusOK)
	create := func(members ...string) answer {
		return c.post("/conversations", obj{"name": "x", "memberIds": members, "administratorId": e.agent})
	}
	create(e.agent, archived).want(http.StatusConflict, "agent_archived")
	create(e.agent, uuid()).want(http.StatusNotFound, "workspace_not_found")
	create(archived, archived).want(http.StatusBadRequest, "invalid_members")
	c.get("/conversations").want(http.StatusOK)
	group, none := "/conversations/"+e.group, "/conversations/"+uuid()
	c.get(group).want(http.StatusOK)
	c.get(none).want(http.StatusNotFound, "workspace_not_found")
	c.patch(none, obj{}).want(http.StatusNotFound, "workspace_not_found")
	c.patch(group, obj{"pinned": true, "memberRoles": obj{e.agent: obj{"name": "lead"}}}).want(http.StatusOK)
	c.patch(group, obj{"memberIds": []string{e.agent, archived}}).want(http.StatusConflict, "agent_archived")
	c.patch(group, obj{"autoReplyIds": []string{archived}}).want(http.StatusBadRequest, "invalid_members")
	c.patch(group, obj{"memberIds": []string{archived}}).want(http.StatusBadRequest, "administrator_required")
	c.patch("/conversations/"+e.chat, obj{"name": "x"}).want(http.StatusBadRequest, "edit_agent_instead")

	c.get(group + "/messages").want(http.StatusOK)
	c.get(none+"/messages").want(http.StatusNotFound, "workspace_not_found")
	id := uuid()
	send := func(to, id, text string, more obj) answer {
		body := obj{"requestId": id, "content": text}
		for k, v := range more {
			body[k] = v
		}
		return c.post(to+"/messages", body)
	}
	send(group, id, "hi", nil).want(http.StatusAccepted)
	send(group, id, "ho", nil).want(http.StatusConflict, "idempotency_conflict")
	send(none, uuid(), "hi", nil).want(http.StatusNotFound, "workspace_not_found")
	send(group, uuid(), "hi", obj{"fileIds": []string{uuid()}}).want(http.StatusNotFound, "upload_not_found")
	send(group, uuid(), "hi", obj{"mentionIds": []string{archived}}).want(http.StatusBadRequest, "invalid_mentions")
	send("/conversations/"+c.direct(archived), uuid(), "hi", nil).want(http.StatusConflict, "conversation_archived")
	c.put(group+"/read", obj{"seq": 1}).want(http.StatusOK)
	c.put(none+"/read", obj{"seq": 1}).want(http.StatusNotFound, "workspace_not_found")
	c.post(group+"/agents/"+archived+"/stop", nil).want(http.StatusBadRequest, "invalid_members")
	c.post(none+"/agents/"+archived+"/stop", nil).want(http.StatusNotFound, "workspace_not_found")
}

func (w *walk) runRoutes() {
	w.Helper()
	c, e := w.user, w.e
	answer := func(id, text string) answer { return c.post("/interactions/"+id+"/respond", obj{"answer": text}) }
	answer(e.question, "once").want(http.StatusConflict, "interaction_offline")
	w.runtime.online = true
	answer(e.question, "perhaps").want(http.StatusBadRequest, "invalid_approval")
	answer(e.question, "once").want(http.StatusOK)
	answer(e.question, "deny").want(http.StatusConflict, "interaction_answer_conflict")
	w.runtime.err = errors.New("lost")
	answer(w.ask(e.run, "approval"), "once").want(http.StatusConflict, "interaction_uncertain")
	answer(uuid(), "once").want(http.StatusNotFound, "workspace_not_found")
	for _, what := range []string{"/reconcile", "/stop"} {
		status := http.StatusOK
		if what == "/reconcile" {
			status = http.StatusAccepted
		}
		c.post("/runs/"+e.run+what, nil).want(status)
		c.post("/runs/"+uuid()+what, nil).want(http.StatusNotFound, "workspace_not_found")
	}
	c.post("/conversations/"+e.group+"/agents/"+e.agent+"/stop", nil).want(http.StatusOK)
	c.get("/events").want(http.StatusOK)
}

func (w *walk) fileRoutes() {
	w.Helper()
	c, e := w.user, w.e
	c.uploadAll(part{"", "", "x"}).want(http.StatusBadRequest, "missing_files")
	c.uploadAll(slices.Repeat([]part{{"a", "", "x"}}, 9)...).want(http.StatusRequestEntityTooLarge, "too_many_uploads")
	c.uploadAll(slices.Repeat([]part{{"", "", "x"}}, 17)...).want(http.StatusRequestEntityTooLarge, "too_many_parts")
	c.uploadAll(part{"a", "", repeated(workspace.MaxFileBytes + 1)}).want(http.StatusRequestEntityTooLarge, "upload_file_too_large")
	third := part{"a", "", repeated(20 << 20)}
	c.uploadAll(third, third, third).want(http.StatusRequestEntityTooLarge, "upload_request_too_large")
	c.uploadAll(third).want(http.StatusCreated)
	c.uploadAll(third, third).want(http.StatusRequestEntityTooLarge, "upload_quota_exceeded")
	for kind, code := range map[string]string{"multipart/form-data; boundary=b": "invalid_upload", "text/plain": "invalid_content_type"} {
		r := c.request(http.MethodPost, "/uploads", strings.NewReader("--b\r\n"))
		r.Header.Set("Content-Type", kind)
		c.send(r).want(map[string]int{"invalid_upload": 400, "invalid_content_type": 415}[code], code)
	}
	c.get("/files").want(http.StatusOK)
	c.get("/files?cursor=x").want(http.StatusBadRequest, "invalid_workspace_request")
	c.get("/files/stats").want(http.StatusOK)
	c.post("/message-files/query", obj{"messageIds": []string{}}).want(http.StatusOK)
	for _, how := range []string{"/download", "/preview"} {
		c.get("/files/" + e.file + how).want(http.StatusOK)
		c.get("/files/"+uuid()+how).want(http.StatusNotFound, "workspace_not_found")
		for value, status := range map[string]int{"bytes=0-1": http.StatusPartialContent, "bytes=9-1": http.StatusRequestedRangeNotSatisfiable} {
			r := c.request(http.MethodGet, "/files/"+e.file+how, nil)
			r.Header.Set("Range", value)
			c.send(r).want(status)
		}
	}
	w.harmedFiles()
}

// harmedFiles tries files whose bytes changed, and then are gone.
func (w *walk) harmedFiles() {
	w.Helper()
	for _, path := range w.onDisk() {
		if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
			w.Fatal(err)
		}
	}
	for _, how := range []string{"/download", "/preview"} {
		w.user.get("/files/"+w.e.file+how).want(http.StatusConflict, "unsafe_upload")
	}
	for _, path := range w.onDisk() {
		if err := os.Remove(path); err != nil {
			w.Fatal(err)
		}
	}
	for _, how := range []string{"/download", "/preview"} {
		w.user.get("/files/"+w.e.file+how).want(http.StatusNotFound, "file_missing")
	}
}

func (w *walk) otherRoutes() {
	w.Helper()
	c, admin, e := w.user, w.admin, w.e
	for _, path := range []string{"/capabilities", "/team-presets", "/openapi.json", "//healthz", "/nodes", "/voice/runtime", "/voice/providers-info", "/session-context/x"} {
		c.get(path).want(http.StatusOK)
	}
	node := func(url string) answer { return c.post("/nodes", obj{"name": "n", "url": url}) }
	node("ftp://x").want(http.StatusBadRequest, "invalid_node")
	w.upstreams.kind = workspace.ServerKind
	node("http://10.0.0.2").want(http.StatusBadRequest, "native_gateway_required")
	w.upstreams.kind, w.upstreams.signIn = "", func(api.Target) error { return errors.New("no") }
	node("http://10.0.0.2").want(http.StatusBadRequest, "node_unavailable")
	c.delete("/nodes/" + e.node).want(http.StatusOK)
	c.delete("/nodes/"+e.node).want(http.StatusNotFound, "workspace_not_found")
	c.get("/session-context/"+repeated(600)).want(http.StatusBadRequest, "invalid_workspace_request")
	c.put("/session-context/x", obj{"usedTokens": 1, "observedAt": 1}).want(http.StatusOK)
	err := w.store.SaveBinding(context.Background(), w.idOf("bob"), workspace.Binding{
		ConversationID: workspace.ConversationID(e.chat), AgentID: workspace.AgentID(e.agent), StoredID: "hidden"})
	if err != nil {
		w.Fatal(err)
	}
	c.get("/session-context/hidden").want(http.StatusNotFound, "session_not_found")
	c.put("/session-context/hidden", obj{"usedTokens": 1, "observedAt": 1}).want(http.StatusNotFound, "session_not_found")
	voices := obj{"voices": []obj{{"id": "v", "name": "V"}}, "currentVoiceId": "v"}
	admin.put("/admin/duplex-voice", voices).want(http.StatusOK)
	admin.get("/admin/duplex-voice").want(http.StatusOK)
	c.put("/voice/current-voice", obj{"currentVoiceId": "v"}).want(http.StatusOK)
	admin.post("/voice/probe", obj{"kind": "tts", "compatibility": "manual", "baseUrl": "http://x"}).want(http.StatusOK)
	for _, base := range []string{"/tts/settings", "/stt/settings"} {
		c.get(base).want(http.StatusOK)
		admin.put(base+"/openai", obj{"secrets": obj{"k": "v"}}).want(http.StatusOK)
		admin.put(base+"/openai", obj{"settings": obj{"k": repeated(33_000)}}).want(http.StatusRequestEntityTooLarge, "settings_too_large")
		admin.put(base+"/active", obj{"provider": "openai"}).want(http.StatusOK)
		for _, rest := range []string{"/secret/k", "/base-url-preset?url=x", ""} {
			admin.delete(base + "/openai" + rest).want(http.StatusOK)
		}
	}
}

// faults tries every route with a session once the database is closed.
func (w *walk) faults() {
	w.Helper()
	if err := w.store.Close(); err != nil {
		w.Fatal(err)
	}
	for _, route := range w.routes {
		if route.Access == account.Anyone {
			continue
		}
		a := w.admin.do(route.Method, w.path(route, w.e), nil).want(http.StatusInternalServerError, "internal_error")
		if a.str("error") != "Internal server error" {
			w.Errorf("%s tells %s", a.what, a.body)
		}
	}
}
