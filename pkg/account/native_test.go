package account_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/account"
)

// native returns a request as a native client sends it: no token and, unless one
// is given, no origin.
func (c *client) native(method, path, body, origin string) answer {
	r := c.request(method, path, body)
	r.Header.Del(account.CSRFHeader)
	r.Header.Del("Origin")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	return c.send(r)
}

// Ensures the sign-in of native clients (section 1.6, last paragraph).
func TestNative(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	f.add("root", account.RoleAdmin, false)
	user := f.add("ann", account.RoleUser, true)
	c := f.client()
	same := func(a answer, want map[string]any) {
		t.Helper()
		a.want(t, 200, "")
		if diff := cmp.Diff(want, a.json); diff != "" {
			t.Error(diff)
		}
	}
	same(c.native(http.MethodGet, "/api/status", "", ""), map[string]any{
		"overall": "ready", "auth_required": true, "gateway_running": true, "server_kind": kind,
	})
	providers := c.native(http.MethodGet, "/api/auth/providers", "", "").json["providers"].([]any)
	if len(providers) != 1 || providers[0].(map[string]any)["name"] != "basic" {
		t.Errorf("the providers are %v", providers)
	}
	c.native(http.MethodGet, "/api/auth/me", "", "").want(t, 401, account.CodeUnauthenticated)

	c.bootstrap()
	token, cookie := c.csrf, c.cookies[account.CSRFCookie]
	same(c.native(http.MethodPost, "/auth/password-login", `{"provider":"basic","username":"ann","password":"`+password+`","next":"/"}`, ""), map[string]any{
		"ok": true, "must_change_password": true, "server_kind": kind,
	})
	if c.cookies[account.CSRFCookie] != cookie {
		t.Error("the token changed, and nobody told the client")
	}
	same(c.native(http.MethodGet, "/api/auth/me", "", ""), map[string]any{
		"user_id": user.ID, "username": "ann", "display_name": "ann", "provider": "basic", "role": "user",
		"must_change_password": true, "server_kind": kind,
	})
	if c.csrf = token; !c.isSignedIn() {
		t.Error("the session is none for the application")
	}
	c.do(http.MethodPost, "/api/app/things", "{}").want(t, 428, account.CodePasswordDue)
	session := c.cookies[account.SessionCookie]
	same(c.native(http.MethodPost, "/auth/logout", "", ""), map[string]any{"ok": true})
	c.cookies[account.SessionCookie] = session
	c.native(http.MethodGet, "/api/auth/me", "", "").want(t, 401, account.CodeUnauthenticated)
	same(c.native(http.MethodPost, "/auth/logout", "", ""), map[string]any{"ok": true})
}

// Ensures that an origin, when one is sent, has to be this server's, and that the
// throttle is the same (section 1.6).
func TestNative_Refuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	login := credentials("root", password)
	for _, foreign := range []string{"http://evil.example", "null"} {
		c.native(http.MethodPost, "/auth/password-login", login, foreign).want(t, 403, account.CodeInvalidOrigin)
		c.native(http.MethodPost, "/auth/logout", "", foreign).want(t, 403, account.CodeInvalidOrigin)
	}
	c.native(http.MethodPost, "/auth/password-login", login, origin).want(t, 200, "")
	if !c.isSignedIn() {
		t.Error("the session is gone")
	}
	c.native(http.MethodPost, "/auth/password-login", `{"provider":"oauth","username":"root","password":"x"}`, "").want(t, 400, account.CodeInvalidRequest)
	c.native(http.MethodPost, "/auth/password-login", `{"user":"root"}`, "").want(t, 400, account.CodeInvalidRequest)
	c.native(http.MethodPost, "/auth/password-login", `{`, "").want(t, 400, account.CodeInvalidJSON)
	c.native(http.MethodPost, "/auth/password-login", `{}`, "").want(t, 400, account.CodeInvalidCredentials)
	for range account.AttemptsNameAddress {
		c.native(http.MethodPost, "/auth/password-login", credentials("root", "wrong password"), "").want(t, 401, account.CodeLoginFailed)
	}
	c.native(http.MethodPost, "/auth/password-login", login, "").want(t, 429, account.CodeThrottled)
	c.login("root", password).want(t, 429, account.CodeThrottled)
}
