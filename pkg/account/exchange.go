package account

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// exchange is one request with its answer and what the log will tell of it. It
// tells no path that a client made up, no name, no text and no token.
type exchange struct {
	http.ResponseWriter

	guard   *Guard
	r       *http.Request
	started time.Time
	route   string // the pattern
	user    string // the id
	status  int
	code    Code
	cause   error
}

// WriteHeader notes the status.
func (e *exchange) WriteHeader(status int) {
	if e.status == 0 && status >= http.StatusOK {
		e.status = status
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer has begun.
func (e *exchange) Write(p []byte) (int, error) {
	if e.status == 0 {
		e.status = http.StatusOK
	}
	return e.ResponseWriter.Write(p)
}

// ReadFrom lets the connection take a file from the kernel.
func (e *exchange) ReadFrom(r io.Reader) (int64, error) {
	if e.status == 0 {
		e.status = http.StatusOK
	}
	return io.Copy(e.ResponseWriter, r)
}

// Unwrap lets [http.ResponseController] flush and set deadlines.
func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// refuse answers with a refusal. One that comes after the answer has begun can
// only cut it off, so that the client does not take half of it for the whole.
func (e *exchange) refuse(err error) {
	e.cause = err
	if e.status != 0 {
		e.code = CodeInternal
		panic(http.ErrAbortHandler)
	}
	e.code = WriteRefusal(e, err).Code
}

// recover turns a panic into an answer that tells nothing, and a log line that
// tells all.
func (e *exchange) recover() {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	e.guard.opts.Logger.Error("panic while answering a request", "panic", p, "stack", string(debug.Stack()))
	e.refuse(errorf(CodeInternal, "the handler panicked"))
}

// finish writes the request's line.
func (e *exchange) finish() {
	level := slog.LevelInfo
	isFault := e.code == CodeInternal && !isClientGone(e.r, e.cause)
	if isFault {
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("method", e.method()), slog.String("route", e.route), slog.Int("status", e.status),
		slog.String("ip", e.guard.address(e.r)),
		slog.Float64("ms", float64(e.guard.opts.Now().Sub(e.started).Microseconds())/1000),
	}
	if e.code != "" {
		attrs = append(attrs, slog.String("code", string(e.code)))
	}
	if e.user != "" {
		attrs = append(attrs, slog.String("user", e.user))
	}
	if isFault && e.cause != nil {
		attrs = append(attrs, slog.Any("error", e.cause))
	}
	e.guard.opts.Logger.LogAttrs(e.r.Context(), level, "request", attrs...)
}

// method returns a method of HTTP's own, and a word for one that a client made up.
func (e *exchange) method() string {
	switch e.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return e.r.Method
	}
	return "other"
}
