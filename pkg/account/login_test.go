package account_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/account"
)

// Ensures that no account exists until the first is set up, which makes an
// administrator and signs him in (sections 1.3 and 1.6, section 11 item 1).
func TestSetup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.client()
	if a := c.bootstrap(); a.json["setupRequired"] != true || a.json["authenticated"] != false {
		t.Fatalf("bootstrap %s", a.Body)
	}
	c.login("admin", "admin").want(t, 401, account.CodeLoginFailed)
	before := c.csrf
	a := c.do(http.MethodPost, "/api/app/setup", credentials("  Ann ", password))
	a.want(t, 200, "")
	user := a.json["user"].(map[string]any)
	if user["username"] != "Ann" || user["role"] != "admin" || user["enabled"] != true || user["mustChangePassword"] != false {
		t.Errorf("the user is %v", user)
	}
	if a.json["setupRequired"] != false || a.json["upstreamReady"] != true || c.csrf == before {
		t.Errorf("body %s, token before %s", a.Body, before)
	}
	if !c.isSignedIn() {
		t.Error("the administrator is not signed in")
	}
	c.do(http.MethodPost, "/api/app/setup", credentials("Bob", password)).want(t, 409, account.CodeSetupComplete)
	c.do(http.MethodPost, "/api/app/setup", credentials("", "")).want(t, 409, account.CodeSetupComplete)
}

// Ensures that a setup is a write like others, and strict about its body (sections
// 1.5 and 1.8).
func TestSetup_Refuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.client()
	c.bootstrap()
	foreign := c.request(http.MethodPost, "/api/app/setup", credentials("ann", password))
	foreign.Header.Set("Origin", "http://evil.example")
	c.send(foreign).want(t, 403, account.CodeInvalidOrigin)
	for body, want := range map[string]account.Code{
		`{}`:                           account.CodeInvalidRequest,
		`{"username":"ann"}`:           account.CodeInvalidRequest,
		`{"password":"x"}`:             account.CodeInvalidRequest,
		`{"username":null}`:            account.CodeInvalidRequest,
		`[]`:                           account.CodeInvalidRequest,
		credentials("ann", ""):         account.CodeInvalidPassword,
		credentials("", "long enough"): account.CodeInvalidUsername,
		credentials("a b", password):   account.CodeInvalidUsername,
		`{"username":"ann","password":"long enough","role":"admin"}`: account.CodeInvalidRequest,
	} {
		c.do(http.MethodPost, "/api/app/setup", body).want(t, 400, want)
	}
	if needed, err := f.service.NeedsSetup(t.Context()); !needed || err != nil {
		t.Errorf("NeedsSetup gives %v, %v", needed, err)
	}
}

// Ensures that of 50 setups at once, all of which have seen no account, exactly one
// makes one.
func TestSetup_Race(t *testing.T) {
	t.Parallel()
	const racers = 50
	f := newFixture(t)
	clients := make([]*client, racers)
	for n := range clients {
		clients[n] = f.client()
		clients[n].bootstrap()
	}
	late := &lateStore{f.store, new(sync.WaitGroup)}
	late.asking.Add(racers)
	f.settings.service.Store = late
	f.start()
	var succeeded atomic.Int64
	var setups sync.WaitGroup
	for n, c := range clients {
		setups.Go(func() {
			a := c.do(http.MethodPost, "/api/app/setup", credentials(numbered("admin", n), password))
			if a.Code == http.StatusOK {
				succeeded.Add(1)
				return
			}
			a.want(t, 409, account.CodeSetupComplete)
		})
	}
	setups.Wait()
	users, err := f.service.List(t.Context())
	if err != nil || succeeded.Load() != 1 || len(users) != 1 || !users[0].IsAdmin() {
		t.Errorf("%d setups succeeded, the users are %v, %v", succeeded.Load(), users, err)
	}
}

// Ensures that unknown, disabled and wrong get one answer after one hash each, and
// that fields which are missing or over-long cost none (section 1.6).
func TestLogin_Refuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	f.add("off", account.RoleUser, false)
	off := false
	if _, err := f.service.EditByName(t.Context(), "off", account.Edit{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	hashes := f.service.CountHashes()
	c := f.client()
	var bodies []string
	for _, login := range [][2]string{{"nobody", password}, {"off", password}, {"root", "wrong password"}, {"\x00", "x"}, {strings.Repeat("é", 320), strings.Repeat("界", 4096)}} {
		before := hashes.Load()
		a := c.login(login[0], login[1])
		a.want(t, 401, account.CodeLoginFailed)
		bodies = append(bodies, a.Body.String())
		if n := hashes.Load() - before; n != 1 {
			t.Errorf("login of %.20q took %d hashes", login[0], n)
		}
	}
	if len(slices.Compact(bodies)) != 1 {
		t.Errorf("the answers differ: %q", bodies)
	}
	before := hashes.Load()
	for body, want := range map[string]account.Code{
		`{}`: account.CodeInvalidCredentials, `{"username":"root"}`: account.CodeInvalidCredentials,
		credentials("", password): account.CodeInvalidCredentials, credentials(" ", password): account.CodeInvalidCredentials,
		credentials("root", ""):                        account.CodeInvalidCredentials,
		credentials(strings.Repeat("é", 321), "x"):     account.CodeInvalidCredentials,
		credentials("root", strings.Repeat("x", 4097)): account.CodeInvalidCredentials,
		`{"username":"root","password":null}`:          account.CodeInvalidRequest,
		`{"username":["root"],"password":"x"}`:         account.CodeInvalidRequest,
		`{"username":"root","Password":"x"}`:           account.CodeInvalidRequest,
		`"root"`:                                       account.CodeInvalidRequest,
	} {
		c.do(http.MethodPost, "/api/app/login", body).want(t, 400, want)
	}
	if hashes.Load() != before || c.cookies[account.SessionCookie] != "" {
		t.Errorf("%d hashes, cookies %v", hashes.Load()-before, c.cookies)
	}
}

// Ensures that names are the same whatever their case and composition (section
// 1.3).
func TestLogin_NameIgnoresCase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("Müller", account.RoleAdmin, false)
	for _, name := range []string{"müller", "MÜLLER", " Mu\u0308ller "} {
		f.client().login(name, password).want(t, 200, "")
	}
}

// Ensures that a session's token has 32 random bytes of which only the SHA-256 is
// stored (section 1.3), and that nothing but the exact token is a session.
func TestSession_Token(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	token := c.cookies[account.SessionCookie]
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 32 {
		t.Fatalf("the token is %q: %v", token, err)
	}
	session, _, err := f.store.Session(t.Context(), sha256.Sum256(raw))
	if err != nil || session.ExpiresAt-session.CreatedAt != (30*24*time.Hour).Milliseconds() {
		t.Errorf("the stored session is %+v, %v", session, err)
	}
	last := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", token[42])
	sibling := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[last^1]
	for _, wrong := range []string{"", token[:42], token + "A", token + "=", token[:42] + string(sibling), strings.ToUpper(token), base64.StdEncoding.EncodeToString(session.Hash[:])} {
		if wrong == token {
			continue
		}
		if _, err := f.service.Authenticate(t.Context(), account.Token(wrong)); account.CodeOf(err) != account.CodeUnauthenticated {
			t.Errorf("the token %q gives %v", wrong, err)
		}
	}
}

// Ensures that a session lasts 30 days and not a moment longer (section 1.3).
func TestSession_Expires(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	f.clock.advance(account.SessionLife - time.Millisecond)
	if !c.isSignedIn() {
		t.Error("the session ended early")
	}
	f.clock.advance(time.Millisecond)
	if c.isSignedIn() {
		t.Error("the session outlived its time")
	}
}

// Ensures that sessions and tokens survive a restart (sections 1.3 and 1.4).
func TestSession_SurvivesRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSamples)
	c := f.signedIn("root")
	f.start()
	c.do(http.MethodPost, "/api/app/things", "{}").want(t, 200, "")
	before := c.csrf
	if !c.isSignedIn() || c.csrf != before {
		t.Errorf("after a restart the token is %q, before it was %q", c.csrf, before)
	}
}

// Ensures that a login ends the session that the client had before, so that a
// session which somebody planted is of no use.
func TestLogin_ReplacesSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.signedIn("root")
	planted := f.client()
	planted.cookies[account.SessionCookie] = c.cookies[account.SessionCookie]
	c.login("root", password).want(t, 200, "")
	if c.cookies[account.SessionCookie] == planted.cookies[account.SessionCookie] || planted.isSignedIn() || !c.isSignedIn() {
		t.Error("the session before the login is still alive")
	}
}

// Ensures that a logout ends the session, takes its cookie and rotates the token,
// also while a password change is due (sections 1.5 and 1.6).
func TestLogout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	f.add("due", account.RoleUser, true)
	for _, name := range []string{"root", "due"} {
		c, other := f.loggedIn(name), f.loggedIn(name)
		session, before := c.cookies[account.SessionCookie], c.csrf
		c.do(http.MethodPost, "/api/app/logout", `{"all":true}`).want(t, 400, account.CodeInvalidRequest)
		a := c.do(http.MethodPost, "/api/app/logout", "")
		a.want(t, 200, "")
		if a.json["ok"] != true || len(a.json) != 2 || c.csrf == before || c.cookies[account.SessionCookie] != "" {
			t.Errorf("the logout gives %s, cookies %v", a.Body, c.cookies)
		}
		c.cookies[account.SessionCookie] = session
		if c.isSignedIn() || !other.isSignedIn() {
			t.Error("that session, and only that, should have ended")
		}
		c.do(http.MethodPost, "/api/app/logout", "").want(t, 401, account.CodeUnauthenticated)
	}
}

// Ensures that after repeated failures a name is not tried again from that
// address, with the time to wait, and that others are not kept out (section 1.6).
func TestLogin_ThrottlesNameAndAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	f.add("ann", account.RoleUser, false)
	hashes := f.service.CountHashes()
	for _, name := range []string{"root", "nobody"} {
		c := f.client()
		if name == "nobody" {
			c.peer = "198.51.100.7:1"
		}
		for range account.AttemptsNameAddress {
			c.login(name, "wrong password").want(t, 401, account.CodeLoginFailed)
		}
		before := hashes.Load()
		a := c.login(strings.ToUpper(name), password)
		a.want(t, 429, account.CodeThrottled)
		if wait := a.Header().Get("Retry-After"); wait != strconv.Itoa(int(account.AttemptSpan/time.Second)) {
			t.Errorf("Retry-After: %s", wait)
		}
		if hashes.Load() != before {
			t.Error("a throttled login was hashed")
		}
	}
	f.client().login("ann", password).want(t, 200, "")
	elsewhere := f.client()
	elsewhere.peer = "203.0.113.5:1"
	elsewhere.login("root", password).want(t, 200, "")
	f.clock.advance(account.AttemptSpan)
	f.client().login("root", password).want(t, 200, "")
}

// Ensures that one address cannot try many names, and that many addresses cannot
// try one name for ever.
func TestLogin_ThrottlesEach(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	c := f.client()
	for n := range account.AttemptsAddress {
		c.login(numbered("name", n), "wrong password").want(t, 401, account.CodeLoginFailed)
	}
	c.login("root", password).want(t, 429, account.CodeThrottled)
	for n := range account.AttemptsName {
		c := f.client()
		c.peer = numbered("10.0.0.", n%256) + ":1"
		c.login("root", "wrong password").want(t, 401, account.CodeLoginFailed)
	}
	c.peer = "203.0.113.5:1"
	c.login("root", password).want(t, 429, account.CodeThrottled)
}

// Ensures that logins that succeed do not count, and that failures at once do not
// exceed the limit together.
func TestLogin_ThrottleCountsFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add("root", account.RoleAdmin, false)
	c := f.client()
	for range 2 * account.AttemptsAddress {
		c.login("root", password).want(t, 200, "")
	}
	var failed atomic.Int64
	var logins sync.WaitGroup
	for range 3 * account.AttemptsNameAddress {
		c := f.client()
		c.bootstrap()
		logins.Go(func() {
			if a := c.login("root", "wrong password"); a.Code == http.StatusUnauthorized {
				failed.Add(1)
			} else {
				a.want(t, 429, account.CodeThrottled)
			}
		})
	}
	logins.Wait()
	if n := failed.Load(); n != account.AttemptsNameAddress {
		t.Errorf("%d wrong passwords were checked", n)
	}
}

// Ensures that many logins at once cannot take all memory: some are hashed, some
// wait, and the others are told to come again.
func TestLogin_BoundsHashes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.add("root", account.RoleAdmin, false)
		gate := make(chan struct{})
		f.service.BlockHashes(gate)
		running := f.service.CountHashes()
		ctx, cancel := context.WithCancel(t.Context())
		var busy, gone, succeeded atomic.Int64
		try := func(ctx context.Context, n int) {
			_, err := f.service.Login(ctx, account.Credentials{Username: "root", Password: password, Address: numbered("address", n)})
			switch {
			case err == nil:
				succeeded.Add(1)
			case account.CodeOf(err) == account.CodeThrottled:
				busy.Add(1)
			case ctx.Err() != nil:
				gone.Add(1)
			default:
				t.Error(err)
			}
		}
		var logins sync.WaitGroup
		for n := range account.MaxWaiting {
			logins.Go(func() { try(ctx, n) })
		}
		synctest.Wait()
		hashing := running.Load()
		if hashing < 1 || hashing > account.MaxHashes {
			t.Errorf("%d hashes run at once", hashing)
		}
		for n := range 10 {
			try(t.Context(), account.MaxWaiting+n)
		}
		if busy.Load() != 10 {
			t.Errorf("%d logins were told to come again", busy.Load())
		}
		cancel() // all go away; those that are hashed learn of it later
		synctest.Wait()
		if want := account.MaxWaiting - hashing; gone.Load() != want {
			t.Errorf("%d of %d waiting logins went away", gone.Load(), want)
		}
		close(gate)
		logins.Wait()
		try(t.Context(), 0)
		if succeeded.Load() != 1 {
			t.Errorf("afterwards %d logins succeeded", succeeded.Load())
		}
	})
}

// Ensures that a failing store is a fault and counts as no attempt.
func TestLogin_StoreFails(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"UserByKey", "AddSession"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			isBroken := false
			f := newFixture(t, func(s *settings) {
				s.service.Store = &failingStore{s.service.Store, func(m string) error {
					if isBroken && m == method {
						return errStore
					}
					return nil
				}}
			})
			f.add("root", account.RoleAdmin, false)
			isBroken = true
			for range account.AttemptsNameAddress + 1 {
				f.client().login("root", password).want(t, 500, account.CodeInternal)
			}
			isBroken = false
			f.client().login("root", password).want(t, 200, "")
		})
	}
}

// Ensures that a login which a change of the account overtakes does not sign in.
func TestLogin_Overtaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) {
		s.service.Store = &failingStore{s.service.Store, func(m string) error {
			if m == "AddSession" {
				return account.ErrStale
			}
			return nil
		}}
	})
	f.add("root", account.RoleAdmin, false)
	f.client().login("root", password).want(t, 401, account.CodeLoginFailed)
}
