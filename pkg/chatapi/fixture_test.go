package chatapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
)

// clock is a clock that the test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// fixture is an API over a real store on a clock of the test's own.
type fixture struct {
	*testing.T
	clock   *clock
	store   *storage.Store
	limiter *ratelimit.Limiter
	api     *chatapi.API
	log     *lockedBuffer

	settings settings
}

// lockedBuffer is a log that concurrent requests write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type settings struct {
	storage storage.Options
	api     chatapi.Options
	windows []ratelimit.Window
}

func newFixture(t *testing.T, change ...func(*settings)) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: &clock{t: time.Date(2026, 10, 23, 18, 0, 0, 123e6, time.UTC)}, log: new(lockedBuffer)}
	s := settings{
		storage: storage.Options{
			Root: t.TempDir(), Space: "newos4", Now: f.clock.now,
			Bounds: storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 200, MaxAge: 720 * time.Hour}},
		},
		api: chatapi.Options{
			Space:          "newos4",
			Limits:         chatapi.Limits{Text: 4000, Body: 32768, Threads: 500},
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			Now:            f.clock.now,
			Logger:         slog.New(slog.NewTextHandler(f.log, nil)),
		},
		windows: []ratelimit.Window{
			{Name: chatapi.WindowThread, Limit: 20, Span: 600 * time.Second},
			{Name: chatapi.WindowIP, Limit: 40, Span: 600 * time.Second},
			{Name: chatapi.WindowIPThreads, Limit: 100, Span: 24 * time.Hour},
		},
	}
	for _, c := range change {
		c(&s)
	}
	f.settings = s
	f.store = storage.Open(s.storage)
	t.Cleanup(func() { _ = f.store.Close() })
	f.limiter = ratelimit.New(f.clock.now, 1000, s.windows...)
	f.api = chatapi.New(s.api, f.store, f.limiter)
	return f
}

func token(n int) string { return fmt.Sprintf("%064x", n) }

func threadOf(n int) chat.ThreadID { return chat.Token(token(n)).Thread() }

// request is one request and what varies of it.
type request struct {
	method string
	path   string
	token  []string
	body   string
	header map[string]string
	peer   string

	forwarded []string
	types     []string // Content-Type headers
}

// answer is what came back.
type answer struct {
	*httptest.ResponseRecorder
	json map[string]any
}

func (f *fixture) do(r request) answer {
	f.Helper()
	req := httptest.NewRequestWithContext(f.Context(), r.method, "/", strings.NewReader(r.body))
	target, err := req.URL.Parse(r.path)
	if err != nil {
		f.Fatal(err)
	}
	req.URL = target
	req.Header["X-Chat-Token"] = r.token
	req.RemoteAddr = "192.0.2.1:1234"
	if r.peer != "" {
		req.RemoteAddr = r.peer
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if r.types != nil {
		req.Header["Content-Type"] = r.types
	}
	if r.forwarded != nil {
		req.Header["X-Forwarded-For"] = r.forwarded
	}
	rec := httptest.NewRecorder()
	f.api.ServeHTTP(rec, req)
	a := answer{ResponseRecorder: rec}
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &a.json); err != nil {
			f.Fatalf("%s %s answers no JSON: %v\n%s", r.method, r.path, err, rec.Body)
		}
	}
	return a
}

func (f *fixture) post(n int, text string) answer {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		f.Fatal(err)
	}
	return f.do(request{method: "POST", path: postPath, token: []string{token(n)}, body: string(body)})
}

// postFrom posts from a client of its own, so that only the thread's limit
// counts.
func (f *fixture) postFrom(n int, text, peer string) answer {
	return f.do(request{method: "POST", path: postPath, token: []string{token(n)}, body: `{"text":"` + text + `"}`, peer: peer})
}

func (f *fixture) poll(n int, query string) answer {
	return f.do(request{method: "GET", path: pollPath + query, token: []string{token(n)}})
}

func (a answer) want(t *testing.T, status int, code string) {
	t.Helper()
	if a.Code != status {
		t.Errorf("status %d, want %d: %s", a.Code, status, a.Body)
	}
	if code == "" {
		return
	}
	if a.json["code"] != code || a.json["success"] != false || a.json["error"] == "" {
		t.Errorf("body %s, want code %q", a.Body, code)
	}
}
