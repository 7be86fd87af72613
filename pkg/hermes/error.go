package hermes

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what kind of failure an [Error] is, in the finer of the contract's two
// tables (hermes-upstream section 9).
type Kind string

// The kinds of failures.
const (
	KindUnavailable  Kind = "unavailable"   // dialling failed, 502, 503, 504, never ready
	KindStarting     Kind = "starting"      // the agent is not built yet
	KindAuth         Kind = "auth"          // credentials were refused, also after signing in again
	KindForbidden    Kind = "forbidden"     // host, origin, peer or address is not allowed
	KindNotFound     Kind = "not_found"     // no such session, profile or file
	KindStaleSession Kind = "stale_session" // the runtime id is unknown, and resuming did not help
	KindBusy         Kind = "busy"          // the session executes another turn, or no slot is free
	KindRateLimited  Kind = "rate_limited"  // too many requests; see RetryAfter
	KindRejected     Kind = "rejected"      // a definite no
	KindTooLarge     Kind = "too_large"     // a limit of size, ours or theirs
	KindUnsupported  Kind = "unsupported"   // the server has no such method
	KindUncertain    Kind = "uncertain"     // sent, and not acknowledged
	KindDisconnected Kind = "disconnected"  // the connection was lost before anything was sent
	KindTimeout      Kind = "timeout"       // no answer in time
	KindProtocol     Kind = "protocol"      // what came is not what was agreed
	KindModel        Kind = "model"         // the turn failed
	KindTruncated    Kind = "truncated"     // the answer was cut
	KindInterrupted  Kind = "interrupted"   // the turn was interrupted
	KindExpired      Kind = "expired"       // the question is no longer open
	KindStorage      Kind = "storage"       // the server's disk or database
	KindUnsafeTools  Kind = "unsafe_tools"  // a tool outside the allowed ones
	KindIdentity     Kind = "identity"      // another profile answered
	KindHistory      Kind = "history"       // history is unreadable or malformed
)

// Class is a failure's effect on a task, by the coarser table of the workspace
// contract's section 7.3.
type Class string

// The classes of failures.
const (
	ClassUnreachable        Class = "unreachable"
	ClassRejected           Class = "rejected"
	ClassLostAck            Class = "lost_ack"
	ClassBusy               Class = "busy"
	ClassIdentityMismatch   Class = "identity_mismatch"
	ClassRunFailed          Class = "run_failed"
	ClassInterrupted        Class = "interrupted"
	ClassHistoryUnavailable Class = "history_unavailable"
)

// classOf is the table from kinds to classes.
func classOf(kind Kind) Class {
	switch kind {
	case KindUnavailable, KindStarting, KindAuth, KindForbidden, KindRateLimited, KindStorage,
		KindDisconnected, KindProtocol:
		return ClassUnreachable
	case KindNotFound, KindStaleSession, KindRejected, KindTooLarge, KindUnsupported, KindExpired, KindUnsafeTools:
		return ClassRejected
	case KindUncertain, KindTimeout:
		return ClassLostAck
	case KindBusy:
		return ClassBusy
	case KindIdentity:
		return ClassIdentityMismatch
	case KindModel, KindTruncated:
		return ClassRunFailed
	case KindInterrupted:
		return ClassInterrupted
	case KindHistory:
		return ClassHistoryUnavailable
	default:
		return ""
	}
}

// Error is a failure of an upstream.
type Error struct {
	Kind Kind
	// Doing is what was being done, such as "open session".
	Doing string
	// Text says why. It is the upstream's or ours, made safe to show: one line,
	// bounded, without control characters and without our credentials.
	Text string
	// Hint says how to mend it; it may be empty.
	Hint string
	// Code is the upstream's own: a JSON-RPC error code, an HTTP status or a
	// WebSocket close code; 0 if there is none.
	Code int
	// Retryable says that the same may succeed later, RetryAfter when, if the
	// upstream said so.
	Retryable  bool
	RetryAfter time.Duration
	// Err is the cause, if there is one.
	Err error
}

// Error returns what was being done and why it failed, and the hint in a line of
// its own.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s", e.Doing, e.Text)
	if e.Hint != "" {
		text += "\nhint: " + e.Hint
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Class returns the failure's class.
func (e *Error) Class() Class { return classOf(e.Kind) }

// KindOf returns the kind of the [Error] in err's chain, or "".
func KindOf(err error) Kind {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure.Kind
	}
	return ""
}

// ClassOf returns the class of the [Error] in err's chain, or "".
func ClassOf(err error) Class { return classOf(KindOf(err)) }
