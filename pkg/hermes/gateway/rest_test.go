package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/gateway"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

// Ensures that addresses that are none, or hide something, are refused by name.
func TestNew_Address(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "127.0.0.1:9119", "ftp://x", "http://", "http://u:p@x", "http://x?a=b", "http://x?", "http://x#y", "http://x\x00"} {
		_, err := gateway.New(gateway.Config{URL: address})
		if err == nil || !strings.HasPrefix(err.Error(), "hermes address: ") || strings.Contains(err.Error(), "u:p") {
			t.Errorf("New(%q): %v", address, err)
		}
	}
	if _, err := gateway.New(gateway.Config{URL: "https://x/prefix/"}); err != nil {
		t.Error(err)
	}
}

// Ensures that the status tells what a node's check needs, without credentials.
func TestStatus(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		status, err := r.client.Status(r.Context())
		if want := (hermes.Status{Version: "0.9", Kind: "other-web", Gated: true}); err != nil || status != want {
			r.Errorf("status %+v, %v", status, err)
		}
		if r.fake.Logins() != 0 {
			r.Error("it signed in")
		}
	}, hermestest.WithSignIn(), hermestest.WithServerKind("other-web"), hermestest.WithVersion("0.9"))
}

// Ensures that profiles have the best title that the server knows, by name.
func TestListProfiles(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, dialect hermestest.Dialect) {
		r.fake.SetProfiles(hermestest.Profile{Name: "b", DisplayName: "The\nBee", Path: "/p/b", Model: "m"}, hermestest.Profile{Name: "a"})
		got, err := r.client.ListProfiles(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		title := "The Bee"
		if dialect == hermestest.Dialect019 {
			title = "b"
		}
		want := []hermes.Profile{
			{Name: "a", Title: "a"}, {Name: "b", Title: title, Path: "/p/b", Model: "m"},
			{Name: hermestest.Launch, Title: hermestest.Launch, Path: "/home/hermes/.hermes", Model: "scripted", Default: true},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Error(diff)
		}
	})
}

// Ensures that every kind of refusal and nonsense has its kind and bounds.
func TestREST_Failures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		header []string
		want   hermes.Kind
		retry  bool
	}{
		"unauthorised":  {401, `{"detail":"Unauthorized"}`, nil, hermes.KindAuth, false},
		"forbidden":     {403, "", nil, hermes.KindForbidden, false},
		"wrong host":    {400, `{"detail":"Invalid Host header. Dashboard requests must use the hostname"}`, nil, hermes.KindForbidden, false},
		"not found":     {404, `{"detail":"no"}`, nil, hermes.KindNotFound, false},
		"busy":          {409, `{"error":{"message":"busy"}}`, nil, hermes.KindBusy, true},
		"too large":     {413, "", nil, hermes.KindTooLarge, false},
		"unprocessable": {422, `{"detail":[{"msg":"x"}]}`, nil, hermes.KindRejected, false},
		"limited":       {429, "", []string{"Retry-After", "7"}, hermes.KindRateLimited, true},
		"error":         {500, "<html>oops</html>", nil, hermes.KindUnavailable, true},
		"draining":      {503, "", nil, hermes.KindUnavailable, true},
		"redirect":      {302, "", []string{"Location", "http://169.254.169.254/"}, hermes.KindForbidden, false},
		"no JSON":       {200, "<html>", nil, hermes.KindProtocol, false},
		"cut JSON":      {200, `{"profiles":[`, nil, hermes.KindProtocol, false},
		"endless":       {200, strings.Repeat(" ", 5<<20), nil, hermes.KindTooLarge, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.fake.FailHTTP("/api/profiles", test.status, -1, test.body, test.header...)
				_, err := r.client.ListProfiles(r.Context())
				r.wantKind(err, test.want)
				failure, _ := errors.AsType[*hermes.Error](err)
				if failure.Retryable != test.retry || failure.Doing != "list profiles" {
					r.Errorf("%+v", failure)
				}
				if test.status == 429 && failure.RetryAfter != 7*time.Second {
					r.Errorf("retry after %v", failure.RetryAfter)
				}
				for _, request := range r.fake.Requests() {
					if request.Path == "/" {
						r.Error("a redirect was followed")
					}
				}
			})
		})
	}
}

// Ensures that an upstream's text is shown in one bounded line, without our
// credentials and control characters.
func TestFailure_TextIsSafe(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.fake.FailHTTP("/api/profiles", 422, -1, `{"detail":"bad `+hermestest.Token+`\n\u001b[31mred`+strings.Repeat("x", 1000)+`"}`)
		_, err := r.client.ListProfiles(r.Context())
		if text := err.Error(); strings.Contains(text, hermestest.Token) || strings.ContainsAny(text, "\n\x1b") || len(text) > 500 {
			r.Errorf("shown: %q", text)
		}
	})
}

// Ensures that a server that cannot be reached, or never answers, is unavailable,
// and that a caller who gives up is told so.
func TestREST_NoAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.fake.SetDown(true)
		_, err := r.client.Status(r.Context())
		r.wantKind(err, hermes.KindUnavailable)
		hanging := r.connect(func(c *gateway.Config) {
			c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		})
		_, err = hanging.Status(r.Context())
		r.wantKind(err, hermes.KindTimeout)
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if _, err = r.client.Status(ctx); !errors.Is(err, context.Canceled) {
			r.Errorf("after giving up: %v", err)
		}
	})
}

// Ensures that an expired sign-in is renewed once, and the request repeated (W20).
func TestW20_SignsInAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		for range 2 {
			if _, err := r.client.ListProfiles(r.Context()); err != nil {
				r.Fatal(err)
			}
			r.fake.ExpireSignIns()
		}
		if got := r.fake.Logins(); got != 2 {
			r.Errorf("signed in %d times", got)
		}
		time.Sleep(2 * time.Hour) // the cookie expires
		if _, err := r.client.ListProfiles(r.Context()); err != nil {
			r.Fatal(err)
		}
	}, hermestest.WithSignIn())
}

// Ensures that refused credentials are tried once more and then given up, and that
// the limit on tries is told (W20).
func TestW20_WrongPassword(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		wrong := r.connect(func(c *gateway.Config) { c.Password = "wrong" })
		_, err := wrong.ListProfiles(r.Context())
		r.wantKind(err, hermes.KindAuth)
		if got := r.fake.Logins(); got != 1 {
			r.Errorf("signed in %d times", got)
		}
		for range 9 {
			_, _ = wrong.ListProfiles(r.Context())
		}
		_, err = wrong.ListProfiles(r.Context())
		r.wantKind(err, hermes.KindRateLimited)
		nobody := r.connect(func(c *gateway.Config) { c.Username = "" })
		_, err = nobody.ListProfiles(r.Context())
		r.wantKind(err, hermes.KindAuth)
	}, hermestest.WithSignIn())
}

// Ensures that many callers at once sign in once.
func TestSignIn_Once(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		errs := make(chan error)
		for range 20 {
			go func() { _, err := r.client.ListProfiles(r.Context()); errs <- err }()
		}
		for range 20 {
			if err := <-errs; err != nil {
				r.Error(err)
			}
		}
		if got := r.fake.Logins(); got != 1 {
			r.Errorf("signed in %d times", got)
		}
	}, hermestest.WithSignIn())
}

// Ensures that a token that no operator fixed is read from the root page, also
// after a restart changed it, and that a wrong one is not tried for ever.
func TestSignIn_TokenOfThePage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		client := r.connect(func(c *gateway.Config) { c.Token = "" })
		for _, token := range []string{hermestest.Token, "another-token"} {
			r.fake.SetToken(token)
			if _, err := client.ListProfiles(r.Context()); err != nil {
				r.Error(err)
			}
		}
		_, err := r.client.ListProfiles(r.Context())
		r.wantKind(err, hermes.KindAuth)
		r.fake.FailHTTP("/", 404, -1, "")
		r.fake.ClearHTTP()
	})
}

// Ensures that a server that was put behind its gate is signed in to as it wants
// now.
func TestSignIn_ModeChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		if _, err := r.client.ListProfiles(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.fake.SetGate(true)
		if _, err := r.client.ListProfiles(r.Context()); err != nil {
			r.Error(err)
		}
	})
}

// Ensures that no request has an Origin but the WebSocket's own, and that
// credentials travel in headers and cookies alone.
func TestREST_Headers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.submit("x")
		_, _ = r.client.ListProfiles(r.Context())
		for _, request := range r.fake.Requests() {
			origin := request.Header.Get("Origin")
			if request.Path == "/api/ws" && origin != r.fake.URL() || request.Path != "/api/ws" && origin != "" {
				r.Errorf("%s has the origin %q", request.Path, origin)
			}
		}
	})
}

// Ensures that history is paged from the newest entry in every dialect, and that
// the turn's judgement has what it needs.
func TestHistory(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, dialect hermestest.Dialect) {
		for i := range 1201 {
			r.fake.Store("s1", profile, hermestest.Message{Role: "user", Content: fmt.Sprint(i)})
		}
		r.fake.Store("s1", profile,
			hermestest.Message{Role: "assistant", Content: "", ToolCalls: []any{map[string]any{"id": "c"}}},
			hermestest.Message{Role: "assistant", Content: []any{map[string]any{"type": "text", "text": "a"}, map[string]any{"text": "b"}}, FinishReason: "stop"})
		var all []hermes.Entry
		for n := range 3 {
			page, err := r.client.History(r.Context(), hermes.HistoryRequest{Profile: profile, StoredID: "s1", Page: n})
			if err != nil {
				r.Fatal(err)
			}
			if page.Last != (n == 2) || page.Whole != (dialect != hermestest.Dialect019) || page.StoredID != "s1" {
				r.Errorf("page %d: last %v, whole %v", n, page.Last, page.Whole)
			}
			all = append(all, page.Entries...)
		}
		if len(all) != 1203 || all[0].Text != "a\nb" || all[0].FinishReason != "stop" || !all[1].Calls || all[2].Text != "1200" || all[1202].Text != "0" {
			r.Errorf("%d entries: %+v", len(all), all[:min(3, len(all))])
		}
		_, err := r.client.History(r.Context(), hermes.HistoryRequest{Profile: "writer", StoredID: "s1"})
		r.wantKind(err, hermes.KindNotFound)
	})
}

// Ensures that history that cannot be read is its own kind of failure.
func TestHistory_Unavailable(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 500, 503} {
		inBubble(t, func(r *rig) {
			r.fake.FailHTTP("/api/sessions", status, -1, "<html>")
			_, err := r.client.History(r.Context(), hermes.HistoryRequest{Profile: profile, StoredID: "s1"})
			if hermes.ClassOf(err) != hermes.ClassHistoryUnavailable {
				r.Errorf("status %d: %v", status, err)
			}
		})
	}
}

// Ensures that files are fetched with their type, up to the limit.
func TestDownload(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.fake.PutFile("/home/x/a b.png", []byte("png"))
		r.fake.PutFile("/home/x/large", make([]byte, hermes.MaxAttachment+1))
		got, err := r.client.Download(r.Context(), profile, "/home/x/a b.png")
		if err != nil || got.Name != "a b.png" || got.Type != "image/png" || string(got.Data) != "png" {
			r.Errorf("file %+v, %v", got, err)
		}
		_, err = r.client.Download(r.Context(), profile, "/home/x/large")
		r.wantKind(err, hermes.KindTooLarge)
		_, err = r.client.Download(r.Context(), profile, "/nothing")
		r.wantKind(err, hermes.KindNotFound)
	})
}

// Ensures that over real sockets link-local and metadata addresses are not
// dialled, unless the target is an administrator's, and that redirects lead
// nowhere.
func TestAddress_OverTCP(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://169.254.169.254", "http://[fe80::1%25lo]", "http://[fd00:ec2::254]", "http://[::ffff:169.254.169.254]", "http://[64:ff9b::a9fe:a9fe]"} {
		client, err := gateway.New(gateway.Config{URL: address})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = client.Status(t.Context()); hermes.KindOf(err) != hermes.KindForbidden {
			t.Errorf("%s: %v", address, err)
		}
	}
	fake := hermestest.New(t)
	client, err := gateway.New(gateway.Config{URL: fake.URL(), Token: hermestest.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.ListProfiles(t.Context()); err != nil {
		t.Error(err)
	}
	fake.FailHTTP("/api/profiles", http.StatusMovedPermanently, 1, "", "Location", fake.URL()+"/elsewhere")
	if _, err := client.ListProfiles(t.Context()); hermes.KindOf(err) != hermes.KindForbidden {
		t.Errorf("a redirect: %v", err)
	}
}
