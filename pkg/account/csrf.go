package account

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// CSRFHeader is the header in which a write repeats the token.
	CSRFHeader = "X-CSRF-Token"
	// CSRFLife is how long a token serves after the last bootstrap (section 1.4).
	CSRFLife = 8 * time.Hour
	// csrfSize is the length of a token in bytes.
	csrfSize = 24
	// maxCSRFHeader bounds the header, in characters.
	maxCSRFHeader = 256
)

// signer makes and checks the values of CSRF cookies: a random token, a dot, and
// its HMAC-SHA256. Only this server can make one, so that another site, or a
// neighbour that may set cookies here, cannot choose the token.
type signer struct{ secret []byte }

func (s signer) sign(token string) string {
	mac := hmac.New(sha256.New, s.secret)
	_, _ = mac.Write([]byte("csrf\x00" + token)) // a hash takes everything
	return token + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// verify returns the token of a value that this server made.
func (s signer) verify(value string) (string, bool) {
	token, _, found := strings.Cut(value, ".")
	if !found || !isEqual(value, s.sign(token)) {
		return "", false
	}
	return token, true
}

func newCSRFToken() string { return base64.RawURLEncoding.EncodeToString(randomBytes(csrfSize)) }

// tokenOf returns the token in the request's cookies. A cookie of that name that
// this server did not make is passed over.
func (s signer) tokenOf(r *http.Request) (string, bool) {
	for _, cookie := range r.CookiesNamed(CSRFCookie) {
		if token, ok := s.verify(cookie.Value); ok {
			return token, true
		}
	}
	return "", false
}

// check refuses a request whose header does not repeat the token of its cookie.
func (s signer) check(r *http.Request) error {
	headers := r.Header.Values(CSRFHeader)
	if len(headers) != 1 || utf8.RuneCountInString(headers[0]) > maxCSRFHeader {
		return errorf(CodeInvalidCSRF, "the request has no token, several, or one that is too long")
	}
	token, ok := s.tokenOf(r)
	if !ok || !isEqual(token, headers[0]) {
		return errorf(CodeInvalidCSRF, "the token in the header is not that of the cookie")
	}
	return nil
}

func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
