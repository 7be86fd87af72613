package account_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/account"
)

const usersPath = "/api/app/admin/users"

// Ensures that only administrators administer, and that an administrator whose
// password is due does not yet (section 1.5).
func TestAdmin_Access(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	root := f.add("root", account.RoleAdmin, false)
	f.add("due", account.RoleAdmin, true)
	f.add("ann", account.RoleUser, false)
	nobody := f.client()
	nobody.bootstrap()
	for _, test := range []struct {
		by     *client
		status int
		code   account.Code
	}{
		{nobody, 401, account.CodeUnauthenticated},
		{f.loggedIn("due"), 428, account.CodePasswordDue},
		{f.loggedIn("ann"), 403, account.CodeAdminRequired},
	} {
		test.by.do(http.MethodGet, usersPath, "").want(t, test.status, test.code)
		test.by.do(http.MethodPost, usersPath, credentials("eve", password)).want(t, test.status, test.code)
		test.by.do(http.MethodPatch, usersPath+"/"+root.ID, `{"enabled":false}`).want(t, test.status, test.code)
		test.by.do(http.MethodDelete, usersPath+"/"+root.ID, "").want(t, test.status, test.code)
	}
	if users, err := f.service.List(t.Context()); err != nil || len(users) != 3 {
		t.Errorf("the users are %v, %v", users, err)
	}
}

// Ensures that an administrator adds usual users, who have to change their first
// password, and lists all by creation time without their digests (section 1.6).
func TestAdmin_AddAndList(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	admin := f.signedIn("root")
	var want []any
	root, err := f.service.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, root[0].ID)
	for _, name := range []string{"Zoe", "ann", "Bob"} {
		f.clock.advance(time.Millisecond)
		a := admin.do(http.MethodPost, usersPath, credentials(name, password))
		a.want(t, 201, "")
		if a.json["role"] != "user" || a.json["mustChangePassword"] != true || a.json["enabled"] != true || a.json["username"] != name || len(a.json) != 7 {
			t.Errorf("the user is %s", a.Body)
		}
		want = append(want, a.json["id"])
		f.loggedIn(name).do(http.MethodGet, "/api/app/things", "").want(t, 428, account.CodePasswordDue)
	}
	a := admin.do(http.MethodGet, usersPath, "")
	a.want(t, 200, "")
	var got []any
	for _, item := range a.json["items"].([]any) {
		got = append(got, item.(map[string]any)["id"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(a.Body.String(), "argon2id") {
		t.Errorf("the list has a digest: %s", a.Body)
	}
	for body, want := range map[string]struct {
		status int
		code   account.Code
	}{
		credentials("ZOE", password):                                 {409, account.CodeUsernameExists},
		credentials("x y", password):                                 {400, account.CodeInvalidUsername},
		credentials("new", "short"):                                  {400, account.CodeInvalidPassword},
		`{"username":"new"}`:                                         {400, account.CodeInvalidRequest},
		`{"username":"new","password":"long enough","role":"admin"}`: {400, account.CodeInvalidRequest},
	} {
		admin.do(http.MethodPost, usersPath, body).want(t, want.status, want.code)
	}
}

// Ensures that a disabled user's sessions die at once and stay dead when the user
// is enabled again, and that both are told to who holds the user's work (section
// 1.3).
func TestAdmin_Disable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := f.signedIn("root")
	user := f.add("ann", account.RoleUser, false)
	c := f.loggedIn("ann")
	f.clock.advance(time.Second)
	a := admin.do(http.MethodPatch, usersPath+"/"+user.ID, `{"enabled":false}`)
	a.want(t, 200, "")
	if a.json["enabled"] != false || a.json["updatedAt"] != float64(f.clock.now().UnixMilli()) || a.json["mustChangePassword"] != false {
		t.Errorf("the user is %s", a.Body)
	}
	if c.isSignedIn() {
		t.Error("a session of a disabled user is alive")
	}
	f.client().login("ann", password).want(t, 401, account.CodeLoginFailed)
	admin.do(http.MethodPatch, usersPath+"/"+user.ID, `{"enabled":true}`).want(t, 200, "")
	if c.isSignedIn() {
		t.Error("a session came back to life")
	}
	f.client().login("ann", password).want(t, 200, "")
	admin.do(http.MethodPatch, usersPath+"/"+user.ID, `{"enabled":true}`).want(t, 200, "") // no change of that
	f.wantChanges(account.Change{UserID: user.ID}, account.Change{UserID: user.ID, Enabled: true})
}

func (f *fixture) wantChanges(want ...account.Change) {
	f.Helper()
	close(f.changes)
	var got []account.Change
	for change := range f.changes {
		got = append(got, change)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Error(diff)
	}
}

// Ensures that a password which an administrator sets ends the user's sessions and
// has to be changed (section 1.6).
func TestAdmin_ResetPassword(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := f.signedIn("root")
	user := f.add("ann", account.RoleUser, false)
	c := f.loggedIn("ann")
	a := admin.do(http.MethodPatch, usersPath+"/"+user.ID, encode(map[string]any{"password": newPassword}))
	a.want(t, 200, "")
	if a.json["mustChangePassword"] != true || c.isSignedIn() {
		t.Errorf("the user is %s", a.Body)
	}
	f.client().login("ann", password).want(t, 401, account.CodeLoginFailed)
	f.client().login("ann", newPassword).want(t, 200, "")
	f.wantChanges()
}

// Ensures that an edit of nothing changes nothing (section 11, item 32), and that
// a malformed one is refused.
func TestAdmin_EmptyAndMalformedEdit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := f.signedIn("root")
	user := f.add("ann", account.RoleUser, false)
	c := f.loggedIn("ann")
	f.clock.advance(time.Second)
	for _, body := range []string{"", "{}"} {
		a := admin.do(http.MethodPatch, usersPath+"/"+user.ID, body)
		a.want(t, 200, "")
		if a.json["updatedAt"] != float64(user.UpdatedAt) {
			t.Errorf("the user is %s", a.Body)
		}
	}
	for body, code := range map[string]account.Code{
		`{"enabled":null}`: account.CodeInvalidRequest, `{"enabled":"no"}`: account.CodeInvalidRequest, `{"role":"admin"}`: account.CodeInvalidRequest,
		`{"password":null}`: account.CodeInvalidRequest, `{"password":""}`: account.CodeInvalidPassword, `{"enabled":false,"password":"x"}`: account.CodeInvalidPassword,
	} {
		admin.do(http.MethodPatch, usersPath+"/"+user.ID, body).want(t, 400, code)
	}
	if !c.isSignedIn() {
		t.Error("an edit that changed nothing has ended a session")
	}
}

// Ensures that administrators are protected and that unknown users are told
// (section 1.6).
func TestAdmin_Protected(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	root := f.add("root", account.RoleAdmin, false)
	second := f.add("second", account.RoleAdmin, false)
	admin := f.loggedIn("root")
	for _, id := range []string{root.ID, second.ID} {
		admin.do(http.MethodPatch, usersPath+"/"+id, `{"enabled":false}`).want(t, 409, account.CodeAdminProtected)
		admin.do(http.MethodPatch, usersPath+"/"+id, `{}`).want(t, 409, account.CodeAdminProtected)
		admin.do(http.MethodDelete, usersPath+"/"+id, "").want(t, 409, account.CodeAdminProtected)
	}
	for _, id := range []string{"00000000-0000-4000-8000-000000000000", "x", "%2e", strings.ToUpper(root.ID), "a%2Fb"} {
		admin.do(http.MethodPatch, usersPath+"/"+id, `{"enabled":false}`).want(t, 404, "")
		admin.do(http.MethodDelete, usersPath+"/"+id, "").want(t, 404, "")
	}
	f.wantChanges()
}

// Ensures that a deleted user is gone with all sessions, that this is told, and
// that another user of that name is another user (section 1.6).
func TestAdmin_Delete(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := f.signedIn("root")
	user := f.add("ann", account.RoleUser, false)
	c := f.loggedIn("ann")
	admin.do(http.MethodDelete, usersPath+"/"+user.ID, `{"force":true}`).want(t, 400, account.CodeInvalidRequest)
	a := admin.do(http.MethodDelete, usersPath+"/"+user.ID, "")
	a.want(t, 200, "")
	if diff := cmp.Diff(map[string]any{"ok": true}, a.json); diff != "" {
		t.Error(diff)
	}
	admin.do(http.MethodDelete, usersPath+"/"+user.ID, "").want(t, 404, account.CodeUserNotFound)
	if c.isSignedIn() {
		t.Error("a session of a deleted user is alive")
	}
	f.client().login("ann", password).want(t, 401, account.CodeLoginFailed)
	if again := f.add("ann", account.RoleUser, false); again.ID == user.ID {
		t.Error("the id came back")
	}
	f.wantChanges(account.Change{UserID: user.ID, Deleted: true})
}

// Ensures that edits at the same time both take effect.
func TestAdmin_EditRace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	user := f.add("ann", account.RoleUser, false)
	fresh, off := newPassword, false
	var edits sync.WaitGroup
	for _, edit := range []account.Edit{{Password: &fresh}, {Enabled: &off}, {Password: &fresh}, {Enabled: &off}} {
		edits.Go(func() {
			if _, err := f.service.EditUser(t.Context(), user.ID, edit); err != nil {
				t.Error(err)
			}
		})
	}
	edits.Wait()
	record, err := f.store.User(t.Context(), user.ID)
	if err != nil || record.Enabled || record.AuthVersion != 5 {
		t.Errorf("the user is %+v, %v", record, err)
	}
	on := true
	if _, err := f.service.EditUser(t.Context(), user.ID, account.Edit{Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	f.client().login("ann", newPassword).want(t, 200, "")
}
