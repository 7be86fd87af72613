package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	google "github.com/google/uuid"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/api"
	"github.com/newos4/relay/pkg/workspace/blob"
	"github.com/newos4/relay/pkg/workspace/store"
)

const password = "correct horse"

// obj is a JSON object.
type obj = map[string]any

// clock is a clock that the test moves. It begins at the system's time, because
// cookies end by that.
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

// upstreams are Hermes servers that do as the test says.
type upstreams struct {
	mu       sync.Mutex
	profiles map[workspace.NodeID]func(context.Context) ([]api.Profile, error)
	kind     string
	signIn   func(api.Target) error
	asked    int
	forgot   []workspace.NodeID
}

func newUpstreams() *upstreams {
	return &upstreams{
		profiles: map[workspace.NodeID]func(context.Context) ([]api.Profile, error){},
		signIn:   func(api.Target) error { return nil },
	}
}

func (u *upstreams) Status(context.Context, api.Target) (api.Status, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked++
	return api.Status{Kind: u.kind}, nil
}

func (u *upstreams) Profiles(ctx context.Context, t api.Target) ([]api.Profile, error) {
	u.mu.Lock()
	u.asked++
	ask, err := u.profiles[t.Node.ID], u.signIn(t)
	u.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if ask != nil {
		return ask(ctx)
	}
	return []api.Profile{{Name: "default", Title: "Default"}, {Name: "coder"}}, nil
}

func (u *upstreams) Forget(id workspace.NodeID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forgot = append(u.forgot, id)
}

func (u *upstreams) set(id workspace.NodeID, ask func(context.Context) ([]api.Profile, error)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.profiles[id] = ask
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

func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// fixture is a whole workspace that is served over HTTP from a directory of the
// test.
type fixture struct {
	testing.TB

	dir       string
	clock     *clock
	store     *store.Store
	files     *blob.Dir
	accounts  *account.Service
	upstreams *upstreams
	api       *api.API
	routes    []account.Route
	server    *httptest.Server
	log       *lockedBuffer
	schema    *schemas
	// held counts the reads of events that are being answered.
	held atomic.Int64
}

// newFixture serves a workspace with two users: ann, who administers it, and bob.
func newFixture(t testing.TB, change ...func(*api.Options)) *fixture {
	t.Helper()
	f := &fixture{
		TB: t, dir: filepath.Join(t.TempDir(), "workspace"), clock: &clock{t: time.Now()},
		upstreams: newUpstreams(), log: new(lockedBuffer),
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	f.store, err = store.Open(t.Context(), store.Options{Dir: f.dir, Now: f.clock.now})
	must(err)
	t.Cleanup(func() { _ = f.store.Close() })
	f.files, err = blob.Open(f.dir)
	must(err)
	t.Cleanup(func() { _ = f.files.Close() })
	logger := slog.New(slog.NewTextHandler(f.log, nil))
	opts := api.Options{
		Store: f.store, Files: f.files, Upstreams: f.upstreams, Voice: true, ShareVoiceKey: true,
		Quota: store.Quota{PerOwner: workspace.DefaultQuotaBytes}, Now: f.clock.now, Logger: logger,
	}
	for _, c := range change {
		c(&opts)
	}
	f.api = api.New(opts)
	t.Cleanup(f.api.Close)
	f.serve(logger)
	f.schema = newSchemas(t, f.api)
	f.add("ann", account.RoleAdmin)
	f.add("bob", account.RoleUser)
	return f
}

// serve puts the routes behind the guard and a listener of their own.
func (f *fixture) serve(logger *slog.Logger) {
	f.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it binds at once
	if err != nil {
		f.Fatal(err)
	}
	f.accounts = account.New(account.Options{
		Store: f.store.Accounts(), Now: f.clock.now, Cost: account.Cost{Memory: 8, Passes: 1}, Logger: logger,
	})
	guard, err := account.NewGuard(account.GuardOptions{
		Service: f.accounts, Secret: bytes.Repeat([]byte{1}, 32), Port: listener.Addr().(*net.TCPAddr).Port,
		Now: f.clock.now, Logger: logger,
	})
	if err != nil {
		f.Fatal(err)
	}
	endpoints := account.NewEndpoints(account.EndpointOptions{
		Service: f.accounts, Guard: guard, ServerKind: workspace.ServerKind, Logger: logger,
	})
	f.Cleanup(endpoints.Close)
	f.routes = append(endpoints.Routes(), f.api.Routes()...)
	for i := range f.routes {
		if f.routes[i].Path == "/api/app/events" {
			f.routes[i].Handle = f.counted(f.routes[i].Handle)
		}
	}
	f.server = httptest.NewUnstartedServer(f.api.WithoutRetired(guard.Handler(f.routes...)))
	_ = f.server.Listener.Close()
	f.server.Listener = listener
	f.server.Start()
	f.Cleanup(f.server.Close)
}

// counted counts the requests that are in the handler.
func (f *fixture) counted(handle account.Handler) account.Handler {
	return func(w http.ResponseWriter, r *http.Request, user account.User) error {
		f.held.Add(1)
		defer f.held.Add(-1)
		return handle(w, r, user)
	}
}

// rename renames an agent behind the back of HTTP.
func (f *fixture) rename(owner, agent string) {
	f.Helper()
	_, _, err := f.store.EditAgent(context.Background(), workspace.OwnerID(owner), workspace.AgentID(agent), workspace.AgentPatch{Name: workspace.Some("renamed")})
	if err != nil {
		f.Error(err)
	}
}

func (f *fixture) add(name string, role account.Role) account.User {
	f.Helper()
	user, err := f.accounts.Add(f.Context(), account.NewUser{Username: name, Password: password, Role: role})
	if err != nil {
		f.Fatal(err)
	}
	return user
}

// agent creates an agent and returns its id.
func (c *client) agent(name string) string {
	c.Helper()
	return c.post("/agents", obj{"name": name, "profile": "default"}).want(http.StatusCreated).str("agent", "id")
}

// direct returns the id of an agent's direct chat.
func (c *client) direct(agent string) string {
	c.Helper()
	for _, item := range c.get("/conversations").want(http.StatusOK).list("conversations") {
		if chat := item.(obj); chat["kind"] == "direct" && chat["administratorId"] == agent {
			return chat["id"].(string)
		}
	}
	c.Fatalf("agent %s has no direct chat", agent)
	return ""
}

// group creates a group whose first member is its administrator.
func (c *client) group(members ...string) string {
	c.Helper()
	return c.post("/conversations", obj{"name": "team", "memberIds": members, "administratorId": members[0]}).
		want(http.StatusCreated).str("conversation", "id")
}

// say sends a text and returns its run.
func (c *client) say(chat, text string) string {
	c.Helper()
	return c.post("/conversations/"+chat+"/messages", obj{"requestId": uuid(), "content": text}).want(http.StatusAccepted).str("run", "id")
}

// allEvents returns the events after a sequence.
func (c *client) allEvents(after int64) []obj {
	c.Helper()
	var events []obj
	for {
		page := c.get(fmt.Sprintf("/events?after=%d", after)).want(http.StatusOK)
		if len(page.list("events")) == 0 {
			return events
		}
		for _, e := range page.list("events") {
			events = append(events, e.(obj))
		}
		after = page.num("cursor")
	}
}

// cursor returns where the events are.
func (c *client) cursor() int64 {
	c.Helper()
	return c.get("/conversations").want(http.StatusOK).num("cursor")
}

// types returns the types of events, sorted, each once.
func types(events []obj) []string {
	seen := make(map[string]bool)
	for _, e := range events {
		seen[strings.TrimSuffix(e["type"].(string), ".changed")] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// onDisk returns the paths of all files of the library and of uploads.
func (f *fixture) onDisk() []string {
	f.Helper()
	var found []string
	for _, folder := range []string{"files", "staging"} {
		err := filepath.WalkDir(filepath.Join(f.dir, folder), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && !d.IsDir() {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	return found
}

// data returns the bytes of the database's files.
func (f *fixture) data() []byte {
	f.Helper()
	var all []byte
	for _, name := range []string{"workspace.sqlite3", "workspace.sqlite3-wal"} {
		text, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.Fatal(err)
		}
		all = append(all, text...)
	}
	return all
}

// uuid returns a fresh id.
func uuid() string { return google.NewString() }

func cookiesOf(c *client) []*http.Cookie {
	u, err := url.Parse(c.server.URL)
	if err != nil {
		c.Fatal(err)
	}
	return c.http.Jar.Cookies(u)
}

// hang is an upstream that never answers.
func hang(ctx context.Context) ([]api.Profile, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
