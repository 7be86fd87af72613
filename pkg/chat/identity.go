package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
)

// Lengths of the contract's identifiers in hex digits (section 1).
const (
	TokenLength    = 64
	ThreadIDLength = 16
)

// Token is a browser's secret: exactly 64 lower-case hex digits (section 1).
// Whoever holds it can read and write its thread, so it prints as a
// placeholder; only Thread is meant to leave the request that carried it.
type Token string

// ParseToken returns s as a Token, or an error with code [CodeBadToken] when s
// is not exactly 64 characters of 0-9a-f. The error does not repeat s.
func ParseToken(s string) (Token, error) {
	if len(s) != TokenLength || !isLowerHex(s) {
		return "", Errorf(CodeBadToken, "the X-Chat-Token header must be one value of %d lower-case hex digits", TokenLength)
	}
	return Token(s), nil
}

// Thread returns the id of the token's thread: the first 16 hex digits of
// SHA-256 over the token's 64 ASCII characters (section 1).
func (t Token) Thread() ThreadID {
	sum := sha256.Sum256([]byte(t))
	return ThreadID(hex.EncodeToString(sum[:ThreadIDLength/2]))
}

// String hides the token from every formatted print.
func (t Token) String() string { return "[token]" }

// LogValue hides the token from every structured log.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// ThreadID names a conversation: 16 lower-case hex digits (section 1). It is
// safe to log and to show; it gives no access.
type ThreadID string

// ParseThreadID returns s as a ThreadID, or an error with code
// [CodeBadRequest] that shows what was given.
func ParseThreadID(s string) (ThreadID, error) {
	if len(s) != ThreadIDLength || !isLowerHex(s) {
		return "", Errorf(CodeBadRequest, "%q is not a thread id: want %d lower-case hex digits", s, ThreadIDLength)
	}
	return ThreadID(s), nil
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
