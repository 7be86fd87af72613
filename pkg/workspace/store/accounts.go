package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/newos4/relay/pkg/account"
)

// Accounts keeps the local accounts and their sessions in the same database. It
// is an [account.Store].
type Accounts struct{ store *Store }

var _ account.Store = Accounts{}

// Accounts returns the accounts of the database. They are usable as long as the
// store is open.
func (s *Store) Accounts() Accounts { return Accounts{s} }

const userColumns = `account.id, account.username, account.role, account.enabled, account.must_change_password, account.created_at,
	account.updated_at, account.username_key, account.digest, account.auth_version`

func intoUser(u *account.Record) []any {
	return []any{&u.ID, &u.Username, (*string)(&u.Role), &u.Enabled, &u.MustChangePassword, &u.CreatedAt, &u.UpdatedAt,
		&u.Key, &u.Digest, &u.AuthVersion}
}

func scanUser(r row) (account.Record, error) {
	var u account.Record
	err := r.Scan(intoUser(&u)...)
	return u, err
}

// rowless turns a row that is not there into [account.ErrNoRow].
func rowless[T any](value T, err error) (T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return value, account.ErrNoRow
	}
	return value, err
}

// HasUsers reports whether any user exists.
func (a Accounts) HasUsers(ctx context.Context) (has bool, err error) {
	err = a.store.peek(ctx, "looking for users", func(v view) error {
		has, err = hasUsers(v)
		return err
	})
	return has, err
}

func hasUsers(v view) (bool, error) {
	return one(v, scalar[bool], `SELECT EXISTS (SELECT 1 FROM account)`)
}

// Users returns all users by creation time, then by id.
func (a Accounts) Users(ctx context.Context) (users []account.Record, err error) {
	err = a.store.peek(ctx, "reading users", func(v view) error {
		users, err = all(v, scanUser, `SELECT `+userColumns+` FROM account ORDER BY created_at, id`)
		return err
	})
	return users, err
}

// User returns the user with the id, or [account.ErrNoRow].
func (a Accounts) User(ctx context.Context, id string) (account.Record, error) {
	return a.user(ctx, `SELECT `+userColumns+` FROM account WHERE id = ?`, id)
}

// UserByKey returns the user whose name has the key, or [account.ErrNoRow].
func (a Accounts) UserByKey(ctx context.Context, key string) (account.Record, error) {
	return a.user(ctx, `SELECT `+userColumns+` FROM account WHERE username_key = ?`, key)
}

func (a Accounts) user(ctx context.Context, query, arg string) (u account.Record, err error) {
	err = a.store.peek(ctx, "reading a user", func(v view) error {
		u, err = rowless(one(v, scanUser, query, arg))
		return err
	})
	return u, err
}

// AddFirstUser adds a user if none exists, or returns [account.ErrNotFirst].
func (a Accounts) AddFirstUser(ctx context.Context, user account.Record) error {
	return a.store.maintain(ctx, "adding the first user", func(t *tx) error {
		has, err := hasUsers(t.view)
		if err != nil {
			return err
		}
		if has {
			return account.ErrNotFirst
		}
		return t.addUser(user)
	})
}

// AddUser adds a user, or returns [account.ErrTaken].
func (a Accounts) AddUser(ctx context.Context, user account.Record) error {
	return a.store.maintain(ctx, "adding a user", func(t *tx) error { return t.addUser(user) })
}

func (t *tx) addUser(u account.Record) error {
	_, err := t.exec(`INSERT INTO account (id, username, role, enabled, must_change_password, created_at, updated_at, username_key, digest, auth_version)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, u.ID, u.Username, u.Role, u.Enabled, u.MustChangePassword, u.CreatedAt, u.UpdatedAt,
		u.Key, u.Digest, u.AuthVersion)
	return keyTaken(err)
}

// keyTaken turns the failure of a row whose name another user has into
// [account.ErrTaken].
func keyTaken(err error) error {
	if isTaken(err) {
		return errors.Join(account.ErrTaken, err)
	}
	return err
}

// UpdateUser replaces a user whose AuthVersion still is version, and ends its
// sessions of any other version than the new one. See [account.Store].
func (a Accounts) UpdateUser(ctx context.Context, u account.Record, version int64) error {
	return a.store.maintain(ctx, "changing a user", func(t *tx) error {
		n, err := t.exec(`UPDATE account SET username = ?, role = ?, enabled = ?, must_change_password = ?, created_at = ?, updated_at = ?,
			username_key = ?, digest = ?, auth_version = ? WHERE id = ? AND auth_version = ?`,
			u.Username, u.Role, u.Enabled, u.MustChangePassword, u.CreatedAt, u.UpdatedAt, u.Key, u.Digest, u.AuthVersion, u.ID, version)
		if err != nil {
			return keyTaken(err)
		}
		if n == 0 {
			return account.ErrStale
		}
		_, err = t.exec(`DELETE FROM session WHERE owner = ? AND auth_version <> ?`, u.ID, u.AuthVersion)
		return err
	})
}

// DeleteUser removes a user and its sessions, or returns [account.ErrNoRow]. All
// else that it owned stays, and nobody reaches it.
func (a Accounts) DeleteUser(ctx context.Context, id string) error {
	return a.store.maintain(ctx, "deleting a user", func(t *tx) error {
		n, err := t.exec(`DELETE FROM account WHERE id = ?`, id)
		if err == nil && n == 0 {
			return account.ErrNoRow
		}
		return err
	})
}

// AddSession adds a session of an enabled user's present version, or returns
// [account.ErrStale]. See [account.Store].
func (a Accounts) AddSession(ctx context.Context, session account.Session, keep int) error {
	return a.store.maintain(ctx, "adding a session", func(t *tx) error {
		present, err := one(t.view, scalar[bool], `SELECT EXISTS (SELECT 1 FROM account WHERE id = ? AND enabled AND auth_version = ?)`,
			session.UserID, session.AuthVersion)
		if err != nil {
			return err
		}
		if !present {
			return account.ErrStale
		}
		if _, err := t.exec(`DELETE FROM session WHERE expires_at <= ?`, session.CreatedAt); err != nil {
			return err
		}
		_, err = t.exec(`DELETE FROM session WHERE owner = ? AND hash IN (SELECT hash FROM session WHERE owner = ?
			ORDER BY created_at DESC, hash LIMIT -1 OFFSET ?)`, session.UserID, session.UserID, max(keep-1, 0))
		if err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO session (owner, hash, auth_version, created_at, expires_at) VALUES (?, ?, ?, ?, ?)`,
			session.UserID, session.Hash[:], session.AuthVersion, session.CreatedAt, session.ExpiresAt)
		return err
	})
}

// Session returns a session and its user, or [account.ErrNoRow].
func (a Accounts) Session(ctx context.Context, hash account.SessionHash) (session account.Session, user account.Record, err error) {
	session.Hash = hash
	err = a.store.peek(ctx, "reading a session", func(v view) error {
		user, err = rowless(one(v, func(r row) (account.Record, error) {
			var u account.Record
			err := r.Scan(append(intoUser(&u), &session.UserID, &session.AuthVersion, &session.CreatedAt, &session.ExpiresAt)...)
			return u, err
		}, `SELECT `+userColumns+`, session.owner, session.auth_version, session.created_at, session.expires_at
			FROM session JOIN account ON account.id = session.owner WHERE session.hash = ?`, hash[:]))
		return err
	})
	if err != nil {
		return account.Session{}, account.Record{}, err
	}
	return session, user, nil
}

// DeleteSession removes a session if it exists.
func (a Accounts) DeleteSession(ctx context.Context, hash account.SessionHash) error {
	return a.store.maintain(ctx, "deleting a session", func(t *tx) error {
		_, err := t.exec(`DELETE FROM session WHERE hash = ?`, hash[:])
		return err
	})
}
