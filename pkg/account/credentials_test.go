package account_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/newos4/relay/pkg/account"
)

const newPassword = "battery staple"

func change(current, password string) string {
	return encode(map[string]string{"currentPassword": current, "newPassword": password})
}

// Ensures that a change of credentials ends all other sessions, signs this client
// in again, rotates the token and lifts the duty (section 1.6).
func TestCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	f.add("root", account.RoleAdmin, false)
	user := f.add("due", account.RoleUser, true)
	c, other := f.loggedIn("due"), f.loggedIn("due")
	c.do(http.MethodGet, "/api/app/things", "").want(t, 428, account.CodePasswordDue)
	session, token := c.cookies[account.SessionCookie], c.csrf

	a := c.do(http.MethodPut, "/api/app/account/credentials", change(password, newPassword))
	a.want(t, 200, "")
	got := a.json["user"].(map[string]any)
	if len(a.json) != 3 || a.json["mustChangePassword"] != false || got["mustChangePassword"] != false || got["id"] != user.ID || got["username"] != "due" {
		t.Errorf("the answer is %s", a.Body)
	}
	if c.csrf == token || c.cookies[account.SessionCookie] == session {
		t.Error("token or session stayed the same")
	}
	if other.isSignedIn() {
		t.Error("another session of the user is alive")
	}
	c.do(http.MethodGet, "/api/app/things", "").want(t, 200, "")
	f.client().login("due", password).want(t, 401, account.CodeLoginFailed)
	f.client().login("due", newPassword).want(t, 200, "")
}

// Ensures that the name can be changed with the password, and is unique ignoring
// case (sections 1.3 and 1.6).
func TestCredentials_Name(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	f.add("ann", account.RoleUser, false)
	c := f.loggedIn("ann")
	body := func(name string) string {
		return encode(map[string]string{"currentPassword": password, "newPassword": password, "username": name})
	}
	const path = "/api/app/account/credentials"
	c.do(http.MethodPut, path, body("ROOT")).want(t, 409, account.CodeUsernameExists)
	for _, name := range []string{"", " ", "a b", "a/b", "a@b", `a\b`, "a\u0000b", "a\u0085b", "a\u3000b", strings.Repeat("é", 101)} {
		c.do(http.MethodPut, path, body(name)).want(t, 400, account.CodeInvalidUsername)
	}
	if !c.isSignedIn() {
		t.Fatal("a refused change has ended the session")
	}
	for _, name := range []string{"ANN", " 安 ", strings.Repeat("é", 100), "日本語-_.!"} {
		a := c.do(http.MethodPut, path, body(name))
		a.want(t, 200, "")
		if got := a.json["user"].(map[string]any)["username"]; got != strings.TrimSpace(name) {
			t.Errorf("the name is %q", got)
		}
	}
}

// Ensures that only who knows the present password changes it, within the bounds
// (sections 1.3 and 1.6).
func TestCredentials_Refuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	f.add("due", account.RoleUser, true)
	c := f.loggedIn("due")
	const path = "/api/app/account/credentials"
	for _, test := range []struct {
		body   string
		status int
		code   account.Code
	}{
		{change("wrong password", newPassword), 401, account.CodeWrongPassword},
		{change("", newPassword), 401, account.CodeWrongPassword},
		{change(password, "seven77"), 400, account.CodeInvalidPassword},
		{change(password, strings.Repeat("界", 4097)), 400, account.CodeInvalidPassword},
		{change(password, password), 400, account.CodeInvalidPassword}, // it is due
		{`{"currentPassword":"` + password + `"}`, 400, account.CodeInvalidRequest},
		{`{"newPassword":"x"}`, 400, account.CodeInvalidRequest},
		{`{"currentPassword":"x","newPassword":"y","username":null}`, 400, account.CodeInvalidRequest},
		{`{"currentPassword":"x","newPassword":"y","role":"admin"}`, 400, account.CodeInvalidRequest},
	} {
		c.do(http.MethodPut, path, test.body).want(t, test.status, test.code)
	}
	f.client().do(http.MethodPut, path, "").want(t, 403, account.CodeInvalidCSRF)
	nobody := f.client()
	nobody.bootstrap()
	nobody.do(http.MethodPut, path, change(password, newPassword)).want(t, 401, account.CodeUnauthenticated)
	if !c.isSignedIn() {
		t.Error("a refused change has ended the session")
	}
	c.do(http.MethodPut, path, change(password, strings.Repeat("界", 8))).want(t, 200, "")
}

// Ensures that a session does not help to guess the password.
func TestCredentials_Throttled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	for range account.AttemptsNameAddress {
		c.do(http.MethodPut, "/api/app/account/credentials", change("wrong password", newPassword)).want(t, 401, account.CodeWrongPassword)
	}
	c.do(http.MethodPut, "/api/app/account/credentials", change(password, newPassword)).want(t, 429, account.CodeThrottled)
}

// Ensures that of many changes at once one wins, and the others learn that their
// session has ended.
func TestCredentials_Race(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	var succeeded atomic.Int64
	var changes sync.WaitGroup
	for n := range 8 { // fewer than the limit of attempts
		one := f.client()
		one.csrf = c.csrf
		for name, value := range c.cookies {
			one.cookies[name] = value
		}
		changes.Go(func() {
			a := one.do(http.MethodPut, "/api/app/account/credentials", change(password, numbered(newPassword, n)))
			if a.Code != http.StatusOK {
				a.want(t, 401, account.CodeUnauthenticated)
				return
			}
			succeeded.Add(1)
			if !one.isSignedIn() {
				t.Error("who changed the password is not signed in")
			}
		})
	}
	changes.Wait()
	if succeeded.Load() != 1 {
		t.Errorf("%d changes succeeded", succeeded.Load())
	}
}
