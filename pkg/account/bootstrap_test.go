package account_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/account"
)

// Ensures scenario 3: an anonymous client gets a bootstrap with a token and its
// cookie; after login the token differs and the old one is refused.
func TestBootstrap_Scenario3(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	c := f.client()
	a := c.bootstrap()
	want := map[string]any{
		"status": map[string]any{"state": "ready"}, "authRequired": true, "authenticated": false, "profiles": []any{},
		"csrfToken": c.csrf, "insecureLan": false, "groupUploadsEnabled": true, "upstreamReady": false,
		"serverKind": kind, "setupRequired": false,
	}
	if diff := cmp.Diff(want, a.json); diff != "" {
		t.Error(diff)
	}
	before := c.csrf
	if before == "" || !strings.HasPrefix(c.cookies[account.CSRFCookie], before+".") {
		t.Fatalf("token %q, cookies %v", before, c.cookies)
	}
	c.login("root", password).want(t, 200, "")
	if c.csrf == before || c.csrf == "" {
		t.Errorf("the token after login is %q, before it was %q", c.csrf, before)
	}
	r := c.request(http.MethodPost, "/api/app/logout", "")
	r.Header.Set(account.CSRFHeader, before)
	c.send(r).want(t, 403, account.CodeInvalidCSRF)
	if !c.isSignedIn() {
		t.Error("the refused logout has ended the session")
	}
}

// Ensures that a signed-in user's bootstrap has the user and what the upstream
// tells (section 1.6).
func TestBootstrap_SignedIn(t *testing.T) {
	t.Parallel()
	up := readyUpstream()
	up.profiles = func(context.Context) ([]account.Profile, error) {
		return []account.Profile{
			{Name: "default"},
			{Name: "ann", Title: "安", Object: map[string]jsontext.Value{"model": jsontext.Value(`"m"`), "description": jsontext.Value(`"own words"`), "display_name": jsontext.Value(`""`), "agentName": jsontext.Value(`null`)}},
		}, nil
	}
	f := newFixture(t, func(s *settings) { s.endpoints.Upstream = up; s.endpoints.InsecureLAN = true })
	user := f.add("root", account.RoleAdmin, false)
	c := f.loggedIn("root")
	a := c.bootstrap()
	want := map[string]any{
		"status":       map[string]any{"state": "ready", "version": "1.2", "gatewayRunning": true, "gatewayState": "idle"},
		"authRequired": true, "authenticated": true,
		"user": map[string]any{
			"id": user.ID, "username": "root", "role": "admin", "enabled": true, "mustChangePassword": false,
			"createdAt": float64(f.clock.now().UnixMilli()), "updatedAt": float64(f.clock.now().UnixMilli()),
		},
		"profiles": []any{
			map[string]any{"name": "default"},
			map[string]any{"name": "ann", "model": "m", "agentName": "安", "display_name": "安", "description": "own words"},
		},
		"csrfToken": c.csrf, "insecureLan": true, "groupUploadsEnabled": true, "upstreamReady": true,
		"serverKind": kind, "setupRequired": false,
	}
	if diff := cmp.Diff(want, a.json); diff != "" {
		t.Error(diff)
	}
}

// Ensures that an upstream without a word for its state is unknown, and that one
// that is down says so (section 1.6).
func TestBootstrap_UpstreamStates(t *testing.T) {
	t.Parallel()
	failing := errors.New("dial tcp: http://user:hunter2@10.0.0.1 refused")
	for name, test := range map[string]struct {
		change func(*settings)
		status map[string]any
		ready  bool
		text   string
	}{
		"no state": {func(s *settings) {
			s.endpoints.Upstream.(*upstream).status = func(context.Context) (account.UpstreamStatus, error) {
				return account.UpstreamStatus{}, nil
			}
		}, map[string]any{"state": "unknown", "gatewayRunning": false}, true, ""},
		"status fails": {func(s *settings) {
			s.endpoints.Upstream.(*upstream).status = func(context.Context) (account.UpstreamStatus, error) {
				return account.UpstreamStatus{}, failing
			}
		}, map[string]any{"state": "degraded"}, false, "上游服务暂时无法访问"},
		"profiles fail": {func(s *settings) {
			s.endpoints.Upstream.(*upstream).profiles = func(context.Context) ([]account.Profile, error) { return nil, failing }
		}, map[string]any{"state": "degraded"}, false, "上游服务暂时无法访问"},
		"no upstream": {func(s *settings) { s.endpoints.Upstream = nil }, map[string]any{"state": "degraded"}, false, "尚未配置上游服务"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, test.change)
			f.add("root", account.RoleAdmin, false)
			a := f.loggedIn("root").bootstrap()
			if diff := cmp.Diff(test.status, a.json["status"]); diff != "" {
				t.Error(diff)
			}
			text, _ := a.json["upstreamError"].(string)
			if a.json["upstreamReady"] != test.ready || text != test.text || strings.Contains(a.Body.String(), "hunter2") {
				t.Errorf("the body is %s", a.Body)
			}
		})
	}
}

// Ensures scenario 4: when the upstream never answers, a signed-in user has a
// bootstrap after 3 s, and a late answer changes nothing.
func TestBootstrap_Scenario4(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		up := readyUpstream()
		up.status = func(context.Context) (account.UpstreamStatus, error) {
			<-gate // heeds no context
			return account.UpstreamStatus{State: "late"}, nil
		}
		f := newFixture(t, func(s *settings) { s.endpoints.Upstream = up })
		f.add("root", account.RoleAdmin, false)
		c := f.client()
		started := time.Now()
		a := c.login("root", password)
		a.want(t, 200, "")
		if took := time.Since(started); took != account.ProbeTime {
			t.Errorf("the login took %v", took)
		}
		if a.json["upstreamReady"] != false || a.json["upstreamError"] != "上游服务响应超时" || a.json["authenticated"] != true {
			t.Errorf("the body is %s", a.Body)
		}
		before := a.Body.String()
		close(gate)
		synctest.Wait()
		if a.Body.String() != before {
			t.Errorf("a late answer changed the body to %s", a.Body)
		}
		if late := c.bootstrap(); late.json["upstreamReady"] != true {
			t.Errorf("once the upstream answers, the body is %s", late.Body)
		}
		f.endpoints.Close()
	})
}

// Ensures that an upstream which heeds its context is let go after 3 s, and that
// many clients put one question.
func TestBootstrap_OneQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		up := readyUpstream()
		up.status = func(ctx context.Context) (account.UpstreamStatus, error) {
			asked.Add(1)
			<-ctx.Done()
			return account.UpstreamStatus{}, ctx.Err()
		}
		f := newFixture(t, func(s *settings) { s.endpoints.Upstream = up })
		f.add("root", account.RoleAdmin, false)
		signedIn, err := f.service.Login(t.Context(), account.Credentials{Username: "root", Password: password})
		if err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		for range 50 {
			clients.Go(func() {
				c := f.client()
				c.cookies[account.SessionCookie] = string(signedIn.Token)
				if a := c.bootstrap(); a.json["upstreamError"] != "上游服务响应超时" {
					t.Errorf("the body is %s", a.Body)
				}
			})
		}
		clients.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("50 clients put %d questions", n)
		}
		f.endpoints.Close()
	})
}

// Ensures that a stop ends the question that is under way and waits for it.
func TestEndpoints_Close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		up := readyUpstream()
		up.profiles = func(ctx context.Context) ([]account.Profile, error) {
			<-ctx.Done()
			ended.Store(true)
			return nil, ctx.Err()
		}
		f := newFixture(t, func(s *settings) { s.endpoints.Upstream = up })
		f.add("root", account.RoleAdmin, false)
		done := make(chan struct{})
		go func() {
			f.loggedIn("root")
			close(done)
		}()
		synctest.Wait()
		f.endpoints.Close()
		if !ended.Load() {
			t.Error("Close did not wait")
		}
		<-done
	})
}

// Ensures that while a password change is due the upstream is not asked (section
// 1.6).
func TestBootstrap_PasswordDue(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	up := readyUpstream()
	up.status = func(context.Context) (account.UpstreamStatus, error) {
		asked.Add(1)
		return account.UpstreamStatus{}, nil
	}
	f := newFixture(t, func(s *settings) { s.endpoints.Upstream = up })
	f.add("root", account.RoleAdmin, false)
	f.add("due", account.RoleUser, true)
	c := f.loggedIn("due")
	a := c.bootstrap()
	if diff := cmp.Diff(map[string]any{"state": "password_change_required"}, a.json["status"]); diff != "" {
		t.Error(diff)
	}
	if a.json["upstreamReady"] != false || len(a.json["profiles"].([]any)) != 0 || asked.Load() != 0 {
		t.Errorf("%d questions, body %s", asked.Load(), a.Body)
	}
}

// Ensures that a valid token is kept, one that is not this server's is replaced
// (section 1.4), and that both serve for another 8 hours.
func TestBootstrap_ReusesToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.client()
	c.bootstrap()
	first := c.csrf
	a := c.bootstrap()
	if c.csrf != first {
		t.Errorf("the token changed from %q to %q", first, c.csrf)
	}
	if cookies := a.Result().Cookies(); len(cookies) != 1 || cookies[0].MaxAge != 8*60*60 {
		t.Errorf("cookies %v", cookies)
	}
	c.cookies[account.CSRFCookie] = "mine." + strings.SplitN(c.cookies[account.CSRFCookie], ".", 2)[1]
	c.bootstrap()
	if c.csrf == first || c.csrf == "mine" {
		t.Errorf("the token is %q", c.csrf)
	}
}

// Ensures the attributes of both cookies (sections 1.3 and 1.4): Secure exactly
// when the client used TLS or the operator says so.
func TestCookies_Attributes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		always   bool
		peer     string
		proto    string
		isSecure bool
	}{
		"plain":                    {peer: "127.0.0.1:1"},
		"a trusted proxy with TLS": {peer: "127.0.0.1:1", proto: "https", isSecure: true},
		"a stranger's word":        {peer: "192.0.2.1:1", proto: "https"},
		"configured":               {always: true, peer: "127.0.0.1:1", isSecure: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(s *settings) { s.guard.SecureCookies = test.always })
			f.add("root", account.RoleAdmin, false)
			c := f.client()
			c.bootstrap()
			r := c.request(http.MethodPost, "/api/app/login", credentials("root", password))
			r.RemoteAddr = test.peer
			r.Header.Set("Origin", "https://"+host)
			if test.proto != "" {
				r.Header.Set("X-Forwarded-Proto", test.proto)
			}
			a := c.send(r)
			a.want(t, 200, "")
			lives := map[string]int{account.SessionCookie: 30 * 24 * 60 * 60, account.CSRFCookie: 8 * 60 * 60}
			cookies := a.Result().Cookies()
			if len(cookies) != len(lives) {
				t.Fatalf("cookies %v", cookies)
			}
			for _, cookie := range cookies {
				if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" ||
					cookie.MaxAge != lives[cookie.Name] || cookie.Secure != test.isSecure {
					t.Errorf("cookie %s", cookie.Raw)
				}
			}
		})
	}
}

// Ensures that a store that fails is a fault, and not a client that is not signed
// in.
func TestBootstrap_StoreFails(t *testing.T) {
	t.Parallel()
	broken := ""
	f := newFixture(t, func(s *settings) {
		s.service.Store = &failingStore{s.service.Store, func(method string) error {
			if method == broken {
				return errStore
			}
			return nil
		}}
	})
	f.add("root", account.RoleAdmin, false)
	c := f.loggedIn("root")
	broken = "Session"
	c.do(http.MethodGet, "/api/app/bootstrap", "").want(t, 500, account.CodeInternal)
	broken = "HasUsers"
	f.client().do(http.MethodGet, "/api/app/bootstrap", "").want(t, 500, account.CodeInternal)
	if !strings.Contains(f.log.String(), errStore.Error()) {
		t.Errorf("the log is %s", f.log)
	}
}

// Ensures that hostile cookies and headers are at worst a client that is not
// signed in.
func FuzzBootstrap(f *testing.F) {
	for _, seed := range []string{"", "relay_session=x", "relay_csrf=a.b; relay_csrf=.", "relay_session=" + strings.Repeat("A", 43), ";;;=;", "\x00", `relay_csrf="a.b"`} {
		f.Add(seed, "localhost", "127.0.0.1:1", "https")
	}
	f.Fuzz(func(t *testing.T, cookies, host, peer, proto string) {
		fx := newFixture(t)
		fx.add("root", account.RoleAdmin, false)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/app/bootstrap", nil)
		r.Host, r.RemoteAddr = host, peer
		r.Header["Cookie"], r.Header["X-Forwarded-Proto"] = []string{cookies}, []string{proto}
		a := fx.client().send(r)
		if a.Code == http.StatusMisdirectedRequest {
			return
		}
		a.want(t, 200, "")
		if a.json["authenticated"] != false || a.json["csrfToken"] == "" {
			t.Errorf("%q gives %s", cookies, a.Body)
		}
	})
}
