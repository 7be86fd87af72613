package account

import (
	"context"
	"errors"
)

// What a [Store] answers besides failures.
var (
	// ErrNoRow says that the user or session does not exist.
	ErrNoRow = errors.New("there is no such row")
	// ErrTaken says that another user has the name's key.
	ErrTaken = errors.New("the user name is taken")
	// ErrNotFirst says that a user exists already.
	ErrNotFirst = errors.New("a user exists already")
	// ErrStale says that the user was changed, disabled or deleted meanwhile.
	ErrStale = errors.New("the user was changed meanwhile")
)

// Record is a user as the store keeps it.
type Record struct {
	User
	// Key is the [UsernameKey] of the name; no two users have the same.
	Key string
	// Digest is what the password is checked against.
	Digest string
	// AuthVersion counts the changes that end all sessions.
	AuthVersion int64
}

// SessionHash is the SHA-256 of a session's token. The token itself is never
// stored.
type SessionHash [32]byte

// Session is a sign-in of one client.
type Session struct {
	Hash   SessionHash
	UserID string
	// AuthVersion is the user's at the time of the sign-in; when the user's has
	// moved on, the session is dead.
	AuthVersion int64
	// CreatedAt and ExpiresAt count milliseconds since 1970.
	CreatedAt int64
	ExpiresAt int64
}

// Store keeps users and sessions. Each method is one transaction, and several
// processes may use the same data. [accounttest.TestStore] says by examples what
// each promises.
type Store interface {
	// HasUsers reports whether any user exists.
	HasUsers(ctx context.Context) (bool, error)
	// Users returns all users by creation time, then by id.
	Users(ctx context.Context) ([]Record, error)
	// User returns the user with the id, or ErrNoRow.
	User(ctx context.Context, id string) (Record, error)
	// UserByKey returns the user whose name has the key, or ErrNoRow.
	UserByKey(ctx context.Context, key string) (Record, error)
	// AddFirstUser adds a user if none exists, or returns ErrNotFirst. Of
	// several at once exactly one succeeds.
	AddFirstUser(ctx context.Context, user Record) error
	// AddUser adds a user, or returns ErrTaken.
	AddUser(ctx context.Context, user Record) error
	// UpdateUser replaces the user with the same id if its AuthVersion still is
	// version, and removes its sessions of any other AuthVersion than the new
	// one. It returns ErrStale if the version has moved on or the user is gone,
	// and ErrTaken if another user has the new key.
	UpdateUser(ctx context.Context, user Record, version int64) error
	// DeleteUser removes the user and its sessions, or returns ErrNoRow. What
	// else it owned becomes unreachable.
	DeleteUser(ctx context.Context, id string) error
	// AddSession adds a session if its user is enabled and has its AuthVersion,
	// or returns ErrStale. In the same step it removes all sessions that have
	// ended by the new one's CreatedAt and, of the same user's, the oldest
	// beyond keep.
	AddSession(ctx context.Context, session Session, keep int) error
	// Session returns the session and its user, or ErrNoRow. The session may
	// have ended.
	Session(ctx context.Context, hash SessionHash) (Session, Record, error)
	// DeleteSession removes the session if it exists.
	DeleteSession(ctx context.Context, hash SessionHash) error
}
