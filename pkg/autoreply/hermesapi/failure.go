package hermesapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/autoreply"
)

const (
	// maxAfter bounds what a server may ask us to wait.
	maxAfter = time.Hour
	// maxCode is how long an error's code may be to be repeated, in bytes.
	maxCode = 64
)

// transportFailure says why there is no response.
func transportFailure(err error) error {
	// The wrapper would repeat the address.
	if wrapper, ok := errors.AsType[*url.Error](err); ok {
		err = wrapper.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return autoreply.Failf(autoreply.ReasonTimeout, true, "%w", err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("asking the Hermes API server: %w", err)
	}
	return autoreply.Failf(autoreply.ReasonUnavailable, true, "%w", err)
}

// upstreamError is the body of an error (section 2.3).
type upstreamError struct {
	Error struct {
		Code   code          `json:"code"`
		Hermes hermesOutcome `json:"hermes"`
	} `json:"error"`
}

// statusFailure says what a status other than 200 means (section 2.3).
func statusFailure(r *response, now time.Time) error {
	var body upstreamError
	// What cannot be understood has no code, and the status alone decides.
	_ = json.Unmarshal(r.body, &body, jsontext.AllowInvalidUTF8(true))
	cause := fmt.Sprintf("status %d%s", r.status, body.Error.Code.suffix())
	switch {
	case r.status == http.StatusBadGateway && (body.Error.Hermes.Partial || isTrue(r.header, "X-Hermes-Partial")):
		return autoreply.Failf(autoreply.ReasonCutOff, true, "%s", cause)
	case r.status == http.StatusRequestTimeout, r.status == http.StatusTooEarly,
		r.status == http.StatusTooManyRequests, r.status >= http.StatusInternalServerError:
		failure := autoreply.Failf(autoreply.ReasonUnavailable, true, "%s", cause)
		failure.After = retryAfter(r.header, now)
		return failure
	}
	return autoreply.Failf(autoreply.ReasonRefused, false, "%s", cause)
}

// retryAfter is how long the server wants to be left alone, 0 if it does not
// say.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxAfter)
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxAfter)
}

// isTrue reports whether a header says so.
func isTrue(header http.Header, name string) bool {
	return strings.EqualFold(strings.TrimSpace(header.Get(name)), "true")
}

// code is the machine's name of an error. Whatever is not a plain name, and so
// might repeat what was sent, is dropped.
type code string

// UnmarshalJSON never fails: a code may be null or a number.
func (c *code) UnmarshalJSON(value []byte) error {
	var name string
	if json.Unmarshal(value, &name) != nil || len(name) > maxCode {
		return nil
	}
	isOther := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }
	if !strings.ContainsFunc(name, isOther) {
		*c = code(name)
	}
	return nil
}

// suffix is the code as the end of a sentence.
func (c code) suffix() string {
	if c == "" {
		return ""
	}
	return ", " + string(c)
}
