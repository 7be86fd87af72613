package sandbox

import "errors"

// The errors of a request. They carry no path and say nothing about what lies
// outside the roots, so that their text may be shown to the model.
var (
	// ErrNotReadable is the one answer for everything that is absent, denied,
	// not a regular file with a single link, or outside the roots, and for paths
	// that are not well formed.
	ErrNotReadable = errors.New("no such readable file")
	// ErrTooLarge means a readable file with more than [Limits.FileSize] bytes.
	ErrTooLarge = errors.New("the file is too large to be read")
	// ErrBinary means a readable file that holds NUL bytes.
	ErrBinary = errors.New("the file is not text")
	// ErrInvalid means arguments that cannot be served whatever the files hold:
	// a malformed pattern, a line range that ends before it begins. What is
	// wrong follows in the text.
	ErrInvalid = errors.New("invalid request")
	// ErrTimeout means that the request took longer than [Limits.Time].
	ErrTimeout = errors.New("the request took too long")
)

// The errors of the reader itself. Their text is for the operator and may name a
// root; the model gets none of it.
var (
	// ErrClosed means that the reader was closed before or during the request.
	ErrClosed = errors.New("sandbox: the reader is closed")
	// ErrChild means that the child ended or broke the protocol. The next
	// request gets a new child.
	ErrChild = errors.New("sandbox: the confined process failed")
	// ErrNotConfined means that the child could do what it must not: a promise
	// that the kernel should enforce does not hold.
	ErrNotConfined = errors.New("sandbox: the confinement does not hold")
)
