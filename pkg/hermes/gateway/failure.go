package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/untrusted"
)

// shownRunes is how much of an upstream's text an error shows, in code points.
const shownRunes = 300

// safe makes an upstream's text fit to be shown: one bounded line, without
// control characters and without our credentials.
func (c *Client) safe(text string) string {
	for _, secret := range []string{c.config.Token, c.config.Password, c.signIn.secret()} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	runes := []rune(untrusted.Line(strings.Join(strings.Fields(text), " ")))
	if len(runes) > shownRunes {
		return string(runes[:shownRunes]) + "…"
	}
	return string(runes)
}

// transport returns the failure of something that did not come through.
func (c *Client) transport(doing string, err error) error {
	if failure, ok := errors.AsType[*hermes.Error](err); ok {
		return failure
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	failure := &hermes.Error{Kind: hermes.KindUnavailable, Doing: doing, Text: "the server cannot be reached", Retryable: true, Err: err}
	switch {
	case errors.Is(err, errAddress):
		failure.Kind, failure.Text, failure.Retryable = hermes.KindForbidden, errAddress.Error(), false
	case errors.Is(err, context.DeadlineExceeded):
		failure.Kind, failure.Text = hermes.KindTimeout, "no answer in time"
	}
	return failure
}

// statusFailure returns the failure of an HTTP answer that is not 2xx.
func (c *Client) statusFailure(doing string, response *http.Response, body []byte) *hermes.Error {
	failure := &hermes.Error{Kind: hermes.KindRejected, Doing: doing, Code: response.StatusCode, Text: c.detail(response, body)}
	switch status := response.StatusCode; {
	case status >= 300 && status < 400:
		failure.Kind, failure.Hint = hermes.KindForbidden, "redirects are not followed; give the address that they lead to"
	case status == http.StatusUnauthorized:
		failure.Kind, failure.Hint = hermes.KindAuth, "check the token, or the user and the password"
	case status == http.StatusForbidden, status == http.StatusBadRequest && strings.Contains(string(body), "Host header"):
		failure.Kind = hermes.KindForbidden
	case status == http.StatusNotFound:
		failure.Kind = hermes.KindNotFound
	case status == http.StatusConflict:
		failure.Kind, failure.Retryable = hermes.KindBusy, true
	case status == http.StatusRequestEntityTooLarge:
		failure.Kind = hermes.KindTooLarge
	case status == http.StatusTooManyRequests:
		failure.Kind, failure.Retryable, failure.RetryAfter = hermes.KindRateLimited, true, retryAfter(response.Header)
	case status >= 500:
		failure.Kind, failure.Retryable = hermes.KindUnavailable, true
	}
	return failure
}

// detail returns what an error answer says, or its status.
func (c *Client) detail(response *http.Response, body []byte) string {
	if text := errorText(body); text != "" {
		return c.safe(text)
	}
	return "status " + strconv.Itoa(response.StatusCode)
}

// retryAfter returns how long to wait, a minute unless the server says so, and an
// hour at most.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return time.Minute
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}

// rpcError is the error of a JSON-RPC answer.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Codes of JSON-RPC errors (hermes-upstream section 3.8).
const (
	codeNoMethod     = -32601
	codeBadParams    = -32602
	codeInternal     = -32603
	codeHandler      = -32000
	codeUnknownParam = 4000
	codeNoRuntime    = 4001
	codeNoStored     = 4007
	codeBusy         = 4009
	codeTitle        = 4022
	codeCap          = 4090
	codeTooLarge     = 4130
	codeNotBuilt     = 5032
)

// rpcFailure returns the failure of an error answer.
func (c *Client) rpcFailure(doing string, err *rpcError) *hermes.Error {
	failure := &hermes.Error{Kind: hermes.KindRejected, Doing: doing, Code: err.Code, Text: c.safe(err.Message)}
	switch err.Code {
	case codeNoMethod:
		failure.Kind = hermes.KindUnsupported
	case codeInternal, codeHandler:
		failure.Kind, failure.Retryable = hermes.KindUncertain, true
	case codeNoRuntime:
		failure.Kind = hermes.KindStaleSession
	case codeNoStored:
		failure.Kind = hermes.KindNotFound
	case codeBusy, codeCap:
		failure.Kind, failure.Retryable = hermes.KindBusy, true
	case codeTooLarge:
		failure.Kind = hermes.KindTooLarge
	case codeNotBuilt:
		failure.Kind, failure.Retryable = hermes.KindStarting, true
	case 5070, 5071, 5072:
		failure.Kind, failure.Retryable = hermes.KindStorage, err.Code == 5071
	}
	if failure.Text == "" {
		failure.Text = "error " + strconv.Itoa(err.Code)
	}
	return failure
}

// codeOf returns the upstream's code of the failure in err's chain, or 0.
func codeOf(err error) int {
	if failure, ok := errors.AsType[*hermes.Error](err); ok {
		return failure.Code
	}
	return 0
}

// closeFailure returns the failure of a connection that ended.
func (c *Client) closeFailure(doing string, err error) *hermes.Error {
	failure := &hermes.Error{Kind: hermes.KindDisconnected, Doing: doing, Text: "the connection was lost", Retryable: true, Err: err}
	if given, ok := errors.AsType[*hermes.Error](err); ok {
		failure.Kind, failure.Text, failure.Retryable = given.Kind, given.Text, given.Retryable
	}
	switch code := websocket.CloseStatus(err); {
	case errors.Is(err, websocket.ErrMessageTooBig):
		failure.Kind, failure.Text, failure.Retryable = hermes.KindProtocol, "a frame is larger than allowed", false
	case code == 4401:
		failure.Kind, failure.Text, failure.Code, failure.Retryable = hermes.KindAuth, "the credentials were refused", 4401, false
	case code == 4403 || code == 4408:
		failure.Kind, failure.Text, failure.Code, failure.Retryable = hermes.KindForbidden, "host, origin or peer is not allowed", int(code), false
	case code == websocket.StatusMessageTooBig:
		failure.Kind, failure.Text, failure.Code, failure.Retryable = hermes.KindTooLarge, "the server takes no message of this size", int(code), false
	}
	return failure
}
