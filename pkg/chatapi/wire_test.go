package chatapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Ensures that an allowed origin may preflight and read Retry-After, that a
// foreign one gets no permission, and that a preflight costs nothing
// (section 6; rs/cors#185).
func TestOrigins(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.api.AllowedOrigins = []string{"https://a.example"} })
	preflight := func(origin string) answer {
		return f.do(request{method: "OPTIONS", path: postPath, header: map[string]string{
			"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-chat-token, content-type",
		}})
	}
	allowed := preflight("https://a.example")
	allowed.want(t, http.StatusNoContent, "")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "https://a.example", "Access-Control-Allow-Headers": "Content-Type, X-Chat-Token",
		"Access-Control-Allow-Methods": "POST", "Access-Control-Expose-Headers": "Retry-After", "Vary": "Origin",
	} {
		hasHeader(name, want)(t, allowed)
	}
	foreign := preflight("https://evil.example")
	foreign.want(t, http.StatusNoContent, "")
	for name, want := range map[string]string{"Access-Control-Allow-Origin": "", "Access-Control-Allow-Headers": "", "Vary": "Origin"} {
		hasHeader(name, want)(t, foreign)
	}
	post := good(`{"text":"x"}`)
	post.header = map[string]string{"Origin": "https://a.example"}
	hasHeader("Access-Control-Allow-Origin", "https://a.example")(t, f.do(post))
	f.do(request{method: "OPTIONS", path: postPath}).want(t, http.StatusMethodNotAllowed, "method")
	notAsking := request{method: "OPTIONS", path: postPath, header: map[string]string{"Origin": "https://a.example"}}
	f.do(notAsking).want(t, http.StatusMethodNotAllowed, "method")
}

// Ensures that without allowed origins no answer speaks of origins.
func TestOrigins_NoneByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := good(`{"text":"x"}`)
	r.header = map[string]string{"Origin": "https://a.example"}
	a := f.do(r)
	hasHeader("Access-Control-Allow-Origin", "")(t, a)
	hasHeader("Vary", "")(t, a)
}

// countingReader counts what is read of it.
type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Ensures that a body over the limit is not read on, with a length and without
// (headroomlabs-ai/headroom#3326).
func TestBody_IsNotReadOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		length int64
		most   int64
	}{"declared": {10 << 30, 0}, "just over": {32769, 0}, "chunked": {-1, 32768 + 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			body := &countingReader{r: endless{}}
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, postPath, body)
			req.ContentLength = test.length
			req.Header.Set("X-Chat-Token", token(1))
			rec := httptest.NewRecorder()
			f.api.ServeHTTP(rec, req)
			if rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), `"too_large"`) {
				t.Errorf("answer %d %s", rec.Code, rec.Body)
			}
			if n := body.n.Load(); n > test.most {
				t.Errorf("%d bytes were read, at most %d allowed", n, test.most)
			}
			if rec.Header().Get("Connection") != "close" {
				t.Error("the connection goes on although its body was not read")
			}
		})
	}
}

// Ensures that over a real connection a client that sends 8 MB sees the 413
// every time, and not a reset (ArcadeData/arcadedb#8082).
func TestBody_RefusalArrives(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := httptest.NewServer(f.api)
	defer server.Close()
	for i := range 30 {
		body := io.Reader(strings.NewReader(strings.Repeat("x", 8<<20)))
		if i%2 == 0 {
			body = struct{ io.Reader }{body} // without a length
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+postPath, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Chat-Token", token(1))
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatalf("try %d: %v", i, err)
		}
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("try %d: status %d", i, resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
}

// Ensures that a body that ends too early is refused and stores nothing.
func TestBody_EndsTooEarly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, postPath, io.MultiReader(strings.NewReader(`{"text":"x"`), failing{}))
	req.ContentLength = 1000
	req.Header.Set("X-Chat-Token", token(1))
	rec := httptest.NewRecorder()
	f.api.ServeHTTP(rec, req)
	if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), `"bad_request"`) || rec.Header().Get("Connection") != "close" {
		t.Errorf("answer %d %s %v", rec.Code, rec.Body, rec.Header())
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Ensures that HEAD on poll answers as GET does, without the body.
func TestPoll_Head(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.post(1, "x").want(t, http.StatusCreated, "")
	server := httptest.NewServer(f.api)
	defer server.Close()
	var lengths [2]int64
	for i, method := range []string{http.MethodGet, http.MethodHead} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+pollPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Chat-Token", token(1))
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		lengths[i] = resp.ContentLength
		if resp.StatusCode != http.StatusOK || (len(body) == 0) != (method == http.MethodHead) {
			t.Errorf("%s: %d with %d bytes", method, resp.StatusCode, len(body))
		}
	}
	if lengths[0] != lengths[1] {
		t.Errorf("lengths differ: %v", lengths)
	}
}

// Ensures that no body makes the API fail, and that whatever is accepted is
// stored as the standard library decodes it.
func FuzzPost(f *testing.F) {
	for _, c := range errorCases() {
		if c.request.path == postPath {
			f.Add(c.request.body)
		}
	}
	f.Add(`{"text":"\u0000 \ud83d\ude00","kind":"agent"}`)
	f.Fuzz(func(t *testing.T, body string) {
		fx := newFixture(t)
		a := fx.do(request{method: "POST", path: postPath, token: []string{token(1)}, body: body})
		messages, _ := fx.poll(1, "").json["messages"].([]any)
		switch {
		case a.Code == http.StatusCreated && len(messages) == 1:
		case a.Code >= 400 && a.Code < 500 && len(messages) == 0:
		default:
			t.Errorf("%q: status %d, %d messages", body, a.Code, len(messages))
		}
	})
}

func (f *fixture) warnings() int {
	return strings.Count(f.log.String(), "level=WARN")
}
