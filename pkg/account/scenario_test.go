package account_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
)

// Ensures scenario 2: with a session but no token, or with a foreign origin, every
// write is refused and changes nothing; with token and origin it succeeds.
func TestScenario2(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	user := f.add("ann", account.RoleUser, false)
	writes := []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, usersPath, credentials("bob", password), 201},
		{http.MethodPatch, usersPath + "/" + user.ID, `{"enabled":false}`, 200},
		{http.MethodDelete, usersPath + "/" + user.ID, "", 200},
		{http.MethodPut, "/api/app/account/credentials", change(password, newPassword), 200},
		{http.MethodPost, "/api/app/login", credentials("root", newPassword), 200},
		{http.MethodPost, "/api/app/logout", "", 200},
	}
	before, err := f.service.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range writes {
		noToken := c.request(write.method, write.path, write.body)
		noToken.Header.Del(account.CSRFHeader)
		c.send(noToken).want(t, 403, account.CodeInvalidCSRF)
		foreign := c.request(write.method, write.path, write.body)
		foreign.Header.Set("Origin", "https://evil.example")
		c.send(foreign).want(t, 403, account.CodeInvalidOrigin)
	}
	after, err := f.service.List(t.Context())
	if err != nil || len(after) != len(before) || after[0] != before[0] || after[1] != before[1] || !c.isSignedIn() {
		t.Errorf("refused writes changed %v to %v, %v", before, after, err)
	}
	for _, write := range writes {
		t.Log(write.method, write.path)
		c.do(write.method, write.path, write.body).want(t, write.status, "")
	}
}

// Ensures that every route asks for what the contract's table says (section 1.5).
func TestRoutes_Access(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := map[string]account.Access{
		"GET /api/app/bootstrap":           account.Anyone,
		"POST /api/app/login":              account.Anyone,
		"POST /api/app/setup":              account.Anyone,
		"POST /api/app/logout":             account.SignedInOrDue,
		"PUT /api/app/account/credentials": account.SignedInOrDue,
		"GET /api/app/admin/users":         account.AdminOnly,
		"POST /api/app/admin/users":        account.AdminOnly,
		"PATCH /api/app/admin/users/{id}":  account.AdminOnly,
		"DELETE /api/app/admin/users/{id}": account.AdminOnly,
		"GET /api/status":                  account.Anyone,
		"GET /api/auth/providers":          account.Anyone,
		"POST /auth/password-login":        account.Anyone,
		"GET /api/auth/me":                 account.SignedInOrDue,
		"POST /auth/logout":                account.Anyone,
	}
	routes := f.endpoints.Routes()
	for _, route := range routes {
		name := route.Method + " " + route.Path
		if access, ok := want[name]; !ok || access != route.Access {
			t.Errorf("%s has access %d", name, route.Access)
		}
	}
	if len(routes) != len(want) {
		t.Errorf("there are %d routes, not %d", len(routes), len(want))
	}
}

// Ensures that the newOS4 routes keep their own rules where both are served: any
// host, any origin, no cookie and no token of the workspace.
func TestGuard_LeavesTheChatAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	store := storage.Open(storage.Options{
		Root: t.TempDir(), Space: "newos4", Now: f.clock.now,
		Bounds: storage.Bounds{Threads: 10, Page: 50, Retention: chat.Retention{Messages: 200, MaxAge: time.Hour}},
	})
	t.Cleanup(func() { _ = store.Close() })
	window := func(name string) ratelimit.Window {
		return ratelimit.Window{Name: name, Limit: 10, Span: time.Minute}
	}
	api := chatapi.New(chatapi.Options{
		Space: "newos4", Limits: chatapi.Limits{Text: 4000, Body: 32768, Threads: 10}, Now: f.clock.now, Logger: slog.New(slog.DiscardHandler),
	}, store, ratelimit.New(f.clock.now, 10, window(chatapi.WindowThread), window(chatapi.WindowIP), window(chatapi.WindowIPThreads)))
	mux := http.NewServeMux()
	mux.Handle("/", f.handler)
	mux.Handle("/spaces/", api)
	mux.Handle(chatapi.RetiredPath, api)

	send := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Host = "anything.example"
		r.Header.Set("Origin", "https://elsewhere.example")
		r.Header.Set("Cookie", account.SessionCookie+"=x; "+account.CSRFCookie+"=y")
		r.Header.Set("X-Chat-Token", strings.Repeat("ab", 32))
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, r)
		return rec
	}
	const chatPath = "/spaces/newos4/api/chat/"
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, chatPath + "post.php", `{"text":"hello"}`, 201},
		{http.MethodGet, chatPath + "poll.php", "", 200},
		{http.MethodPost, chatPath + "post.php", `{`, 400},
		{http.MethodGet, chatapi.RetiredPath, "", 410},
	} {
		rec := send(test.method, test.path, test.body)
		if rec.Code != test.status || rec.Header().Get("Set-Cookie") != "" || rec.Header().Get("X-Frame-Options") != "" {
			t.Errorf("%s %s gives %d with %v: %s", test.method, test.path, rec.Code, rec.Header(), rec.Body)
		}
	}
	if rec := send(http.MethodGet, "/api/app/bootstrap", ""); rec.Code != http.StatusMisdirectedRequest {
		t.Errorf("the workspace answers %d", rec.Code)
	}
}
