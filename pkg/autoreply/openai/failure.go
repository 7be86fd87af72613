package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/autoreply"
)

// maxAfter caps how long a server may ask to be left alone.
const maxAfter = time.Hour

// failureOf returns what is wrong with a response, or nil.
func (b *Backend) failureOf(resp response, err error) *autoreply.Failure {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return autoreply.Failf(autoreply.ReasonTimeout, true, "%w", err)
	case err != nil:
		return autoreply.Failf(autoreply.ReasonUnavailable, true, "%w", err)
	case isHermes(resp):
		return autoreply.Failf(autoreply.ReasonUnsafe, false,
			"the server is a Hermes API server, which runs tools of its own; use the back end made for it")
	}
	status := statusOf(resp)
	if status == http.StatusOK {
		return nil
	}
	failure := failureOfStatus(status, resp.document.fault)
	failure.After = b.retryAfter(resp.header)
	return failure
}

// isHermes reports whether a response comes from a Hermes API server.
func isHermes(resp response) bool {
	for name := range resp.header {
		if strings.HasPrefix(name, "X-Hermes-") {
			return true
		}
	}
	return strings.HasPrefix(resp.document.object, "hermes.")
}

// statusOf returns the status that a response amounts to. Gateways report what
// happened behind them as an error in a response with status 200.
func statusOf(resp response) int {
	fault := resp.document.fault
	if resp.status != http.StatusOK || !fault.present {
		return resp.status
	}
	if fault.status >= 400 && fault.status <= 599 {
		return fault.status
	}
	return http.StatusInternalServerError
}

func failureOfStatus(status int, f fault) *autoreply.Failure {
	reason, retry := autoreply.ReasonRefused, false
	switch {
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		reason, retry = autoreply.ReasonUnavailable, true
	case status == http.StatusPaymentRequired:
		retry = true
	}
	if f.code == "" {
		return autoreply.Failf(reason, retry, "the server answered with status %s", statusText(status))
	}
	return autoreply.Failf(reason, retry, "the server answered with status %s, code %s", statusText(status), f.code)
}

// statusText explains the statuses that an operator can do something about.
func statusText(status int) string {
	hint := http.StatusText(status)
	switch {
	case status >= 300 && status <= 399:
		hint = "a redirect, which is not followed: check the base URL"
	case status == http.StatusBadRequest:
		hint = "bad request: the model may not take tools, or the prompt is too long for it"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		hint = "check the key"
	case status == http.StatusNotFound:
		hint = "check the base URL and the model"
	}
	return fmt.Sprintf("%d (%s)", status, hint)
}

// isBusy reports whether a request that got this status may be repeated at once.
func isBusy(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// retryAfter returns how long the server asks to be left alone, at most
// maxAfter, or 0.
func (b *Backend) retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), int(maxAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(b.opts.Now()), 0), maxAfter)
}
