package account_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/account/accounttest"
)

const (
	host     = "localhost:8640"
	origin   = "http://localhost:8640"
	password = "correct horse"
	kind     = "test-web"
)

// clock is a clock that the test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// cheap is a cost that lets tests hash many passwords.
func cheap() account.Cost { return account.Cost{Memory: 8, Passes: 1} }

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

// upstream is an upstream that answers what the test says.
type upstream struct {
	status   func(context.Context) (account.UpstreamStatus, error)
	profiles func(context.Context) ([]account.Profile, error)
}

func (u *upstream) Status(ctx context.Context) (account.UpstreamStatus, error) { return u.status(ctx) }

func (u *upstream) ListProfiles(ctx context.Context) ([]account.Profile, error) {
	return u.profiles(ctx)
}

// readyUpstream answers at once.
func readyUpstream() *upstream {
	return &upstream{
		status: func(context.Context) (account.UpstreamStatus, error) {
			return account.UpstreamStatus{State: "ready", Version: "1.2", GatewayRunning: true, GatewayState: "idle"}, nil
		},
		profiles: func(context.Context) ([]account.Profile, error) { return []account.Profile{{Name: "default"}}, nil },
	}
}

// fixture is a service with its guard and routes over a store in memory.
type fixture struct {
	*testing.T
	clock     *clock
	store     account.Store
	service   *account.Service
	guard     *account.Guard
	endpoints *account.Endpoints
	handler   http.Handler
	log       *lockedBuffer
	changes   chan account.Change
	settings  settings
}

type settings struct {
	service   account.Options
	guard     account.GuardOptions
	endpoints account.EndpointOptions
	routes    []account.Route
}

func newFixture(t *testing.T, change ...func(*settings)) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: newClock(), log: new(lockedBuffer), changes: make(chan account.Change, 100)}
	logger := slog.New(slog.NewTextHandler(f.log, nil))
	s := settings{
		service: account.Options{
			Store: accounttest.NewStore(), Now: f.clock.now, Cost: cheap(), Logger: logger,
			Changed: func(c account.Change) { f.changes <- c },
		},
		guard: account.GuardOptions{
			Secret: bytes.Repeat([]byte{1}, 32), Port: 8640, AllowedHosts: []string{"chat.example"},
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Now: f.clock.now, Logger: logger,
		},
		endpoints: account.EndpointOptions{ServerKind: kind, Upstream: readyUpstream(), Logger: logger},
	}
	for _, c := range change {
		c(&s)
	}
	f.settings, f.store = s, s.service.Store
	f.start()
	return f
}

// start makes everything anew over the store, as a restart does.
func (f *fixture) start() {
	f.Helper()
	s := f.settings
	f.service = account.New(s.service)
	s.guard.Service = f.service
	var err error
	if f.guard, err = account.NewGuard(s.guard); err != nil {
		f.Fatal(err)
	}
	s.endpoints.Service, s.endpoints.Guard = f.service, f.guard
	f.endpoints = account.NewEndpoints(s.endpoints)
	f.Cleanup(f.endpoints.Close)
	f.handler = f.guard.Handler(append(f.endpoints.Routes(), s.routes...)...)
}

// answer is what came back.
type answer struct {
	*httptest.ResponseRecorder
	json map[string]any
}

func (a answer) want(t *testing.T, status int, code account.Code) {
	t.Helper()
	if a.Code != status {
		t.Errorf("status %d, want %d: %s", a.Code, status, a.Body)
	}
	if code == "" {
		return
	}
	text, ok := a.json["error"].(string)
	if a.json["code"] != string(code) || !ok || text == "" || len(a.json) != 2 {
		t.Errorf("body %s, want code %q", a.Body, code)
	}
	if got := a.Header().Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
}

// client keeps cookies and its token as a browser does.
type client struct {
	f       *fixture
	cookies map[string]string
	csrf    string
	peer    string
}

func (f *fixture) client() *client {
	return &client{f: f, cookies: make(map[string]string), peer: "192.0.2.1:1000"}
}

// request returns a request of the client's with all that a page would send.
func (c *client) request(method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(c.f.Context(), method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = host, c.peer
	for name, value := range c.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	if method != http.MethodGet && method != http.MethodHead {
		r.Header.Set("Origin", origin)
		r.Header.Set(account.CSRFHeader, c.csrf)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// send sends a request and keeps what the answer sets.
func (c *client) send(r *http.Request) answer {
	c.f.Helper()
	rec := httptest.NewRecorder()
	c.f.handler.ServeHTTP(rec, r)
	a := answer{ResponseRecorder: rec}
	if rec.Body.Len() > 0 && strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(rec.Body.Bytes(), &a.json); err != nil {
			c.f.Errorf("%s %s answers no object: %v: %s", r.Method, r.URL.Path, err, rec.Body)
		}
	}
	for _, cookie := range rec.Result().Cookies() {
		c.cookies[cookie.Name] = cookie.Value
		if cookie.MaxAge < 0 {
			delete(c.cookies, cookie.Name)
		}
	}
	if token, ok := a.json["csrfToken"].(string); ok {
		c.csrf = token
	}
	return a
}

func (c *client) do(method, path, body string) answer {
	c.f.Helper()
	return c.send(c.request(method, path, body))
}

func (c *client) bootstrap() answer {
	c.f.Helper()
	a := c.do(http.MethodGet, "/api/app/bootstrap", "")
	a.want(c.f.T, http.StatusOK, "")
	return a
}

func (c *client) login(username, password string) answer {
	c.f.Helper()
	if c.csrf == "" {
		c.bootstrap()
	}
	return c.do(http.MethodPost, "/api/app/login", credentials(username, password))
}

func credentials(username, password string) string {
	return encode(map[string]string{"username": username, "password": password})
}

func encode(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(body)
}

// add makes an account.
func (f *fixture) add(name string, role account.Role, mustChange bool) account.User {
	f.Helper()
	user, err := f.service.Add(f.Context(), account.NewUser{Username: name, Password: password, Role: role, MustChangePassword: mustChange})
	if err != nil {
		f.Fatal(err)
	}
	return user
}

// signedIn returns a client of a new administrator.
func (f *fixture) signedIn(name string) *client {
	f.Helper()
	f.add(name, account.RoleAdmin, false)
	return f.loggedIn(name)
}

// loggedIn returns a client of an existing account.
func (f *fixture) loggedIn(name string) *client {
	f.Helper()
	c := f.client()
	c.login(name, password).want(f.T, http.StatusOK, "")
	return c
}

// isSignedIn reports whether the client's session lives.
func (c *client) isSignedIn() bool {
	c.f.Helper()
	return c.bootstrap().json["authenticated"] == true
}

// sample is a route that says who asks, for tests of the guard.
func sample(method, path string, access account.Access) account.Route {
	return account.Route{Method: method, Path: path, Access: access, Handle: func(w http.ResponseWriter, r *http.Request, user account.User) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		return account.WriteJSON(w, http.StatusOK, map[string]any{"user": user.Username, "size": len(body)})
	}}
}

func samples() []account.Route {
	return []account.Route{
		sample(http.MethodGet, "/api/app/things", account.SignedIn),
		sample(http.MethodPost, "/api/app/things", account.SignedIn),
		sample(http.MethodPost, "/api/app/admin/things", account.AdminOnly),
		sample(http.MethodGet, "/api/app/admin/things", account.AdminOnly),
	}
}

func withSamples(s *settings) { s.routes = append(s.routes, samples()...) }

// failingStore is a store that fails when it is told to.
type failingStore struct {
	account.Store

	fail func(method string) error
}

var errStore = errors.New("the disk is on fire")

func (s *failingStore) HasUsers(ctx context.Context) (bool, error) {
	if err := s.fail("HasUsers"); err != nil {
		return false, err
	}
	return s.Store.HasUsers(ctx)
}

func (s *failingStore) Session(ctx context.Context, hash account.SessionHash) (account.Session, account.Record, error) {
	if err := s.fail("Session"); err != nil {
		return account.Session{}, account.Record{}, err
	}
	return s.Store.Session(ctx, hash)
}

func (s *failingStore) UserByKey(ctx context.Context, key string) (account.Record, error) {
	if err := s.fail("UserByKey"); err != nil {
		return account.Record{}, err
	}
	return s.Store.UserByKey(ctx, key)
}

func (s *failingStore) AddSession(ctx context.Context, session account.Session, keep int) error {
	if err := s.fail("AddSession"); err != nil {
		return err
	}
	return s.Store.AddSession(ctx, session, keep)
}

func (s *failingStore) UpdateUser(ctx context.Context, user account.Record, version int64) error {
	if err := s.fail("UpdateUser"); err != nil {
		return err
	}
	return s.Store.UpdateUser(ctx, user, version)
}

// lateStore is a store whose answer, whether users exist, comes too late to be
// right: when all have asked.
type lateStore struct {
	account.Store

	asking *sync.WaitGroup
}

func (s *lateStore) HasUsers(ctx context.Context) (bool, error) {
	has, err := s.Store.HasUsers(ctx)
	s.asking.Done()
	s.asking.Wait()
	return has, err
}

func numbered(name string, n int) string { return fmt.Sprintf("%s%d", name, n) }
