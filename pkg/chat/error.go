package chat

import (
	"errors"
	"fmt"
)

// Code is the machine-readable name of a refusal, as it stands in the "code"
// field of an error body (section 6).
type Code string

// The codes of the contract's error table (section 6). Which HTTP status goes
// with each is the HTTP side's business.
const (
	CodeBadToken    Code = "bad_token"
	CodeBadRequest  Code = "bad_request"
	CodeTooLong     Code = "too_long"
	CodeTooLarge    Code = "too_large"
	CodeRateLimited Code = "rate_limited"
	CodeThreadLimit Code = "thread_limit"
	CodeMethod      Code = "method"
	CodeNotFound    Code = "not_found"
	CodeForbidden   Code = "forbidden"
	CodeGone        Code = "gone"
	CodeCorrupt     Code = "thread file is corrupt"
	CodeStorage     Code = "storage"
	CodeInternal    Code = "internal"
	// CodeConflict is the host side's own: a conditional reply found a newer
	// message (section 8). It never reaches a browser.
	CodeConflict Code = "conflict"
)

// Error is a refusal with a code. Message is written for the person who sent
// the request and carries nothing secret; the cause, if any, is for the log.
type Error struct {
	Code    Code
	Message string
	cause   error
}

// Errorf returns an Error with a formatted message. A %w verb keeps its
// operand as the cause, as in [fmt.Errorf].
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause or nil.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of the first [Error] in err's chain, and
// [CodeInternal] for any other non-nil error.
func CodeOf(err error) Code {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code
	}
	return CodeInternal
}
