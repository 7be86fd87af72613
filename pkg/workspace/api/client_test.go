package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/account"
)

// client is a signed-in browser or phone.
type client struct {
	*fixture

	http *http.Client
	csrf string
}

// anonymous returns a client with a token and without a session.
func (f *fixture) anonymous() *client {
	f.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	c := &client{fixture: f, http: &http.Client{Jar: jar, Transport: f.server.Client().Transport}}
	c.get("/bootstrap").want(http.StatusOK)
	return c
}

// as returns a client of the user.
func (f *fixture) as(name string) *client {
	f.Helper()
	c := f.anonymous()
	c.post("/login", obj{"username": name, "password": password}).want(http.StatusOK)
	return c
}

// answer is what came back.
type answer struct {
	testing.TB

	what   string
	status int
	header http.Header
	body   []byte
	json   obj
}

// want fails the test unless the answer has the status, and the code if one is
// given.
func (a answer) want(status int, code ...string) answer {
	a.Helper()
	if a.status != status || len(code) > 0 && a.json["code"] != code[0] {
		a.Errorf("%s answers %d %.400s, want %d %v", a.what, a.status, a.body, status, code)
	}
	if status >= 400 && (a.json["error"] == "" || a.json["error"] == nil || len(a.json) != 2) {
		a.Errorf("%s answers %s, which is no refusal", a.what, a.body)
	}
	return a
}

// at returns what stands under a path of names and places.
func (a answer) at(path ...string) any {
	a.Helper()
	var v any = a.json
	for _, part := range path {
		switch in := v.(type) {
		case obj:
			v = in[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(in) {
				a.Fatalf("%s answers %s, which has no %v", a.what, a.body, path)
			}
			v = in[i]
		default:
			a.Fatalf("%s answers %s, which has no %v", a.what, a.body, path)
		}
	}
	return v
}

func (a answer) str(path ...string) string {
	a.Helper()
	s, ok := a.at(path...).(string)
	if !ok {
		a.Fatalf("%s answers %s, which has no text at %v", a.what, a.body, path)
	}
	return s
}

func (a answer) num(path ...string) int64 {
	a.Helper()
	n, ok := a.at(path...).(json.Number)
	i, err := n.Int64()
	if !ok || err != nil {
		a.Fatalf("%s answers %s, which has no number at %v", a.what, a.body, path)
	}
	return i
}

func (a answer) list(path ...string) []any {
	a.Helper()
	list, ok := a.at(path...).([]any)
	if !ok {
		a.Fatalf("%s answers %s, which has no list at %v", a.what, a.body, path)
	}
	return list
}

// request returns a request as a page would send it.
func (c *client) request(method, path string, body io.Reader) *http.Request {
	c.Helper()
	if !strings.HasPrefix(path, "//") {
		path = "/api/app" + path
	} else {
		path = path[1:]
	}
	r, err := http.NewRequestWithContext(c.Context(), method, c.server.URL+path, body)
	if err != nil {
		c.Fatal(err)
	}
	if method != http.MethodGet && method != http.MethodHead {
		r.Header.Set("Origin", c.server.URL)
		r.Header.Set(account.CSRFHeader, c.csrf)
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// try sends a request and holds its answer to the description. It may be called by
// any goroutine.
func (c *client) try(r *http.Request) (answer, error) {
	c.Helper()
	a, _, err := c.timed(r)
	return a, err
}

// timed is try, and returns when the answer came.
func (c *client) timed(r *http.Request) (a answer, came time.Time, err error) {
	c.Helper()
	response, err := c.http.Do(r)
	if err != nil {
		return answer{}, came, err
	}
	came = time.Now()
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	a = answer{TB: c.TB, what: r.Method + " " + r.URL.RequestURI(), status: response.StatusCode, header: response.Header}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return a, came, err
	}
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/json") && r.Method != http.MethodHead {
		decoder := json.NewDecoder(bytes.NewReader(a.body))
		decoder.UseNumber()
		if err := decoder.Decode(&a.json); err != nil {
			return a, came, fmt.Errorf("%s answers no object: %w: %.200s", a.what, err, a.body)
		}
	}
	return a, came, c.schema.check(r, a)
}

func (c *client) send(r *http.Request) answer {
	c.Helper()
	a, err := c.try(r)
	if err != nil {
		c.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	if token, ok := a.json["csrfToken"].(string); ok {
		c.csrf = token
	}
	return a
}

func (c *client) do(method, path string, body any) answer {
	c.Helper()
	return c.send(c.request(method, path, encoded(c.TB, body)))
}

// encoded returns a body: a text as it is, anything else as JSON.
func encoded(t testing.TB, body any) io.Reader {
	t.Helper()
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(b)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(text)
}

func (c *client) get(path string) answer {
	c.Helper()
	return c.do(http.MethodGet, path, nil)
}

func (c *client) post(path string, body any) answer {
	c.Helper()
	return c.do(http.MethodPost, path, body)
}

func (c *client) put(path string, body any) answer {
	c.Helper()
	return c.do(http.MethodPut, path, body)
}

func (c *client) patch(path string, body any) answer {
	c.Helper()
	return c.do(http.MethodPatch, path, body)
}

func (c *client) delete(path string) answer {
	c.Helper()
	return c.do(http.MethodDelete, path, nil)
}
