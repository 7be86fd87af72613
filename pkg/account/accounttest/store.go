// Package accounttest is for tests of whatever needs accounts: a store in memory,
// and what every store has to hold.
package accounttest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/newos4/relay/pkg/account"
)

// Store is an [account.Store] in memory.
type Store struct {
	mu       sync.Mutex
	users    map[string]account.Record
	sessions map[account.SessionHash]account.Session
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{users: make(map[string]account.Record), sessions: make(map[account.SessionHash]account.Session)}
}

// HasUsers reports whether any user exists.
func (s *Store) HasUsers(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users) > 0, ctx.Err()
}

// Users returns all users by creation time, then by id.
func (s *Store) Users(ctx context.Context) ([]account.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.users), func(a, b account.Record) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}), ctx.Err()
}

// User returns the user with the id.
func (s *Store) User(ctx context.Context, id string) (account.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, ok := s.users[id]
	if !ok {
		return account.Record{}, account.ErrNoRow
	}
	return user, ctx.Err()
}

// UserByKey returns the user whose name has the key.
func (s *Store) UserByKey(ctx context.Context, key string) (account.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, ok := s.byKey(key)
	if !ok {
		return account.Record{}, account.ErrNoRow
	}
	return user, ctx.Err()
}

func (s *Store) byKey(key string) (account.Record, bool) {
	for _, user := range s.users {
		if user.Key == key {
			return user, true
		}
	}
	return account.Record{}, false
}

// AddFirstUser adds a user if none exists.
func (s *Store) AddFirstUser(ctx context.Context, user account.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) > 0 {
		return account.ErrNotFirst
	}
	s.users[user.ID] = user
	return ctx.Err()
}

// AddUser adds a user whose key nobody has.
func (s *Store) AddUser(ctx context.Context, user account.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.byKey(user.Key); taken {
		return account.ErrTaken
	}
	s.users[user.ID] = user
	return ctx.Err()
}

// UpdateUser replaces a user that still has the version.
func (s *Store) UpdateUser(ctx context.Context, user account.Record, version int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, ok := s.users[user.ID]
	if !ok || stored.AuthVersion != version {
		return account.ErrStale
	}
	if other, ok := s.byKey(user.Key); ok && other.ID != user.ID {
		return account.ErrTaken
	}
	s.users[user.ID] = user
	maps.DeleteFunc(s.sessions, func(_ account.SessionHash, session account.Session) bool {
		return session.UserID == user.ID && session.AuthVersion != user.AuthVersion
	})
	return ctx.Err()
}

// DeleteUser removes a user and its sessions.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.users[id]; !ok {
		return account.ErrNoRow
	}
	delete(s.users, id)
	maps.DeleteFunc(s.sessions, func(_ account.SessionHash, session account.Session) bool { return session.UserID == id })
	return ctx.Err()
}

// AddSession adds a session of an enabled user's present version.
func (s *Store) AddSession(ctx context.Context, session account.Session, keep int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, ok := s.users[session.UserID]
	if !ok || !user.Enabled || user.AuthVersion != session.AuthVersion {
		return account.ErrStale
	}
	maps.DeleteFunc(s.sessions, func(_ account.SessionHash, other account.Session) bool {
		return other.ExpiresAt <= session.CreatedAt
	})
	var own []account.Session
	for _, other := range s.sessions {
		if other.UserID == session.UserID {
			own = append(own, other)
		}
	}
	slices.SortFunc(own, func(a, b account.Session) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	for _, oldest := range own[:max(len(own)-keep+1, 0)] {
		delete(s.sessions, oldest.Hash)
	}
	s.sessions[session.Hash] = session
	return ctx.Err()
}

// Session returns a session and its user.
func (s *Store) Session(ctx context.Context, hash account.SessionHash) (account.Session, account.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.sessions[hash]
	if !ok {
		return account.Session{}, account.Record{}, account.ErrNoRow
	}
	return session, s.users[session.UserID], ctx.Err()
}

// DeleteSession removes a session.
func (s *Store) DeleteSession(ctx context.Context, hash account.SessionHash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, hash)
	return ctx.Err()
}
