package hermestest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/newos4/relay/pkg/hermes/hermestest"
)

// do sends a request and returns the status and the body.
func do(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// Ensures that everything but the status and the list of providers needs valid
// credentials of the server's mode.
func TestServer_Credentials(t *testing.T) {
	t.Parallel()
	token, gated := hermestest.New(t), hermestest.New(t, hermestest.WithSignIn())
	for name, test := range map[string]struct {
		url    string
		header []string
		want   int
	}{
		"status":            {token.URL() + "/api/status", nil, 200},
		"no token":          {token.URL() + "/api/profiles", nil, 401},
		"token":             {token.URL() + "/api/profiles", []string{"X-Hermes-Session-Token", hermestest.Token}, 200},
		"status, gated":     {gated.URL() + "/api/status", nil, 200},
		"providers, gated":  {gated.URL() + "/api/auth/providers", nil, 200},
		"the token, gated":  {gated.URL() + "/api/profiles", []string{"X-Hermes-Session-Token", hermestest.Token}, 401},
		"false cookie":      {gated.URL() + "/api/profiles", []string{"Cookie", "hermes_session_at=x"}, 401},
		"page shows token":  {token.URL() + "/", nil, 200},
		"no providers here": {token.URL() + "/api/auth/providers", nil, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, body := do(t, http.MethodGet, test.url, "", test.header...); got != test.want {
				t.Errorf("status %d, want %d: %s", got, test.want, body)
			}
		})
	}
}

// Ensures that the eleventh try to sign in within a minute is refused.
func TestServer_LoginIsLimited(t *testing.T) {
	t.Parallel()
	s := hermestest.New(t, hermestest.WithSignIn())
	for i := range 11 {
		want := http.StatusUnauthorized
		if i == 10 {
			want = http.StatusTooManyRequests
		}
		if got, _ := do(t, http.MethodPost, s.URL()+"/auth/password-login", `{"provider":"basic","username":"operator","password":"x"}`); got != want {
			t.Fatalf("try %d: status %d, want %d", i+1, got, want)
		}
	}
}

// Ensures that a call with a parameter that its method does not declare is
// refused by name in strict dialects, and taken in the others.
func TestServer_UnknownParameter(t *testing.T) {
	t.Parallel()
	for _, dialect := range hermestest.Dialects() {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			s := hermestest.New(t, hermestest.WithDialect(dialect))
			ws, _, err := websocket.Dial(t.Context(), s.URL()+"/api/ws?token="+hermestest.Token, nil) //nolint:bodyclose // the library closes it
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ws.CloseNow() }()
			if got := next(t, ws); !strings.Contains(got, "gateway.ready") {
				t.Fatalf("the first frame is %s", got)
			}
			if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"session.create","params":{"flavour":1}}`)); err != nil {
				t.Fatal(err)
			}
			got := next(t, ws)
			strict := dialect == hermestest.DialectNew || dialect == hermestest.DialectGated
			if refused := strings.Contains(got, "4000") && strings.Contains(got, "flavour"); refused != strict {
				t.Errorf("answer %s", got)
			}
		})
	}
}

func next(t *testing.T, ws *websocket.Conn) string {
	t.Helper()
	_, data, err := ws.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		t.Fatalf("malformed frame %q", data)
	}
	return string(data)
}
