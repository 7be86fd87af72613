package workspace

import (
	"errors"
	"strings"
)

// Error is a failure with a code. Text is the sentence that users see and
// carries nothing secret; the cause, if any, is for the log.
type Error struct {
	Code Code
	Text string
	// Fields lists what is wrong with which field of the request. It is empty
	// for everything but [CodeInvalidRequest].
	Fields []FieldError
	cause  error
}

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	// Field is the path of the field as the client wrote it, "memberIds.2".
	Field string
	// Reason is a Chinese phrase that users see.
	Reason string
}

// Fail returns an Error with the code's own text.
func Fail(code Code) *Error { return &Error{Code: code, Text: code.Text()} }

// FailText returns an Error with a text of its own, which users see.
func FailText(code Code, text string) *Error { return &Error{Code: code, Text: text} }

// FailCause returns an Error with the code's own text whose cause is err.
func FailCause(code Code, err error) *Error {
	return &Error{Code: code, Text: code.Text(), cause: err}
}

// Invalid returns the Error of a request with the given faults: its text lists
// "field: reason" pairs joined with "; " (section 1.8).
func Invalid(fields ...FieldError) *Error {
	pairs := make([]string, len(fields))
	for i, f := range fields {
		pairs[i] = f.Field + ": " + f.Reason
	}
	return &Error{Code: CodeInvalidRequest, Text: strings.Join(pairs, "; "), Fields: fields}
}

// Error returns the code and the text, and the cause where there is one. It is
// for logs; users see Text.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Text
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause or nil.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error with the same code, so that
// errors.Is(err, Fail(code)) asks for a code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// CodeOf returns the code of the first [Error] in err's chain, [CodeInternal]
// for any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code
	}
	return CodeInternal
}
