package account_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/account"
)

// Ensures that the operator's first account has to be an administrator, with a
// hint how, and that errors name what is wrong.
func TestService_Add(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	add := func(n account.NewUser) error {
		_, err := f.service.Add(t.Context(), n)
		return err
	}
	for _, test := range []struct {
		user account.NewUser
		code account.Code
		want string
	}{
		{account.NewUser{Username: "ann", Password: password, Role: account.RoleUser}, account.CodeAdminRequired, "hint: add it with --admin"},
		{account.NewUser{Username: "", Password: password, Role: account.RoleAdmin}, account.CodeInvalidUsername, "the user name is empty"},
		{account.NewUser{Username: "a\xff", Password: password, Role: account.RoleAdmin}, account.CodeInvalidUsername, "not valid UTF-8"},
		{account.NewUser{Username: strings.Repeat("a", 101), Password: password, Role: account.RoleAdmin}, account.CodeInvalidUsername, "has 101 characters, more than 100"},
		{account.NewUser{Username: "a@b", Password: password, Role: account.RoleAdmin}, account.CodeInvalidUsername, `one of / @ \`},
		{account.NewUser{Username: "ann", Password: "界界界", Role: account.RoleAdmin}, account.CodeInvalidPassword, "has 3 characters, fewer than 8"},
		{account.NewUser{Username: "ann", Password: strings.Repeat("a", 4097), Role: account.RoleAdmin}, account.CodeInvalidPassword, "more than 4096"},
	} {
		if err := add(test.user); account.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.20q gives %v", test.user.Username, err)
		}
	}
	if err := add(account.NewUser{Username: "ann", Password: password, Role: account.RoleAdmin}); err != nil {
		t.Fatal(err)
	}
	if err := add(account.NewUser{Username: "ANN", Password: password}); account.CodeOf(err) != account.CodeUsernameExists {
		t.Errorf("the same name gives %v", err)
	}
	if needed, err := f.service.NeedsSetup(t.Context()); needed || err != nil {
		t.Errorf("NeedsSetup gives %v, %v", needed, err)
	}
}

// Ensures that the operator can change every account by its name, also an
// administrator's.
func TestService_EditByName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("Root")
	fresh, off, on := newPassword, false, true
	user, err := f.service.EditByName(t.Context(), "root", account.Edit{Password: &fresh})
	if err != nil || user.MustChangePassword || c.isSignedIn() {
		t.Errorf("the user is %+v, %v", user, err)
	}
	f.client().login("root", newPassword).want(t, 200, "")
	if user, err = f.service.EditByName(t.Context(), "ROOT", account.Edit{Enabled: &off}); err != nil || user.Enabled {
		t.Errorf("the user is %+v, %v", user, err)
	}
	f.client().login("root", newPassword).want(t, 401, account.CodeLoginFailed)
	if user, err = f.service.EditByName(t.Context(), "root", account.Edit{Enabled: &on}); err != nil || !user.Enabled {
		t.Errorf("the user is %+v, %v", user, err)
	}
	if _, err = f.service.EditByName(t.Context(), "nobody", account.Edit{Enabled: &on}); account.CodeOf(err) != account.CodeUserNotFound {
		t.Errorf("an unknown name gives %v", err)
	}
}

// Ensures that an edit which others overtake is made again on what they left.
func TestService_EditTriesAgain(t *testing.T) {
	t.Parallel()
	overtaken := 0
	f := newFixture(t, func(s *settings) {
		store := s.service.Store
		s.service.Store = &failingStore{store, func(method string) error {
			if method != "UpdateUser" || overtaken == 3 {
				return nil
			}
			overtaken++
			other, err := store.UserByKey(t.Context(), "root")
			if err != nil {
				return err
			}
			version := other.AuthVersion
			other.AuthVersion++
			other.MustChangePassword = true
			return store.UpdateUser(t.Context(), other, version)
		}}
	})
	f.add("root", account.RoleAdmin, false)
	off := false
	user, err := f.service.EditByName(t.Context(), "root", account.Edit{Enabled: &off})
	if err != nil || user.Enabled || !user.MustChangePassword || overtaken != 3 {
		t.Errorf("the user is %+v, %v, overtaken %d times", user, err, overtaken)
	}
}

// Ensures that an edit which others always overtake ends with an error that says
// so.
func TestService_EditGivesUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) {
		s.service.Store = &failingStore{s.service.Store, func(method string) error {
			if method == "UpdateUser" {
				return account.ErrStale
			}
			return nil
		}}
	})
	f.add("root", account.RoleAdmin, false)
	off := false
	if _, err := f.service.EditByName(t.Context(), "root", account.Edit{Enabled: &off}); !errors.Is(err, account.ErrStale) {
		t.Errorf("the error is %v", err)
	}
}

// Ensures that a digest of another cost is renewed at the next login and ends no
// session.
func TestService_RenewsDigests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	before, err := f.store.UserByKey(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	f.settings.service.Cost = account.Cost{Memory: 16, Passes: 2}
	f.start()
	f.client().login("root", password).want(t, 200, "")
	after, err := f.store.UserByKey(t.Context(), "root")
	if err != nil || after.Digest == before.Digest || !strings.HasPrefix(after.Digest, "$argon2id$v=19$m=16,t=2,p=1$") {
		t.Errorf("the digest is %s, %v", after.Digest, err)
	}
	if !c.isSignedIn() {
		t.Error("a session has ended")
	}
	f.client().login("root", password).want(t, 200, "")
	same, err := f.store.UserByKey(t.Context(), "root")
	if err != nil || same != after {
		t.Errorf("another login changed the user to %+v, %v", same, err)
	}
}

// Ensures that a digest which cannot be renewed still serves.
func TestService_RenewFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) {
		s.service.Store = &failingStore{s.service.Store, func(method string) error {
			if method == "UpdateUser" {
				return errStore
			}
			return nil
		}}
	})
	f.add("root", account.RoleAdmin, false)
	f.settings.service.Cost = account.Cost{Memory: 16, Passes: 2}
	f.start()
	f.client().login("root", password).want(t, 200, "")
	if !strings.Contains(f.log.String(), errStore.Error()) {
		t.Errorf("the log is %s", f.log)
	}
}

// Ensures that a damaged digest lets nobody in and is told to the operator.
func TestService_DamagedDigest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	record, err := f.store.UserByKey(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	record.Digest = ""
	if err := f.store.UpdateUser(t.Context(), record, record.AuthVersion); err != nil {
		t.Fatal(err)
	}
	f.client().login("root", "").want(t, 400, account.CodeInvalidCredentials)
	f.client().login("root", password).want(t, 500, account.CodeInternal)
	if !strings.Contains(f.log.String(), "the stored password digest is of no known kind") {
		t.Errorf("the log is %s", f.log)
	}
}

// Ensures that a caller who has gone is told as such, and not as a wrong password.
func TestService_Cancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.service.Login(ctx, account.Credentials{Username: "root", Password: password}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if _, err := f.service.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
