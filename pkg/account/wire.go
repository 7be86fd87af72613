package account

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/forwarded"
	"github.com/newos4/relay/pkg/jsonbody"
)

// hstsYear is how long browsers remember to use TLS alone.
const hstsYear = "max-age=31536000"

// contentPolicy lets pages load from this server alone (section 9.7).
const contentPolicy = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// SetSecurityHeaders sets the headers of every answer, a page's too (section 9.7).
// The scheme is the client's.
func SetSecurityHeaders(h http.Header, scheme string) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if scheme == forwarded.HTTPS {
		h.Set("Strict-Transport-Security", hstsYear)
	}
}

// WriteJSON answers with a value as JSON that no cache keeps (section 3).
func WriteJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error here is the client's, which has gone
	return nil
}

// refusalBody is the body of every refusal (section 1.8).
type refusalBody struct {
	Error string `json:"error"`
	Code  Code   `json:"code"`
}

// WriteRefusal answers with the refusal that err is, or with an internal error of
// which it tells nothing. It returns the refusal. It is for the few routes that
// stand outside a [Guard].
func WriteRefusal(w http.ResponseWriter, err error) *Refusal {
	refusal := refusalOf(err)
	for name, value := range refusal.Header {
		w.Header().Set(name, value)
	}
	// A text may hold what a client sent.
	text := strings.ToValidUTF8(refusal.Text, "\ufffd")
	if err := WriteJSON(w, refusal.Status, refusalBody{text, refusal.Code}); err != nil {
		panic(fmt.Sprintf("account: a refusal does not encode: %v", err)) // its members are valid text
	}
	return refusal
}

// Decode reads the body that the [Guard] has read into the struct that into points
// to: unknown members, and null for what is [jsonbody.Optional], are refused as
// [CodeInvalidRequest].
func Decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("reading the body again: %w", err)
	}
	return jsonbody.Decode(body, into)
}

// readBody reads a JSON body of at most limit bytes (section 1.4, step 3).
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, bodyTooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, bodyTooLarge()
	}
	if err != nil {
		return nil, errorf(CodeInvalidJSON, "the body ends too early")
	}
	if !isJSONType(r) && len(body) > 0 || !jsonbody.IsJSON(body) {
		return nil, errorf(CodeInvalidJSON, "the body is not JSON")
	}
	return body, nil
}

// isJSONType reports whether the body is declared as JSON in UTF-8, or not at all.
func isJSONType(r *http.Request) bool {
	declared := r.Header.Get("Content-Type")
	if declared == "" {
		return true
	}
	kind, params, err := mime.ParseMediaType(declared)
	charset := params["charset"]
	return err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
