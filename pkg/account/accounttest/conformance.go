package accounttest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/account"
)

// racers is how many goroutines a race has.
const racers = 50

// TestStore holds a store to what [account.Store] promises. open returns an empty
// one.
func TestStore(t *testing.T, open func(t *testing.T) account.Store) {
	t.Helper()
	for name, test := range map[string]func(*storeTest){
		"an empty store has nothing":               (*storeTest).empty,
		"users are kept as they were given":        (*storeTest).keeps,
		"users are listed by time, then id":        (*storeTest).lists,
		"no two users have one key":                (*storeTest).uniqueKeys,
		"of many firsts one succeeds":              (*storeTest).oneFirst,
		"of many of one name one succeeds":         (*storeTest).oneOfAName,
		"of many updates of one version one does":  (*storeTest).oneUpdate,
		"an update of a version ends the sessions": (*storeTest).updateEndsSessions,
		"an update of no version keeps them":       (*storeTest).updateKeepsSessions,
		"an update may not take a name":            (*storeTest).updateTaken,
		"sessions are kept as they were given":     (*storeTest).keepsSessions,
		"a session needs its user as it was":       (*storeTest).sessionStale,
		"sessions that have ended are removed":     (*storeTest).sessionExpiry,
		"the oldest sessions give way":             (*storeTest).sessionBound,
		"a deleted user leaves no session":         (*storeTest).deletes,
		"a login and a disabling leave no session": (*storeTest).sessionRace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&storeTest{t, open(t)})
		})
	}
}

type storeTest struct {
	*testing.T

	store account.Store
}

// user returns a user that is like no other.
func user(n int) account.Record {
	name := fmt.Sprintf("Müller%d", n)
	return account.Record{
		User: account.User{
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Username: name, Role: account.RoleUser,
			Enabled: true, MustChangePassword: n%2 == 0, CreatedAt: int64(1000 + n), UpdatedAt: int64(2000 + n),
		},
		Key: account.UsernameKey(name), Digest: fmt.Sprintf("$digest$%d", n), AuthVersion: 1,
	}
}

// session returns a session of the user; n tells it from others and is the time
// of its making.
func session(of account.Record, n int) account.Session {
	return account.Session{
		Hash: sha256.Sum256([]byte(fmt.Sprintf("%s/%d", of.ID, n))), UserID: of.ID, AuthVersion: of.AuthVersion,
		CreatedAt: int64(n), ExpiresAt: int64(n) + 1_000_000,
	}
}

func (t *storeTest) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t *storeTest) want(err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("the error is %v, want %v", err, target)
	}
}

// add adds users, each with a session that is made at time 1.
func (t *storeTest) add(users ...account.Record) {
	t.Helper()
	for _, u := range users {
		t.must(t.store.AddUser(t.Context(), u))
		t.must(t.store.AddSession(t.Context(), session(u, 1), 10))
	}
}

func (t *storeTest) hasSession(s account.Session) bool {
	t.Helper()
	_, _, err := t.store.Session(t.Context(), s.Hash)
	if err != nil {
		t.want(err, account.ErrNoRow)
	}
	return err == nil
}

func (t *storeTest) stored(id string) account.Record {
	t.Helper()
	record, err := t.store.User(t.Context(), id)
	t.must(err)
	return record
}

func (t *storeTest) same(got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// race runs attempt from many goroutines at once and returns how many succeeded.
// The others have to fail with other.
func (t *storeTest) race(other error, attempt func(n int) error) int {
	t.Helper()
	errs := make([]error, racers)
	gate := make(chan struct{})
	var running sync.WaitGroup
	for n := range racers {
		running.Go(func() {
			<-gate
			errs[n] = attempt(n)
		})
	}
	close(gate)
	running.Wait()
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
			continue
		}
		t.want(err, other)
	}
	return succeeded
}

func (t *storeTest) empty() {
	has, err := t.store.HasUsers(t.Context())
	t.must(err)
	users, err := t.store.Users(t.Context())
	t.must(err)
	if has || len(users) != 0 {
		t.Errorf("the store has %v", users)
	}
	_, err = t.store.User(t.Context(), user(1).ID)
	t.want(err, account.ErrNoRow)
	_, err = t.store.UserByKey(t.Context(), user(1).Key)
	t.want(err, account.ErrNoRow)
	t.want(t.store.UpdateUser(t.Context(), user(1), 1), account.ErrStale)
	t.want(t.store.DeleteUser(t.Context(), user(1).ID), account.ErrNoRow)
	t.want(t.store.AddSession(t.Context(), session(user(1), 1), 10), account.ErrStale)
	_, _, err = t.store.Session(t.Context(), session(user(1), 1).Hash)
	t.want(err, account.ErrNoRow)
	t.must(t.store.DeleteSession(t.Context(), session(user(1), 1).Hash))
}

func (t *storeTest) keeps() {
	admin := user(1)
	admin.Role = account.RoleAdmin
	t.must(t.store.AddFirstUser(t.Context(), admin))
	disabled := user(2)
	disabled.Enabled, disabled.AuthVersion = false, 7
	t.must(t.store.AddUser(t.Context(), disabled))
	for _, want := range []account.Record{admin, disabled} {
		t.same(t.stored(want.ID), want)
		byKey, err := t.store.UserByKey(t.Context(), want.Key)
		t.must(err)
		t.same(byKey, want)
	}
	has, err := t.store.HasUsers(t.Context())
	if !has || err != nil {
		t.Errorf("HasUsers gives %v, %v", has, err)
	}
}

func (t *storeTest) lists() {
	first, second, third := user(3), user(1), user(2)
	first.CreatedAt, second.CreatedAt, third.CreatedAt = 5, 6, 6
	t.add(third, first, second)
	users, err := t.store.Users(t.Context())
	t.must(err)
	t.same(users, []account.Record{first, second, third})
}

func (t *storeTest) uniqueKeys() {
	t.add(user(1))
	other := user(2)
	other.Key = user(1).Key
	t.want(t.store.AddUser(t.Context(), other), account.ErrTaken)
	t.want(t.store.AddFirstUser(t.Context(), user(3)), account.ErrNotFirst)
	users, err := t.store.Users(t.Context())
	t.must(err)
	t.same(users, []account.Record{user(1)})
}

func (t *storeTest) oneFirst() {
	succeeded := t.race(account.ErrNotFirst, func(n int) error { return t.store.AddFirstUser(t.Context(), user(n)) })
	users, err := t.store.Users(t.Context())
	t.must(err)
	if succeeded != 1 || len(users) != 1 {
		t.Errorf("%d were the first, %d users exist", succeeded, len(users))
	}
}

func (t *storeTest) oneOfAName() {
	succeeded := t.race(account.ErrTaken, func(n int) error {
		u := user(n)
		u.Key = "same"
		return t.store.AddUser(t.Context(), u)
	})
	users, err := t.store.Users(t.Context())
	t.must(err)
	if succeeded != 1 || len(users) != 1 {
		t.Errorf("%d took the name, %d users exist", succeeded, len(users))
	}
}

func (t *storeTest) oneUpdate() {
	t.add(user(1))
	succeeded := t.race(account.ErrStale, func(n int) error {
		u := user(1)
		u.AuthVersion, u.UpdatedAt = 2, int64(n)
		return t.store.UpdateUser(t.Context(), u, 1)
	})
	if got := t.stored(user(1).ID).AuthVersion; succeeded != 1 || got != 2 {
		t.Errorf("%d updates succeeded, the version is %d", succeeded, got)
	}
}

func (t *storeTest) updateEndsSessions() {
	t.add(user(1), user(2))
	changed := user(1)
	changed.Username, changed.Key, changed.Digest = "Neu", "neu", "$other$"
	changed.Enabled, changed.MustChangePassword, changed.UpdatedAt, changed.AuthVersion = false, true, 9999, 2
	t.must(t.store.UpdateUser(t.Context(), changed, 1))
	t.same(t.stored(changed.ID), changed)
	if t.hasSession(session(user(1), 1)) || !t.hasSession(session(user(2), 1)) {
		t.Error("the sessions of the user, and only those, should have ended")
	}
	_, err := t.store.UserByKey(t.Context(), user(1).Key)
	t.want(err, account.ErrNoRow)
	t.want(t.store.UpdateUser(t.Context(), user(1), 1), account.ErrStale)
}

func (t *storeTest) updateKeepsSessions() {
	t.add(user(1))
	changed := user(1)
	changed.Digest = "$renewed$"
	t.must(t.store.UpdateUser(t.Context(), changed, 1))
	t.same(t.stored(changed.ID), changed)
	if !t.hasSession(session(user(1), 1)) {
		t.Error("the session has ended")
	}
}

func (t *storeTest) updateTaken() {
	t.add(user(1), user(2))
	changed := user(1)
	changed.Key, changed.AuthVersion = user(2).Key, 2
	t.want(t.store.UpdateUser(t.Context(), changed, 1), account.ErrTaken)
	t.same(t.stored(user(1).ID), user(1))
	if !t.hasSession(session(user(1), 1)) {
		t.Error("an update that failed has ended a session")
	}
}

func (t *storeTest) keepsSessions() {
	t.add(user(1))
	want := session(user(1), 5)
	t.must(t.store.AddSession(t.Context(), want, 10))
	got, owner, err := t.store.Session(t.Context(), want.Hash)
	t.must(err)
	t.same(got, want)
	t.same(owner, user(1))
	t.must(t.store.DeleteSession(t.Context(), want.Hash))
	if t.hasSession(want) || !t.hasSession(session(user(1), 1)) {
		t.Error("that session, and only that, should be gone")
	}
}

func (t *storeTest) sessionStale() {
	disabled := user(2)
	disabled.Enabled = false
	t.must(t.store.AddUser(t.Context(), user(1)))
	t.must(t.store.AddUser(t.Context(), disabled))
	old := session(user(1), 1)
	old.AuthVersion = 0
	t.want(t.store.AddSession(t.Context(), old, 10), account.ErrStale)
	t.want(t.store.AddSession(t.Context(), session(disabled, 1), 10), account.ErrStale)
	if t.hasSession(old) || t.hasSession(session(disabled, 1)) {
		t.Error("a session that was refused exists")
	}
}

func (t *storeTest) sessionExpiry() {
	t.add(user(1), user(2)) // their sessions end at 1,000,001
	t.must(t.store.AddSession(t.Context(), session(user(1), 1_000_000), 10))
	if !t.hasSession(session(user(2), 1)) {
		t.Error("a session was removed before its end")
	}
	t.must(t.store.AddSession(t.Context(), session(user(1), 1_000_001), 10))
	if t.hasSession(session(user(1), 1)) || t.hasSession(session(user(2), 1)) {
		t.Error("sessions that have ended still exist")
	}
}

func (t *storeTest) sessionBound() {
	t.add(user(1), user(2))
	for n := 2; n <= 6; n++ {
		t.must(t.store.AddSession(t.Context(), session(user(1), n), 3))
	}
	for n := 1; n <= 6; n++ {
		if got := t.hasSession(session(user(1), n)); got != (n >= 4) {
			t.Errorf("session %d exists: %v", n, got)
		}
	}
	if !t.hasSession(session(user(2), 1)) {
		t.Error("another user's session gave way")
	}
}

func (t *storeTest) deletes() {
	t.add(user(1), user(2))
	t.must(t.store.DeleteUser(t.Context(), user(1).ID))
	_, err := t.store.User(t.Context(), user(1).ID)
	t.want(err, account.ErrNoRow)
	if t.hasSession(session(user(1), 1)) || !t.hasSession(session(user(2), 1)) {
		t.Error("the sessions of the user, and only those, should be gone")
	}
	again := user(3) // another one, with the same name
	again.Username, again.Key = user(1).Username, user(1).Key
	t.must(t.store.AddUser(t.Context(), again))
}

func (t *storeTest) sessionRace() {
	t.must(t.store.AddUser(t.Context(), user(1)))
	t.race(account.ErrStale, func(n int) error {
		if n != racers/2 {
			return t.store.AddSession(t.Context(), session(user(1), n), racers)
		}
		disabled := user(1)
		disabled.Enabled, disabled.AuthVersion = false, 2
		return t.store.UpdateUser(t.Context(), disabled, 1)
	})
	for n := range racers {
		if t.hasSession(session(user(1), n)) {
			t.Errorf("session %d outlived the disabling", n)
		}
	}
}
