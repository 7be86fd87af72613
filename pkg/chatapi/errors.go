package chatapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/ratelimit"
)

// tableRow is one row of the contract's error table (section 6).
type tableRow struct {
	status int
	// message stands in for the error's own, which is for the operator.
	message string
}

// errorTable is the contract's error table. An error whose code is not in it is
// an internal one.
func errorTable() map[chat.Code]tableRow {
	return map[chat.Code]tableRow{
		chat.CodeBadRequest:  {status: http.StatusBadRequest},
		chat.CodeBadToken:    {status: http.StatusUnauthorized},
		chat.CodeForbidden:   {status: http.StatusForbidden},
		chat.CodeNotFound:    {status: http.StatusNotFound},
		chat.CodeMethod:      {status: http.StatusMethodNotAllowed},
		chat.CodeGone:        {status: http.StatusGone},
		chat.CodeTooLong:     {status: http.StatusRequestEntityTooLarge},
		chat.CodeTooLarge:    {status: http.StatusRequestEntityTooLarge},
		chat.CodeRateLimited: {status: http.StatusTooManyRequests},
		chat.CodeThreadLimit: {status: http.StatusInsufficientStorage, message: "this server keeps no more conversations for now"},
		chat.CodeCorrupt:     {status: http.StatusInternalServerError, message: "the conversation's file is damaged and was left as it is; the operator has to look at it"},
		chat.CodeStorage:     {status: http.StatusInternalServerError, message: "the server could not read or write the conversation; nothing is acknowledged"},
		chat.CodeInternal:    {status: http.StatusInternalServerError, message: "the server failed"},
	}
}

// refusal is the answer to a request that is refused.
type refusal struct {
	status int
	header map[string]string
	body   refusalBody
}

// refusalBody is the body of every refusal (section 6).
type refusalBody struct {
	Success bool      `json:"success"`
	Code    chat.Code `json:"code"`
	Error   string    `json:"error"`

	RetryAfterMS int64  `json:"retry_after_ms,omitzero"`
	Scope        string `json:"scope,omitzero"`
	Limit        int    `json:"limit,omitzero"`
	WindowS      int64  `json:"window_s,omitzero"`

	Pointer string `json:"pointer,omitzero"`
}

// detailedError is an error that adds headers or members to its refusal.
type detailedError struct {
	refused *chat.Error
	header  map[string]string
	detail  refusalBody
}

// Error returns the message of the refusal.
func (e *detailedError) Error() string { return e.refused.Error() }

// Unwrap makes the code visible to [chat.CodeOf].
func (e *detailedError) Unwrap() error { return e.refused }

// refusalOf returns the answer that the table gives to err.
func refusalOf(err error) refusal {
	code := chat.CodeOf(err)
	row, ok := errorTable()[code]
	if !ok {
		code = chat.CodeInternal
		row = errorTable()[code]
	}
	r := refusal{status: row.status}
	if detailed, ok := errors.AsType[*detailedError](err); ok {
		r.header, r.body = detailed.header, detailed.detail
	}
	r.body.Code, r.body.Error = code, row.message
	if coded, ok := errors.AsType[*chat.Error](err); ok && row.message == "" {
		r.body.Error = coded.Message
	}
	return r
}

func (r refusal) appendJSON(dst []byte) []byte {
	body, err := json.Marshal(r.body)
	if err != nil {
		panic(fmt.Sprintf("chatapi: a refusal does not encode: %v", err)) // its members are plain values
	}
	return append(dst, body...)
}

func methodNotAllowed(allowed []string) error {
	list := strings.Join(allowed, ", ")
	return &detailedError{
		refused: chat.Errorf(chat.CodeMethod, "the method is not allowed here; use %s", list),
		header:  map[string]string{"Allow": list},
	}
}

// rateLimited tells exactly when there is room again (section 6). Retry-After
// counts whole seconds, rounded up.
func rateLimited(full *ratelimit.Refusal) error {
	scope, what := WindowThread, "messages in this conversation"
	switch full.Window.Name {
	case WindowIP:
		scope, what = WindowIP, "messages from your address"
	case WindowIPThreads:
		scope, what = WindowIP, "new conversations from your address"
	}
	return &detailedError{
		refused: chat.Errorf(chat.CodeRateLimited, "too many %s: at most %d in %d s", what, full.Window.Limit, int64(full.Window.Span/time.Second)),
		header:  map[string]string{"Retry-After": strconv.FormatInt(ceil(full.Wait, time.Second), 10)},
		detail: refusalBody{
			RetryAfterMS: ceil(full.Wait, time.Millisecond),
			Scope:        scope,
			Limit:        full.Window.Limit,
			WindowS:      int64(full.Window.Span / time.Second),
		},
	}
}

func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// gone answers what the contract has replaced.
func gone(*exchange) error {
	return &detailedError{
		refused: chat.Errorf(chat.CodeGone, "agent replies are retired; post to /api/chat/post.php instead"),
		detail:  refusalBody{Pointer: "/api/chat/post.php"},
	}
}
