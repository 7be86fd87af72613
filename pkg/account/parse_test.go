package account

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Ensures that a digest is stored as the standard string of argon2id, with its
// version and cost, is read back, and that nothing else is (section 1.3).
func TestDigest(t *testing.T) {
	t.Parallel()
	h := newHasher(Cost{Memory: 8, Passes: 1})
	stored, err := h.hash(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Fatalf("the digest is %s, %v", stored, err)
	}
	if again, err := h.hash(t.Context(), "correct horse"); err != nil || again == stored {
		t.Errorf("two digests of one password are %s and %s, %v", stored, again, err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsE": false, "": false, "correct horse ": false, "correct horse\x00": false} {
		if got, err := h.matches(t.Context(), stored, password); got != want || err != nil {
			t.Errorf("%q matches: %v, %v", password, got, err)
		}
	}
	if got, err := h.matches(t.Context(), h.dummy, ""); got || err != nil {
		t.Errorf("the digest of nobody matches: %v, %v", got, err)
	}
	for _, wrong := range []string{
		"", "x", strings.Replace(stored, "v=19", "v=16", 1), strings.Replace(stored, "argon2id", "argon2i", 1),
		strings.Replace(stored, "m=8", "m=08", 1), strings.Replace(stored, "m=8", "m=4294967295", 1), strings.Replace(stored, "t=1", "t=0", 1),
		strings.Replace(stored, "t=1", "t=65", 1), strings.Replace(stored, "p=1", "p=4", 1), stored[:len(stored)-1], stored + "A", stored + " x",
		stored[:strings.LastIndexByte(stored, '$')], strings.ToUpper(stored), strings.Replace(stored, "m=8", "m=8.0", 1),
	} {
		if got, err := h.matches(t.Context(), wrong, "correct horse"); got || err == nil {
			t.Errorf("the digest %q is taken: %v, %v", wrong, got, err)
		}
	}
}

// Ensures that the real cost is at least what is wanted: 19 MiB, three passes.
func TestDefaultCost(t *testing.T) {
	t.Parallel()
	if c := DefaultCost(); c.Memory < 19*1024 || c.Passes < 3 {
		t.Errorf("the cost is %+v", c)
	}
}

// Ensures that the token of a CSRF cookie has 24 random bytes and an HMAC-SHA256
// of this server's secret (section 1.4).
func TestSigner(t *testing.T) {
	t.Parallel()
	own, other := signer{[]byte("own secret")}, signer{[]byte("other secret")}
	token := newCSRFToken()
	value := own.sign(token)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	mac, macErr := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(value, token+"."))
	if err != nil || macErr != nil || len(raw) != 24 || len(mac) != sha256.Size {
		t.Errorf("the value is %s", value)
	}
	if got, ok := own.verify(value); got != token || !ok {
		t.Errorf("the own value gives %q, %v", got, ok)
	}
	if got, ok := other.verify(value); ok {
		t.Errorf("another server takes %q", got)
	}
	if newCSRFToken() == token {
		t.Error("two tokens are the same")
	}
}

// Ensures that no value is taken for signed that was not.
func FuzzSigner(f *testing.F) {
	s := signer{[]byte("secret")}
	for _, seed := range []string{"", ".", "a", "a.", ".b", s.sign("a")[1:], s.sign("") + ".", "a.b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, ok := s.verify(value)
		if ok && s.sign(token) != value {
			t.Errorf("%q gives %q", value, token)
		}
	})
}

// Ensures that a host which is taken for one has nothing in it but a host, so that
// what is compared is what a browser would have connected to.
func FuzzParseHostPort(f *testing.F) {
	for _, seed := range []string{"localhost:8640", "[::1]:80", "::1", "a:b:c", "user@host", "[::1%25lo]", "[fe80::1%lo]:1", "xn--0.example", "LOCALHOST.", "127.1", "[", "]:1", "[]:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, ok := parseHostPort(s)
		if !ok {
			return
		}
		if host.name == "" || host.name != strings.ToLower(host.name) || strings.ContainsAny(host.name, "/@?#%[] \t\r\n\x00,") || host.port < 0 || host.port > 65535 {
			t.Errorf("%q is taken for %+v", s, host)
		}
		if host.isLocal() && host.name != "localhost" && !host.addr.IsValid() {
			t.Errorf("the name %q is taken for an address", s)
		}
	})
}

// Ensures that an origin is accepted only if it names the host of the request or an
// allowed one.
func FuzzCheckOrigin(f *testing.F) {
	h, err := newHosts(8640, []string{"chat.example"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"http://localhost:8640", "https://chat.example", "null", "http://localhost:8640@evil.example", "http://evil.example#localhost:8640", "HTTP://localhost:8640"} {
		f.Add(seed, "localhost:8640")
	}
	f.Fuzz(func(t *testing.T, origin, host string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Host = host
		r.Header["Origin"] = []string{origin}
		if h.checkOrigin(r, "http") != nil {
			return
		}
		_, rest, _ := strings.Cut(origin, "://")
		named, ok := parseHostPort(rest)
		wanted, wantedOK := parseHostPort(host)
		if !ok || named.name != "chat.example" && (!wantedOK || named.name != wanted.name) {
			t.Errorf("the origin %q is accepted for the host %q", origin, host)
		}
	})
}

// Ensures that no cookie header is taken for a session but one with a whole token.
func FuzzSessionTokenOf(f *testing.F) {
	f.Add("relay_session=" + string(newToken()))
	f.Add("relay_session=; relay_session=x")
	f.Add(`relay_session="` + string(newToken()) + `"`)
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header["Cookie"] = []string{header}
		token := sessionTokenOf(r)
		if _, ok := token.hash(); ok != (token != "") || !strings.Contains(header, string(token)) {
			t.Errorf("%q gives %q", header, token)
		}
	})
}
