package chatapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/untrusted"
)

// exchange is one request with its answer and what the log will tell of it.
type exchange struct {
	api     *API
	w       http.ResponseWriter
	r       *http.Request
	started time.Time
	ip      ipKey
	route   string
	thread  chat.ThreadID
	status  int
	bytes   int
	code    chat.Code
	cause   error // for the log, when the answer is a refusal
}

// commonHeaders stand in every answer (section 6).
func commonHeaders() http.Header {
	return http.Header{
		"Content-Type":           {"application/json; charset=utf-8"},
		"Cache-Control":          {"no-store"},
		"X-Content-Type-Options": {"nosniff"},
	}
}

func (a *API) setCommonHeaders(e *exchange) {
	h := e.w.Header()
	maps.Copy(h, a.common)
	a.setOriginHeaders(h, e.r)
}

// reply writes an answer whose body build appends to a buffer.
func (e *exchange) reply(status int, build func([]byte) []byte) {
	e.status = status
	body := build(e.api.bodies.get())
	e.bytes = len(body)
	e.w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	e.w.WriteHeader(status)
	// An error here is the client's: it has gone and learns nothing any more.
	_, _ = e.w.Write(body)
	e.api.bodies.put(body)
}

// bodyPool keeps the buffers in which bodies are built, so that a page of
// messages need not be allocated for each poll.
type bodyPool struct{ pool sync.Pool }

// get returns an empty buffer.
func (p *bodyPool) get() []byte {
	if buffer, ok := p.pool.Get().(*[]byte); ok {
		return (*buffer)[:0]
	}
	return nil
}

// put takes a buffer that nobody uses any more. A page of long messages is left
// to the collector, so that it does not stay in memory for the sake of the many
// short ones.
func (p *bodyPool) put(buffer []byte) {
	const largest = 64 << 10
	if cap(buffer) <= largest {
		p.pool.Put(&buffer)
	}
}

// closeConnection ends the connection with this answer, for what the client
// still sends is not read.
func (e *exchange) closeConnection() { e.w.Header().Set("Connection", "close") }

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
	e.api.opts.Logger.Error("panic while answering a request", "panic", p, "stack", string(debug.Stack()))
	if e.status == 0 {
		e.refuse(chat.Errorf(chat.CodeInternal, "internal error"))
	}
}

// finish tells of the request to whoever counts, and writes its line. It holds no
// token and no text: known routes stand by name, and of other paths whatever could
// be a token is left out.
func (e *exchange) finish() {
	ended := e.api.opts.Now()
	if served := e.api.opts.Served; served != nil {
		served(Served{Route: e.route, Status: e.status, Code: e.code, Took: ended.Sub(e.started)})
	}
	level := slog.LevelInfo
	// A client that went away while it waited is no failure of the server's.
	gone := errors.Is(e.cause, context.Canceled)
	if e.status >= http.StatusInternalServerError && e.code != chat.CodeThreadLimit && !gone {
		level = slog.LevelError
	}
	handler := e.api.opts.Logger.Handler()
	if !handler.Enabled(e.r.Context(), level) {
		return
	}
	// The record is made by hand because a logger would look up the clock again
	// and where in the source it was called, for each request.
	record := slog.NewRecord(ended, level, "request", 0)
	record.AddAttrs(slog.String("method", logMethod(e.r.Method)), slog.String("route", e.route), slog.Int("status", e.status))
	if e.code != "" {
		record.AddAttrs(slog.String("code", string(e.code)))
	}
	if e.thread != "" {
		record.AddAttrs(slog.String("thread", string(e.thread)))
	}
	if e.route == "none" {
		record.AddAttrs(slog.String("path", redact(e.r.URL.Path)))
	}
	record.AddAttrs(slog.String("ip", string(e.ip)), slog.Int("bytes", e.bytes),
		slog.Float64("ms", float64(ended.Sub(e.started).Microseconds())/1000))
	if e.cause != nil && level == slog.LevelError {
		record.AddAttrs(slog.Any("error", e.cause))
	}
	_ = handler.Handle(e.r.Context(), record) // a log that fails has nowhere to say so
}

// logMethod returns a method of HTTP's own, and a word for one that a client
// made up, which could hold anything.
func logMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "other"
}

// redact shortens a path, leaves out what could be a token that a client
// mistakenly put there, and spells out what a terminal that shows the log would
// obey, which not every form of the log does.
func redact(path string) string {
	const limit = 200
	path = regexp.MustCompile(`[0-9a-fA-F]{32,}`).ReplaceAllString(path, "[hex]")
	if len(path) > limit {
		path = path[:limit] + "…"
	}
	return untrusted.Line(path)
}

// refuse answers with an error of the contract's table (section 6).
func (e *exchange) refuse(err error) {
	r := refusalOf(err)
	e.code, e.cause = r.body.Code, err
	for name, value := range r.header {
		e.w.Header().Set(name, value)
	}
	e.reply(r.status, r.appendJSON)
}
