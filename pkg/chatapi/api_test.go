package chatapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/storage"
)

const (
	postPath = "/spaces/newos4/api/chat/post.php"
	pollPath = "/spaces/newos4/api/chat/poll.php"
)

// Ensures that a message makes the round trip: post, reply by hermes, poll,
// with exactly the members that the contract shows (sections 4 and 5).
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	posted := f.post(1, "hello")
	posted.want(t, http.StatusCreated, "")
	epoch := f.clock.now().UnixMilli()
	wantPost := fmt.Sprintf(`{"success":true,"id":"%s","epoch":%d,"ts":"2026-10-23T18:00:00+00:00","thread":"%s"}`, posted.json["id"], epoch, threadOf(1))
	if diff := cmp.Diff(wantPost, posted.Body.String()); diff != "" {
		t.Errorf("post (-want +got):\n%s", diff)
	}
	if _, err := f.store.Append(t.Context(), threadOf(1), storage.Post{Author: chat.Hermes, Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	polled := f.poll(1, fmt.Sprintf("?since=%d", epoch))
	polled.want(t, http.StatusOK, "")
	messages := polled.json["messages"].([]any)
	if len(messages) != 1 || messages[0].(map[string]any)["author"] != "hermes" || messages[0].(map[string]any)["text"] != "hi" {
		t.Errorf("poll = %s", polled.Body)
	}
	if polled.json["awaiting"] != false || polled.json["truncated"] != false || polled.json["cursor"] != float64(epoch+1) || len(polled.json) != 6 {
		t.Errorf("poll = %s", polled.Body)
	}
}

// Ensures that answers that are built at the same time, in buffers that are used
// again, never hold each other's bytes.
func TestPoll_AnswersDoNotMix(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.api.Logger = slog.New(slog.DiscardHandler) })
	const threads = 8
	for n := range threads {
		f.post(n, strings.Repeat(fmt.Sprint(n), 1+500*n)).want(t, http.StatusCreated, "")
	}
	var running sync.WaitGroup
	for n := range threads {
		want := f.poll(n, "").Body.String()
		running.Go(func() {
			for range 200 {
				if got := f.poll(n, "").Body.String(); got != want {
					t.Errorf("thread %d: %s, want %s", n, got, want)
					return
				}
				f.do(request{method: "GET", path: "/nothing"}).want(t, http.StatusNotFound, "not_found")
			}
		})
	}
	running.Wait()
}

// errorCase is one row of the contract's error table with a request that
// provokes it.
type errorCase struct {
	name    string
	prepare func(*fixture)
	request request
	status  int
	code    string
	check   func(*testing.T, answer)
}

func good(body string) request {
	return request{method: "POST", path: postPath, token: []string{token(1)}, body: body}
}

func hasHeader(name, value string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		t.Helper()
		if got := a.Header().Get(name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
}

func errorCases() []errorCase {
	upper := strings.ToUpper(strings.Repeat("ab", 32))
	poll := func(query string) request {
		return request{method: "GET", path: pollPath + query, token: []string{token(1)}}
	}
	cases := []errorCase{
		{name: "no token", request: request{method: "POST", path: postPath}, status: 401, code: "bad_token"},
		{name: "upper case", request: request{method: "GET", path: pollPath, token: []string{upper}}, status: 401, code: "bad_token"},
		{name: "short", request: request{method: "GET", path: pollPath, token: []string{token(1)[1:]}}, status: 401, code: "bad_token"},
		{name: "repeated token", request: request{method: "GET", path: pollPath, token: []string{token(1), token(1)}}, status: 401, code: "bad_token"},
		{name: "joined tokens", request: request{method: "GET", path: pollPath, token: []string{token(1) + ", " + token(1)}}, status: 401, code: "bad_token"},
		{name: "put", request: request{method: "PUT", path: postPath, token: []string{token(1)}}, status: 405, code: "method", check: hasHeader("Allow", "POST")},
		{name: "get of post", request: request{method: "GET", path: postPath}, status: 405, code: "method", check: hasHeader("Allow", "POST")},
		{name: "post of poll", request: request{method: "POST", path: pollPath}, status: 405, code: "method", check: hasHeader("Allow", "GET, HEAD")},
		{name: "options", request: request{method: "OPTIONS", path: pollPath, header: map[string]string{"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}}, status: 405, code: "method"},
		{name: "made-up method", request: request{method: "BREW", path: postPath}, status: 405, code: "method"},
		{name: "too large", request: good(`{"text":"` + strings.Repeat("x", 32768) + `"}`), status: 413, code: "too_large"},
		{name: "too long", request: good(`{"text":"` + strings.Repeat("😀", 4001) + `"}`), status: 413, code: "too_long"},
		{name: "corrupt post", prepare: corruptThread, request: good(`{"text":"x"}`), status: 500, code: "thread file is corrupt", check: hidesPaths},
		{name: "corrupt poll", prepare: corruptThread, request: poll(""), status: 500, code: "thread file is corrupt", check: hidesPaths},
		{name: "unknown path", request: request{method: "GET", path: "/spaces/newos4/api/chat/none.php"}, status: 404, code: "not_found"},
		{name: "trailing slash", request: request{method: "GET", path: pollPath + "/"}, status: 404, code: "not_found"},
		{name: "root", request: request{method: "GET", path: "/"}, status: 404, code: "not_found"},
		{name: "retired", request: request{method: "POST", path: "/api/debug/agent-replies.php"}, status: 410, code: "gone", check: hasPointer},
		{name: "retired, below the space", request: request{method: "DELETE", path: "/spaces/newos4/api/debug/agent-replies.php"}, status: 410, code: "gone", check: hasPointer},
		{name: "gzip", request: request{method: "POST", path: postPath, token: []string{token(1)}, body: "{}", header: map[string]string{"Content-Encoding": "gzip"}}, status: 400, code: "bad_request"},
		{name: "form", request: request{method: "POST", path: postPath, token: []string{token(1)}, body: "{}", header: map[string]string{"Content-Type": "text/plain"}}, status: 400, code: "bad_request"},
		{name: "two content types", request: request{method: "POST", path: postPath, token: []string{token(1)}, body: `{"text":"x"}`, types: []string{"application/json", "application/json"}}, status: 400, code: "bad_request"},
		{name: "content type junk", request: request{method: "POST", path: postPath, token: []string{token(1)}, body: "{}", header: map[string]string{"Content-Type": ";"}}, status: 400, code: "bad_request"},
	}
	for _, query := range []string{"?since=-1", "?since=1.5", "?since=1e3", "?since=", "?since=%20", "?since=9223372036854775808", "?since=1&since=1", "?since=+1", "?since=x", "?since=%zz"} {
		cases = append(cases, errorCase{name: "poll " + query, request: poll(query), status: 400, code: "bad_request"})
	}
	for _, body := range []string{
		"", "null", "[]", `"x"`, "5", "{", "{}", `{"text":`, `{"text":null}`, `{"text":5}`, `{"text":["x"]}`, `{"text":""}`, `{"text":" \n\t"}`,
		`{"text":"x"}{}`, `{"text":"x"} junk`, `{"text":"a","text":"b"}`, `{"TEXT":"a"}`, `{"x":1,"x":2,"text":"a"}`,
		`{"text":"\ud83d"}`, `{"text":"\udc00\ud83d"}`, "{\"text\":\"\xff\"}", "\ufeff{\"text\":\"x\"}", `{"text":"x","kind":"hermes"}`, `{"text":"x","kind":""}`,
		`{"text":"x","kind":null}`, `{"text":"x","kind":1}`, `{"text":"x","kind":"agent","kind":"hermes"}`, `{'text':'x'}`,
		`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 12000),
	} {
		name := body
		if len(name) > 30 {
			name = name[:30]
		}
		cases = append(cases, errorCase{name: "body " + name, request: good(body), status: 400, code: "bad_request"})
	}
	return cases
}

func corruptThread(f *fixture) {
	f.post(1, "x").want(f.T, http.StatusCreated, "")
	if err := os.WriteFile(filepath.Join(f.store.Path(), string(threadOf(1))+".json"), []byte("{"), 0o660); err != nil {
		f.Fatal(err)
	}
}

func hidesPaths(t *testing.T, a answer) {
	t.Helper()
	if strings.Contains(a.Body.String(), "/") || strings.Contains(a.Body.String(), string(threadOf(1))) {
		t.Errorf("the answer tells of files: %s", a.Body)
	}
}

func hasPointer(t *testing.T, a answer) {
	t.Helper()
	if a.json["pointer"] != "/api/chat/post.php" {
		t.Errorf("pointer = %v", a.json["pointer"])
	}
}

// Ensures the contract's error table row by row: status, code, headers, and
// nothing stored (section 6).
func TestErrorTable(t *testing.T) {
	t.Parallel()
	for _, c := range errorCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if c.prepare != nil {
				c.prepare(f)
			}
			before, _ := f.store.Threads()
			a := f.do(c.request)
			a.want(t, c.status, c.code)
			for name, value := range map[string]string{
				"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			} {
				hasHeader(name, value)(t, a)
			}
			if c.check != nil {
				c.check(t, a)
			}
			if after, _ := f.store.Threads(); len(after) != len(before) {
				t.Errorf("a refused request made a thread: %v", after)
			}
			if strings.Contains(f.log.String(), token(1)) || strings.Contains(f.log.String(), "ABAB") {
				t.Errorf("the log holds the token:\n%s", f.log)
			}
		})
	}
}

// brokenStore is a store whose disk fails.
type brokenStore struct {
	chatapi.Store
	err error
}

func (b brokenStore) Append(context.Context, chat.ThreadID, storage.Post) (storage.Receipt, error) {
	return storage.Receipt{}, b.err
}

func (b brokenStore) Poll(chat.ThreadID, int64) (chat.Page, error) { return chat.Page{}, b.err }

// Ensures that a failure of the disk and one that nobody foresaw say so by their
// code, tell the details to the log alone, and cost nothing in the windows
// (section 6).
func TestFailures_AreForTheLog(t *testing.T) {
	t.Parallel()
	for code, err := range map[string]error{
		"storage":  chat.Errorf(chat.CodeStorage, "writing /var/lib/secret: %w", syscall.ENOSPC),
		"internal": errors.New("a fault in /var/lib/secret"),
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.api = chatapi.New(f.settings.api, brokenStore{f.store, err}, f.limiter)
			for range 50 {
				f.post(1, "x").want(t, http.StatusInternalServerError, code)
			}
			for _, a := range []answer{f.post(1, "x"), f.poll(1, "")} {
				a.want(t, http.StatusInternalServerError, code)
				hidesPaths(t, a)
				if a.json["error"] == "" {
					t.Errorf("the answer says nothing: %s", a.Body)
				}
			}
			if !strings.Contains(f.log.String(), "level=ERROR") || !strings.Contains(f.log.String(), "/var/lib/secret") {
				t.Errorf("the log does not tell what failed:\n%s", f.log)
			}
			for _, window := range []string{chatapi.WindowThread, chatapi.WindowIP, chatapi.WindowIPThreads} {
				if n := f.limiter.Keys(window); n != 0 {
					t.Errorf("%d keys count in the window %s", n, window)
				}
			}
		})
	}
}

// Ensures what is accepted although it looks unusual (section 3).
func TestPost_Accepts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body, contentType, text, author string
	}{
		"exactly 4000 emoji":  {`{"text":"` + strings.Repeat("😀", 4000) + `"}`, "application/json", strings.Repeat("😀", 4000), "operator"},
		"surrogate pair":      {`{"text":"\ud83d\ude00"}`, "application/json; charset=utf-8", "😀", "operator"},
		"replacement":         {"{\"text\":\"\ufffd\"}", "", "\ufffd", "operator"},
		"agent":               {`{"kind":"agent","text":"x"}`, "APPLICATION/JSON", "x", "agent"},
		"blanks are kept":     {"{\"text\":\"  x\\n \"}  \n", "application/json", "  x\n ", "operator"},
		"unknown members":     {`{"thread":"df0790f236013511","author":"hermes","TEXT":"y","text":"x","z":{"text":[null]}}`, "application/json", "x", "operator"},
		"escaped member name": {`{"\u0074ext":"x"}`, "application/json", "x", "operator"},
		"nul":                 {`{"text":"a\u0000b"}`, "application/json", "a\x00b", "operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := good(test.body)
			if test.contentType != "" {
				r.header = map[string]string{"Content-Type": test.contentType}
			}
			f.do(r).want(t, http.StatusCreated, "")
			messages := f.poll(1, "").json["messages"].([]any)
			m := messages[0].(map[string]any)
			if len(messages) != 1 || m["text"] != test.text || m["author"] != test.author {
				t.Errorf("stored %v", m)
			}
		})
	}
}

// untouchable is a store that must not be asked anything.
type untouchable struct{ t *testing.T }

var errTouched = errors.New("touched")

func (u untouchable) Append(context.Context, chat.ThreadID, storage.Post) (storage.Receipt, error) {
	u.t.Error("Append was called")
	return storage.Receipt{}, errTouched
}

func (u untouchable) Poll(chat.ThreadID, int64) (chat.Page, error) {
	u.t.Error("Poll was called")
	return chat.Page{}, errTouched
}

func (u untouchable) PostsAfter(chat.ThreadID, int64) ([]int64, error) {
	u.t.Error("PostsAfter was called")
	return nil, errTouched
}

// Ensures that what is refused before the storage opens no file: no token, a
// bad one, and everything that comes earlier or on the way (section 2).
func TestRefused_TouchesNoDisk(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.api = chatapi.New(chatapi.Options{
		Space: "newos4", Limits: chatapi.Limits{Text: 4000, Body: 32768}, Now: f.clock.now,
		Logger: slog.New(slog.DiscardHandler), AllowedOrigins: []string{"https://a.example"},
	}, untouchable{t}, f.limiter)
	for _, c := range errorCases() {
		if c.prepare != nil {
			continue
		}
		if a := f.do(c.request); a.Code != c.status && a.Code != http.StatusNoContent {
			t.Errorf("%s: status %d, want %d", c.name, a.Code, c.status)
		}
	}
}

// Ensures the order of the checks: of two faults the earlier one is told
// (section 2).
func TestPost_OrderOfChecks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.storage.Threads = 1; s.windows[1].Limit = 1 })
	huge := strings.Repeat("x", 40000)
	long := `{"text":"` + strings.Repeat("x", 4001) + `"}`
	f.post(1, "x").want(t, http.StatusCreated, "")
	for _, test := range []struct {
		name   string
		r      request
		status int
		code   string
	}{
		{"method before token", request{method: "PUT", path: postPath, body: huge}, 405, "method"},
		{"token before size", request{method: "POST", path: postPath, body: huge}, 401, "bad_token"},
		{"size before JSON", request{method: "POST", path: postPath, token: []string{token(2)}, body: huge}, 413, "too_large"},
		{"JSON before length", request{method: "POST", path: postPath, token: []string{token(2)}, body: long + "}"}, 400, "bad_request"},
		{"length before rate", request{method: "POST", path: postPath, token: []string{token(2)}, body: long}, 413, "too_long"},
		{"rate before threads", request{method: "POST", path: postPath, token: []string{token(2)}, body: `{"text":"x"}`}, 429, "rate_limited"},
		{"threads", request{method: "POST", path: postPath, token: []string{token(2)}, body: `{"text":"x"}`, peer: "192.0.2.9:1"}, 507, "thread_limit"},
	} {
		t.Run(test.name, func(t *testing.T) { f.do(test.r).want(t, test.status, test.code) })
	}
}

// Ensures that a poll of an unknown thread answers empty and makes nothing, and
// that HEAD answers like GET.
func TestPoll_UnknownThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.poll(1, "?since=77")
	want := fmt.Sprintf(`{"success":true,"thread":"%s","messages":[],"awaiting":false,"truncated":false,"cursor":77}`, threadOf(1))
	if a.Code != http.StatusOK || a.Body.String() != want {
		t.Errorf("poll = %d %s", a.Code, a.Body)
	}
	if _, err := os.Stat(f.store.Path()); !os.IsNotExist(err) {
		t.Errorf("the poll made the directory: %v", err)
	}
}

// Ensures that nothing under the data directory is served in any spelling, by
// any method, and that what exists and what does not look the same (section 1).
func TestData_IsForbidden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.post(1, "x").want(t, http.StatusCreated, "")
	existing := "/spaces/newos4/data/chat/" + string(threadOf(1)) + ".json"
	reference := f.do(request{method: "GET", path: existing}).Body.String()
	for _, path := range []string{
		existing, "/spaces/newos4/data/", "/spaces/newos4/data", "/spaces/newos4/data/chat/none.json",
		"/spaces/newos4/./data/x", "/spaces/newos4/api/../data/x", "/spaces/newos4/api/chat/../../data/x",
		"/spaces/newos4/%64ata/x", "/spaces/newos4/data%2fchat", "/spaces/newos4/api/%2e%2e/data/x", "/spaces/newos4/%252e/data/x",
		"/spaces/newos4//data/x", "/spaces//newos4/data/x", "/x//../spaces/newos4/data/x", `/spaces/newos4/api\..\data\x`,
		"/spaces/newos4/DATA/x", "/Spaces/NewOS4/Data/x", "/spaces/newos4/data/../api/chat/poll.php",
		"/spaces/newos4/a%2fb/../data/x", "/spaces/newos4/api/%25252e%25252e/data/x",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"} {
			a := f.rawPath(method, path)
			a.want(t, http.StatusForbidden, "forbidden")
			if got := a.Body.String(); got != reference {
				t.Errorf("%s %s: %s, want %s", method, path, got, reference)
			}
		}
	}
	for _, path := range []string{"/spaces/newos4/database", "/spaces/newos4/api/chat/data/x", "/spaces/other/data/x"} {
		f.rawPath("GET", path).want(t, http.StatusNotFound, "not_found")
	}
}

// rawPath sends a path exactly as it is written.
func (f *fixture) rawPath(method, path string) answer {
	f.Helper()
	client, server := net.Pipe()
	listener := &oneConn{conn: server, done: make(chan struct{})}
	s := &http.Server{Handler: f.api, ReadHeaderTimeout: time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(listener) })
	defer wg.Wait()
	defer func() { _ = s.Close() }()
	if _, err := fmt.Fprintf(client, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path); err != nil {
		f.Fatal(err)
	}
	raw, err := io.ReadAll(client)
	if err != nil {
		f.Fatal(err)
	}
	head, body, _ := strings.Cut(string(raw), "\r\n\r\n")
	a := answer{ResponseRecorder: httptest.NewRecorder()}
	if _, err := fmt.Sscanf(head, "HTTP/1.1 %d", &a.Code); err != nil {
		f.Fatalf("%q: %v", raw, err)
	}
	if method == http.MethodHead {
		if body != "" {
			f.Errorf("HEAD has a body: %q", body)
		}
		body = f.rawPath(http.MethodGet, path).Body.String()
	}
	a.Body.WriteString(body)
	if err := json.Unmarshal([]byte(body), &a.json); err != nil {
		f.Fatalf("%s %s: %v: %q", method, path, err, raw)
	}
	return a
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conn net.Conn
	once sync.Once
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	var c net.Conn
	l.once.Do(func() { c = l.conn })
	if c != nil {
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { close(l.done); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// Ensures that a panic answers like any other failure and tells only the log.
func TestPanic_IsAnInternalError(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.api = chatapi.New(chatapi.Options{Space: "newos4", Now: f.clock.now, Logger: slog.New(slog.NewTextHandler(f.log, nil))}, nil, f.limiter)
	a := f.poll(1, "")
	a.want(t, http.StatusInternalServerError, "internal")
	if strings.Contains(a.Body.String(), "nil") || strings.Contains(a.Body.String(), "goroutine") {
		t.Errorf("the answer tells of the panic: %s", a.Body)
	}
	if !strings.Contains(f.log.String(), "goroutine") {
		t.Error("the log does not tell of the panic")
	}
}

// Ensures that the log has one line per request with the thread, and neither
// text nor token, even where a client put one into the path.
func TestLog_OneLineWithoutSecrets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.post(1, "the secret text")
	f.poll(1, "?since=0")
	f.do(request{method: "GET", path: "/x/" + token(1) + "?token=" + token(1)})
	f.do(request{method: "BREWSECRET", path: "/%1b[31m" + strings.Repeat("long", 100)})
	text := f.log.String()
	if n := strings.Count(text, "msg=request"); n != 4 || strings.Count(text, "\n") != 4 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if !strings.Contains(text, "thread="+string(threadOf(1))) || !strings.Contains(text, "route=post") {
		t.Errorf("thread or route is missing:\n%s", text)
	}
	for _, secret := range []string{"secret", "SECRET", token(1), "\x1b", strings.Repeat("long", 60)} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q:\n%s", secret, text)
		}
	}
}

// Ensures that no form of the log carries what a terminal would obey
// (https://github.com/solana-labs/solana/issues/20495).
func TestLog_ControlsAreSpelledOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) {
		log := new(lockedBuffer)
		s.api.Logger = slog.New(slog.NewJSONHandler(log, nil))
		t.Cleanup(func() {
			for _, bad := range []string{"\u009b", "\u202e", "\U000e0072", "\x7f", "\x1b"} {
				if strings.Contains(log.String(), bad) {
					t.Errorf("the log holds %q:\n%q", bad, log.String())
				}
			}
			if !strings.Contains(log.String(), "⟦U+009B⟧") {
				t.Errorf("the log does not tell of the path:\n%s", log.String())
			}
		})
	})
	f.do(request{method: "GET", path: "/x%c2%9b2J%1b[2J%e2%80%ae%f3%a0%81%b2%0a%7f%ff"})
}

// canceled is a store whose lock is held until the client has gone.
type canceled struct{ chatapi.Store }

func (canceled) Append(ctx context.Context, _ chat.ThreadID, _ storage.Post) (storage.Receipt, error) {
	<-ctx.Done()
	return storage.Receipt{}, chat.Errorf(chat.CodeStorage, "%w", context.Cause(ctx))
}

// Ensures that a client that goes away while its post waits raises no alarm, and
// costs nothing in the windows.
func TestLog_ClientThatWentAwayIsNoError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *settings) { s.windows[0].Limit = 1 })
	whole := f.api
	f.api = chatapi.New(f.settings.api, canceled{f.store}, f.limiter)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/spaces/newos4/api/chat/post.php", strings.NewReader(`{"text":"x"}`))
	r.Header.Set("X-Chat-Token", token(1))
	r.RemoteAddr = "192.0.2.1:1"
	f.api.ServeHTTP(httptest.NewRecorder(), r)
	if text := f.log.String(); strings.Contains(text, "level=ERROR") || !strings.Contains(text, "code=storage") {
		t.Errorf("the log says:\n%s", text)
	}
	f.api = whole
	f.post(1, "x").want(t, http.StatusCreated, "")
}
