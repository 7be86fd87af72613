package account_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/account"
)

// Ensures the order of the checks (section 1.4): a request that would fail at
// every step fails at the first, and at the next one once that is mended.
func TestGuard_Order(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	f.add("root", account.RoleAdmin, false)
	f.add("due", account.RoleUser, true)
	f.add("ann", account.RoleUser, false)
	due, ann, root := f.loggedIn("due"), f.loggedIn("ann"), f.loggedIn("root")
	nobody := f.client()
	nobody.bootstrap()

	for _, test := range []struct {
		step   string
		by     *client
		change func(*http.Request)
		body   string
		status int
		code   account.Code
	}{
		{"1 host", nobody, func(r *http.Request) { r.Host = "evil.example"; r.Header.Del("Origin") }, "{", 421, account.CodeInvalidHost},
		{"2 origin", nobody, func(r *http.Request) {
			r.Header.Set("Origin", "http://evil.example")
			r.Header.Del(account.CSRFHeader)
		}, "{", 403, account.CodeInvalidOrigin},
		{"2 token", nobody, func(r *http.Request) { r.Header.Set(account.CSRFHeader, "x") }, "{", 403, account.CodeInvalidCSRF},
		{"3 body", nobody, nil, "{", 400, account.CodeInvalidJSON},
		{"3 size", nobody, nil, `"` + strings.Repeat("x", account.MaxBody) + `"`, 413, account.CodeInvalidJSON},
		{"4 session", nobody, nil, "{}", 401, account.CodeUnauthenticated},
		{"4 password change", due, nil, "{}", 428, account.CodePasswordDue},
		{"5 role", ann, nil, "{}", 403, account.CodeAdminRequired},
		{"6 route", root, nil, "{}", 200, ""},
	} {
		r := test.by.request(http.MethodPost, "/api/app/admin/things", test.body)
		if test.change != nil {
			test.change(r)
		}
		t.Log(test.step)
		test.by.send(r).want(t, test.status, test.code)
	}
}

// Ensures which hosts are this server: loopback and private addresses with its
// port, 80, 443 or none, and the allow list (section 1.4, step 1).
func TestGuard_Host(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) {
		s.guard.AllowedHosts = []string{"Chat.Example.", "only.example:8443", "203.0.113.9", "[2001:db8::1]"}
	})
	for name, want := range map[string]int{
		"localhost": 200, "localhost:8640": 200, "LOCALHOST:80": 200, "localhost.:443": 200,
		"127.0.0.1:8640": 200, "127.9.9.9": 200, "[::1]:8640": 200, "[::ffff:127.0.0.1]": 200,
		"10.1.2.3:8640": 200, "172.16.0.1": 200, "192.168.1.2:8640": 200, "[fd00::1]:8640": 200,
		"chat.example": 200, "chat.example:9999": 200, "CHAT.example.": 200, "only.example:8443": 200,
		"203.0.113.9:8640": 200, "[2001:db8::1]:8640": 200, "[2001:DB8:0::1]": 200,

		"localhost:8641": 421, "127.0.0.1:1": 421, "only.example": 421, "only.example:443": 421,
		"": 421, "evil.example": 421, "localhost.evil.example": 421, "sub.chat.example": 421, "chat.example.evil": 421,
		"203.0.113.10": 421, "172.32.0.1": 421, "[2001:db8::2]": 421, "0177.0.0.1": 421, "2130706433": 421, "127.1": 421,
		"0.0.0.0:8640": 421, "169.254.169.254": 421, "[fe80::1]": 421, "[::1%25lo]": 421, "[::1": 421, "::1": 421,
		"localhost:": 421, "localhost:0": 421, "localhost:99999": 421, "localhost:+80": 421, "localhost:80:80": 421, "localhost..": 421,
		"user@localhost": 421, "localhost/": 421, "local host": 421, "localhost\t": 421, "localhost,evil.example": 421,
		"ｌocalhost": 421, "localhost\x00": 421, "[127.0.0.1]": 421, "[::1]x": 421, ".": 421, ":8640": 421,
		strings.Repeat("a", 5000): 421,
	} {
		r := f.client().request(http.MethodGet, "/api/app/bootstrap", "")
		r.Host = name
		if a := f.client().send(r); a.Code != want {
			t.Errorf("host %.60q gets %d, want %d: %s", name, a.Code, want, a.Body)
		} else if want != 200 {
			a.want(t, want, account.CodeInvalidHost)
		}
	}
}

// Ensures which origins may write (section 1.4, step 2): the same host and port,
// https in front of plain HTTP, and the allow list.
func TestGuard_Origin(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	f.add("root", account.RoleAdmin, false)
	for _, test := range []struct {
		host, proto string
		origins     []string
		isAccepted  bool
	}{
		{"localhost:8640", "", []string{"http://localhost:8640"}, true},
		{"LocalHost:8640", "", []string{"http://localhost:8640"}, true},
		{"localhost:8640", "", []string{"https://localhost:8640"}, true},
		{"localhost", "", []string{"http://localhost:80"}, true},
		{"localhost", "", []string{"https://localhost"}, true},
		{"localhost:443", "", []string{"https://localhost"}, true},
		{"[::1]:8640", "", []string{"http://[::1]:8640"}, true},
		{"chat.example", "https", []string{"https://chat.example"}, true},
		{"localhost:8640", "", []string{"https://chat.example:8443"}, true},
		{"localhost:8640", "", []string{"http://chat.example"}, true},

		{"localhost:8640", "", nil, false},
		{"localhost:8640", "", []string{"null"}, false},
		{"localhost:8640", "", []string{""}, false},
		{"localhost:8640", "", []string{"http://localhost"}, false},
		{"localhost:8640", "", []string{"http://localhost:8641"}, false},
		{"localhost:8640", "", []string{"http://127.0.0.1:8640"}, false},
		{"localhost:8640", "", []string{"http://evil.example"}, false},
		{"localhost:8640", "", []string{"http://localhost:8640.evil.example"}, false},
		{"localhost:8640", "", []string{"http://localhost:8640/"}, false},
		{"localhost:8640", "", []string{"http://localhost:8640?x"}, false},
		{"localhost:8640", "", []string{"http://localhost:8640#x"}, false},
		{"localhost:8640", "", []string{"http://user@localhost:8640"}, false},
		{"localhost:8640", "", []string{"ftp://localhost:8640"}, false},
		{"localhost:8640", "", []string{"localhost:8640"}, false},
		{"localhost:8640", "", []string{"//localhost:8640"}, false},
		{"localhost:8640", "", []string{"http:localhost:8640"}, false},
		{"localhost:8640", "", []string{" http://localhost:8640"}, false},
		{"localhost:8640", "", []string{"http://localhost:8640, http://evil.example"}, false},
		{"localhost:8640", "", []string{"http://localhost:8640", "http://localhost:8640"}, false},
		{"localhost:8640", "", []string{"http://chat.example.evil"}, false},
		// With TLS, a page that was not protected by it is another origin.
		{"localhost:8640", "https", []string{"http://localhost:8640"}, false},
		{"localhost:80", "", []string{"https://localhost"}, false},
	} {
		c := f.client()
		c.peer = "127.0.0.1:1"
		c.login("root", password).want(t, 200, "")
		r := c.request(http.MethodPost, "/api/app/things", "{}")
		r.Host = test.host
		r.Header["Origin"] = test.origins
		if test.proto != "" {
			r.Header.Set("X-Forwarded-Proto", test.proto)
		}
		status, code := 200, account.Code("")
		if !test.isAccepted {
			status, code = 403, account.CodeInvalidOrigin
		}
		t.Logf("%s %q", test.host, test.origins)
		c.send(r).want(t, status, code)
	}
}

// Ensures that a write needs the token of its own cookie, signed by this server,
// whoever writes to whatever path (section 1.4, step 2; section 1.5).
func TestGuard_CSRF(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	c := f.signedIn("root")
	other := f.client()
	other.bootstrap()
	cookie, token := c.cookies[account.CSRFCookie], c.csrf
	signature := strings.SplitN(cookie, ".", 2)[1]

	for name, test := range map[string]struct {
		headers []string
		cookies []string
	}{
		"no header":                 {nil, []string{cookie}},
		"an empty header":           {[]string{""}, []string{cookie}},
		"two headers":               {[]string{token, token}, []string{cookie}},
		"another client's token":    {[]string{other.csrf}, []string{cookie}},
		"no cookie":                 {[]string{token}, nil},
		"an unsigned cookie":        {[]string{"mine"}, []string{"mine"}},
		"an empty signature":        {[]string{"mine"}, []string{"mine."}},
		"a foreign signature":       {[]string{"mine"}, []string{"mine." + signature}},
		"an empty token":            {[]string{""}, []string{"." + signature}},
		"a cut signature":           {[]string{token}, []string{cookie[:len(cookie)-1]}},
		"a longer signature":        {[]string{token}, []string{cookie + "A"}},
		"the whole value as token":  {[]string{cookie}, []string{cookie}},
		"a very long header":        {[]string{strings.Repeat("a", 257)}, []string{cookie}},
		"a tossed cookie of others": {[]string{"mine"}, []string{"mine.mine", cookie}},
	} {
		for _, path := range []string{"/api/app/things", "/api/app/login", "/api/app/setup", "/api/app/logout", "/api/app/unknown", "/api/app/", "/api/app"} {
			r := c.request(http.MethodPost, path, "{}")
			r.Header.Del("Cookie")
			r.AddCookie(&http.Cookie{Name: account.SessionCookie, Value: c.cookies[account.SessionCookie]})
			for _, value := range test.cookies {
				r.AddCookie(&http.Cookie{Name: account.CSRFCookie, Value: value})
			}
			r.Header.Del(account.CSRFHeader)
			for _, value := range test.headers {
				r.Header.Add(account.CSRFHeader, value)
			}
			t.Log(name, path)
			f.client().send(r).want(t, 403, account.CodeInvalidCSRF)
		}
	}

	tossed := c.request(http.MethodPost, "/api/app/things", "{}")
	tossed.Header.Set("Cookie", account.CSRFCookie+"=mine.mine; "+tossed.Header.Get("Cookie"))
	c.send(tossed).want(t, 200, "")
}

// Ensures that reading needs neither origin nor token, and that no other method
// is taken for reading (section 1.4, step 2).
func TestGuard_Methods(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	c := f.signedIn("root")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		c.do(method, "/api/app/things", "").want(t, 200, "")
	}
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodTrace, "PROPFIND", "get"} {
		c.send(requestWithoutToken(c, method)).want(t, 403, account.CodeInvalidOrigin)
		c.do(method, "/api/app/things", "").want(t, 405, account.CodeMethodNotAllowed)
	}
	a := c.do(http.MethodOptions, "/api/app/things", "")
	a.want(t, 405, account.CodeMethodNotAllowed)
	if allow := a.Header().Get("Allow"); allow != "GET, HEAD, POST" {
		t.Errorf("Allow: %s", allow)
	}
}

func requestWithoutToken(c *client, method string) *http.Request {
	r := c.request(method, "/api/app/things", "")
	r.Header.Del("Origin")
	r.Header.Del(account.CSRFHeader)
	return r
}

// Ensures that a body is one JSON value within the limit of its route (section
// 1.4, step 3).
func TestGuard_Body(t *testing.T) {
	t.Parallel()
	large := sample(http.MethodPost, "/api/app/agents", account.SignedIn)
	large.Limit = account.MaxAvatarBody
	raw := sample(http.MethodPost, "/api/app/uploads", account.SignedIn)
	raw.RawBody = true
	f := newFixture(t, withSamples, func(s *settings) { s.routes = append(s.routes, large, raw) })
	c := f.signedIn("root")
	value := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }

	for _, test := range []struct {
		path, kind, body string
		status           int
	}{
		{"/api/app/things", "application/json", value(account.MaxBody), 200},
		{"/api/app/things", "application/json", value(account.MaxBody + 1), 413},
		{"/api/app/agents", "application/json", value(account.MaxAvatarBody), 200},
		{"/api/app/agents", "application/json", value(account.MaxAvatarBody + 1), 413},
		{"/api/app/things", "", "", 200},
		{"/api/app/things", "", "{}", 200},
		{"/api/app/things", "application/json; charset=UTF-8", "{}", 200},
		{"/api/app/things", "text/plain", "", 200},
		{"/api/app/things", "text/plain", "{}", 400},
		{"/api/app/things", "application/json; charset=latin1", "{}", 400},
		{"/api/app/things", "application/json;;", "{}", 400},
		{"/api/app/things", "application/json", "{} {}", 400},
		{"/api/app/things", "application/json", `{"a":1,"a":2}`, 400},
		{"/api/app/things", "application/json", "{\"a\":\"\xff\"}", 400},
		{"/api/app/things", "application/json", strings.Repeat("[", 20000), 400},
		{"/api/app/uploads", "multipart/form-data", "--x", 200},
		{"/api/app/uploads", "multipart/form-data", strings.Repeat("x", 3<<20), 200},
	} {
		r := c.request(http.MethodPost, test.path, test.body)
		r.Header.Set("Content-Type", test.kind)
		code := account.Code("")
		if test.status != 200 {
			code = account.CodeInvalidJSON
		}
		t.Logf("%s %s %.20s", test.path, test.kind, test.body)
		a := c.send(r)
		a.want(t, test.status, code)
		if test.status == 200 && a.json["size"] != float64(len(test.body)) {
			t.Errorf("the handler read %v bytes of %d", a.json["size"], len(test.body))
		}

		unknown := c.request(http.MethodPost, test.path, test.body)
		unknown.Header.Set("Content-Type", test.kind)
		unknown.ContentLength = -1 // chunked
		c.send(unknown).want(t, test.status, code)
	}

	cut := c.request(http.MethodPost, "/api/app/things", "")
	cut.Body, cut.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("{"), failingReader{})), -1
	c.send(cut).want(t, 400, account.CodeInvalidJSON)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Ensures that unknown paths are told in the shape of all errors, without a
// redirect to another path (section 1.8).
func TestGuard_UnknownPaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	c := f.signedIn("root")
	for _, path := range []string{
		"/", "/api", "/api/", "/api/app", "/api/app/", "/api/app/nothing", "/api/app/things/", "/api/app//things",
		"/api/app/x/../things", "/api/app/x/%2e%2e/things", "//api/app/things", "/API/app/things", "/api/app/things/1",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions} {
			t.Log(method, path)
			r := c.request(method, "/", "")
			target, err := url.ParseRequestURI(path)
			if err != nil {
				t.Fatal(err)
			}
			r.URL = target
			c.send(r).want(t, 404, account.CodeNotFound)
		}
	}
	star := c.request(http.MethodOptions, "/", "")
	star.RequestURI, star.URL.Path = "*", "*"
	c.send(star).want(t, 404, account.CodeNotFound)
}

// Ensures the headers of every answer (section 9.7), and that no cache keeps JSON
// (section 3).
func TestGuard_Headers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	for _, path := range []string{"/api/app/bootstrap", "/api/app/things", "/nothing", "/api/status"} {
		r := f.client().request(http.MethodGet, path, "")
		h := f.client().send(r).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
			"X-Frame-Options":         "DENY", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-store", "Strict-Transport-Security": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		r = f.client().request(http.MethodGet, path, "")
		r.TLS = new(tls.ConnectionState)
		if got := f.client().send(r).Header().Get("Strict-Transport-Security"); got != "max-age=31536000" {
			t.Errorf("%s: with TLS, Strict-Transport-Security is %q", path, got)
		}
	}
}

// Ensures that faults leak nothing to the client and everything to the log
// (section 1.8), and that a half answer is not taken for a whole one.
func TestGuard_Faults(t *testing.T) {
	t.Parallel()
	route := func(path string, handle account.Handler) account.Route {
		return account.Route{Method: http.MethodGet, Path: path, Access: account.Anyone, Handle: handle}
	}
	f := newFixture(t, func(s *settings) {
		s.routes = []account.Route{
			route("/fault", func(http.ResponseWriter, *http.Request, account.User) error { return errors.New("secret detail") }),
			route("/panic", func(http.ResponseWriter, *http.Request, account.User) error { panic("secret panic") }),
			route("/refusal", func(http.ResponseWriter, *http.Request, account.User) error {
				return &account.Refusal{Status: 409, Code: "duplicate_agent_name", Text: "名称已存在", Header: map[string]string{"X-A": "b"}}
			}),
			route("/unencodable", func(w http.ResponseWriter, _ *http.Request, _ account.User) error {
				return account.WriteJSON(w, 200, func() {})
			}),
			route("/garbled", func(http.ResponseWriter, *http.Request, account.User) error {
				return &account.Refusal{Status: 400, Code: account.CodeInvalidRequest, Text: "名\xff: 必填"}
			}),
			route("/file", func(w http.ResponseWriter, _ *http.Request, _ account.User) error {
				_, err := io.Copy(w, strings.NewReader("bytes"))
				return err
			}),
			route("/half", func(w http.ResponseWriter, _ *http.Request, _ account.User) error {
				_, _ = io.WriteString(w, "half")
				return errors.New("the other half is lost")
			}),
			route("/flush", func(w http.ResponseWriter, _ *http.Request, _ account.User) error {
				w.WriteHeader(http.StatusAccepted)
				return http.NewResponseController(w).Flush()
			}),
		}
	})
	c := f.client()
	for _, path := range []string{"/fault", "/panic", "/unencodable"} {
		a := c.do(http.MethodGet, path, "")
		a.want(t, 500, account.CodeInternal)
		if a.json["error"] != "Internal server error" {
			t.Errorf("%s says %s", path, a.Body)
		}
	}
	for _, detail := range []string{"secret detail", "secret panic", "guard_test.go"} {
		if !strings.Contains(f.log.String(), detail) {
			t.Errorf("the log does not have %q", detail)
		}
	}
	a := c.do(http.MethodGet, "/refusal", "")
	a.want(t, 409, "duplicate_agent_name")
	if a.json["error"] != "名称已存在" || a.Header().Get("X-A") != "b" {
		t.Errorf("the refusal is %s with %v", a.Body, a.Header())
	}
	c.do(http.MethodGet, "/flush", "").want(t, 202, "")
	c.do(http.MethodGet, "/garbled", "").want(t, 400, account.CodeInvalidRequest)
	if a := c.do(http.MethodGet, "/file", ""); a.Body.String() != "bytes" || !strings.Contains(f.log.String(), "route=/file status=200") {
		t.Errorf("the file is %s, the log %s", a.Body, f.log)
	}
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("the half answer ends with %v", err)
			}
		}()
		f.handler.ServeHTTP(httptest.NewRecorder(), c.request(http.MethodGet, "/half", ""))
	}()
}

// Ensures that the log tells no token, no name, no password and no path that a
// client made up.
func TestGuard_LogKeepsSecrets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	c := f.loggedIn("root")
	c.do(http.MethodGet, "/api/app/secret-path", "")
	c.do("BREW", "/api/app/login", "")
	f.client().login("hidden-name", "hidden-password")
	for _, secret := range []string{c.csrf, c.cookies[account.SessionCookie], "hidden-name", "hidden-password", password, "secret-path", "BREW"} {
		if strings.Contains(f.log.String(), secret) {
			t.Errorf("the log has %q:\n%s", secret, f.log)
		}
	}
	if !strings.Contains(f.log.String(), "route=/api/app/login status=401 ip=192.0.2.1") {
		t.Errorf("the log lacks the failed login:\n%s", f.log)
	}
}

// Ensures that mistakes of the configuration are told at the start.
func TestNewGuard_Refuses(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]account.GuardOptions{
		"a short secret":     {Secret: make([]byte, 31)},
		"a URL as host":      {Secret: make([]byte, 32), AllowedHosts: []string{"https://chat.example"}},
		"a wildcard as host": {Secret: make([]byte, 32), AllowedHosts: []string{"*"}},
		"an empty host":      {Secret: make([]byte, 32), AllowedHosts: []string{""}},
	} {
		if _, err := account.NewGuard(opts); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Ensures that a route cannot be served in two ways.
func TestGuard_DoubledRoute(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	defer func() {
		if recover() == nil {
			t.Error("a doubled route was taken")
		}
	}()
	f.guard.Handler(append(samples(), samples()...)...)
}

// Ensures that every code has a status and a text that holds no English where a
// person reads it (section 1.8).
func TestErrors_Table(t *testing.T) {
	t.Parallel()
	for code, status := range account.Codes() {
		text := account.TextOf(code)
		if status < 400 || text == "" {
			t.Errorf("%s has status %d and text %q", code, status, text)
		}
		rec := httptest.NewRecorder()
		if got := account.WriteRefusal(rec, &account.Error{Code: code}); got.Status != status || rec.Code != status || !bytes.Contains(rec.Body.Bytes(), []byte(code)) {
			t.Errorf("%s is answered with %d %s", code, rec.Code, rec.Body)
		}
		isChinese := strings.ContainsFunc(text, func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff })
		if !isChinese && code != account.CodeInternal {
			t.Errorf("%s says %q", code, text)
		}
	}
}
