package store

import (
	"testing"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/account/accounttest"
)

// Ensures that the database keeps accounts and sessions as every store of them
// has to (sections 1.3 and 1.6).
func TestAccounts(t *testing.T) {
	t.Parallel()
	accounttest.TestStore(t, func(t *testing.T) account.Store { return mustOpen(t).Accounts() })
}

// Ensures that a session survives a restart, and that a deleted user's rows stay
// without anybody who reaches them.
func TestAccounts_SurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/workspace"
	s := mustOpen(t, inDir(dir))
	user := account.Record{User: account.User{ID: string(ann), Username: "Ann", Role: account.RoleAdmin, Enabled: true}, Key: "ann"}
	if err := s.Accounts().AddFirstUser(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	session := account.Session{Hash: account.SessionHash{1}, UserID: user.ID, CreatedAt: 1, ExpiresAt: 2}
	if err := s.Accounts().AddSession(t.Context(), session, 9); err != nil {
		t.Fatal(err)
	}
	mustAgent(t, s, ann, "A")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, inDir(dir))
	if got, of, err := s.Accounts().Session(t.Context(), session.Hash); err != nil || got != session || of != user {
		t.Errorf("the session is %+v of %+v, %v", got, of, err)
	}
	if err := s.Accounts().DeleteUser(t.Context(), user.ID); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, `SELECT (SELECT count(*) FROM session) * 10 + (SELECT count(*) FROM agent)`); n != 1 {
		t.Errorf("left are %d sessions and agents", n)
	}
}
