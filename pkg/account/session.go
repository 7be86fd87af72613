package account

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

const (
	// SessionLife is how long a sign-in lasts (section 1.3).
	SessionLife = 30 * 24 * time.Hour
	// MaxSessions is how many sign-ins of one user are kept; the oldest gives
	// way.
	MaxSessions = 100
	// tokenSize is the length of a session's token in bytes.
	tokenSize = 32
)

// Token is what a client proves its session with: 32 random bytes in base64url.
type Token string

func newToken() Token {
	return Token(base64.RawURLEncoding.EncodeToString(randomBytes(tokenSize)))
}

// hash returns the hash of a token of the right form. Only one spelling of each
// is right.
func (t Token) hash() (SessionHash, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(t))
	if err != nil || len(raw) != tokenSize {
		return SessionHash{}, false
	}
	return sha256.Sum256(raw), true
}

// Authenticate returns the user whose live session has the token, or
// [CodeUnauthenticated]. A password change may be due.
func (s *Service) Authenticate(ctx context.Context, token Token) (User, error) {
	record, err := s.sessionOf(ctx, token)
	return record.User, err
}

func (s *Service) sessionOf(ctx context.Context, token Token) (Record, error) {
	hash, ok := token.hash()
	if !ok {
		return Record{}, unauthenticated()
	}
	session, user, err := s.store.Session(ctx, hash)
	if errors.Is(err, ErrNoRow) {
		return Record{}, unauthenticated()
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the session: %w", err)
	}
	if s.nowMS() >= session.ExpiresAt || !user.Enabled || session.AuthVersion != user.AuthVersion {
		return Record{}, unauthenticated()
	}
	return user, nil
}

func unauthenticated() error {
	return errorf(CodeUnauthenticated, "the request has no live session")
}

// startSession signs the user in. It fails with [ErrStale] if the user has been
// changed since it was read.
func (s *Service) startSession(ctx context.Context, user Record) (Token, error) {
	token := newToken()
	hash, _ := token.hash()
	now := s.now()
	err := s.store.AddSession(ctx, Session{
		Hash: hash, UserID: user.ID, AuthVersion: user.AuthVersion,
		CreatedAt: now.UnixMilli(), ExpiresAt: now.Add(SessionLife).UnixMilli(),
	}, MaxSessions)
	if err != nil {
		return "", fmt.Errorf("storing the session: %w", err)
	}
	return token, nil
}

// Logout ends the session with the token, if there is one.
func (s *Service) Logout(ctx context.Context, token Token) error {
	hash, ok := token.hash()
	if !ok {
		return nil
	}
	if err := s.store.DeleteSession(ctx, hash); err != nil {
		return fmt.Errorf("deleting the session: %w", err)
	}
	return nil
}
