package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// Ensures the main walk through the real process: a browser posts, Hermes
// answers on the host, the next poll shows the answer; and that SIGTERM ends it
// with exit code 0.
func TestServe_RoundTrip(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	posted := r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"hello"}`)
	r.waitForLog(t, "a thread awaits hermes")
	store := openStore(r.root)
	defer func() { _ = store.Close() }()
	id := chat.ThreadID(posted["thread"].(string))
	if _, err := store.Append(t.Context(), id, storage.Post{Author: chat.Hermes, Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	polled := r.mustSend(t, 200, "GET", fmt.Sprintf("poll.php?since=%.0f", posted["epoch"]), token(1), "")
	messages := polled["messages"].([]any)
	if len(messages) != 1 || messages[0].(map[string]any)["text"] != "hi" || polled["awaiting"] != false {
		t.Errorf("poll = %v", polled)
	}
	if err := r.stop(); err != nil {
		t.Errorf("SIGTERM: %v\n%s", err, r.log)
	}
}

// Ensures that a graceful restart lifts no limit, neither the thread's nor the
// address's (section 7).
func TestServe_RestartKeepsTheWindows(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	limits := []string{"RELAYD_LIMITS_THREAD_POSTS=2", "RELAYD_LIMITS_IP_POSTS=3"}
	r := start(t, root, limits...)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, root, limits...)
	if got := r.mustSend(t, 429, "POST", "post.php", token(1), `{"text":"x"}`); got["scope"] != "thread" {
		t.Errorf("refused by %v", got)
	}
	r.mustSend(t, 201, "POST", "post.php", token(2), `{"text":"x"}`)
	if got := r.mustSend(t, 429, "POST", "post.php", token(2), `{"text":"x"}`); got["scope"] != "ip" {
		t.Errorf("refused by %v", got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, root, "RELAYD_LIMITS_IP_NEW_THREADS=2")
	if got := r.mustSend(t, 429, "POST", "post.php", token(3), `{"text":"x"}`); got["scope"] != "ip" || got["limit"] != 2.0 {
		t.Errorf("one more new thread is refused by %v", got)
	}
	info, err := os.Stat(filepath.Join(root, "state", "rate-windows.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of addresses: %v, %v", info.Mode(), err)
	}
}

// Ensures that a daemon serves although what it kept of the windows is broken, and
// says so.
func TestServe_BrokenWindows(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "state", "rate-windows.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, root)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	if !strings.Contains(r.log.String(), "the rate windows start empty") {
		t.Errorf("the log does not say so:\n%s", r.log)
	}
}

// Ensures that the keys which bound a browser reach what enforces them.
func TestServe_ObeysItsConfiguration(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_LIMITS_TEXT=5", "RELAYD_LIMITS_BODY=100", "RELAYD_LIMITS_PAGE=1", "RELAYD_LIMITS_MESSAGES=2",
		"RELAYD_LIMITS_IP_NEW_THREADS=1", "RELAYD_LIMITS_IP_NEW_WINDOW=1h", "RELAYD_HTTP_TRUSTED_PROXIES=203.0.113.0/24",
		"RELAYD_HTTP_ALLOWED_ORIGINS=https://a.example")
	for range 3 {
		r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"12345"}`)
	}
	for body, code := range map[string]string{`{"text":"123456"}`: "too_long", strings.Repeat("x", 101): "too_large"} {
		if got := r.mustSend(t, 413, "POST", "post.php", token(1), body); got["code"] != code {
			t.Errorf("%s: %v", body, got)
		}
	}
	cursor, pages := 1.0, 0
	for truncated := true; truncated; pages++ {
		polled := r.mustSend(t, 200, "GET", fmt.Sprintf("poll.php?since=%.0f", cursor), token(1), "")
		if n := len(polled["messages"].([]any)); n != 1 {
			t.Errorf("%d messages on a page, want 1", n)
		}
		cursor, truncated = polled["cursor"].(float64), polled["truncated"].(bool)
	}
	if pages != 2 {
		t.Errorf("%d messages are kept, want 2", pages)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.base+"post.php", strings.NewReader(`{"text":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Chat-Token", token(2))
	req.Header.Set("X-Forwarded-For", "198.51.100.7") // loopback is no trusted proxy here
	req.Header.Set("Origin", "https://a.example")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var refused map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&refused); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusTooManyRequests || refused["limit"] != 1.0 || refused["window_s"] != 3600.0 {
		t.Errorf("one more new thread: %d %v", resp.StatusCode, refused)
	}
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "https://a.example" {
		t.Errorf("the origin is allowed as %q", got)
	}
}

// Ensures that the configured number of threads is the limit, and that the log
// warns of it.
func TestServe_ObeysItsThreadLimit(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_LIMITS_THREADS=1")
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	r.mustSend(t, 507, "POST", "post.php", token(2), `{"text":"x"}`)
	r.waitForLog(t, "most threads that the limit allows exist")
}

// Ensures that a killed daemon loses and doubles no acknowledged message, and
// that the next one serves at once.
func TestServe_KilledUnderLoad(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	acknowledged := make(map[string]int)
	for round := range 5 {
		r := start(t, root, "RELAYD_LIMITS_THREAD_POSTS=100000", "RELAYD_LIMITS_IP_POSTS=1000000", "RELAYD_LIMITS_MESSAGES=65536")
		var mu sync.Mutex
		var wg sync.WaitGroup
		enough := make(chan struct{})
		var once sync.Once
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					text := fmt.Sprintf("round %d writer %d message %d", round, w, i)
					status, _, err := send(t.Context(), http.DefaultClient, "POST", r.base+"post.php", token(w%3), `{"text":"`+text+`"}`)
					if err != nil {
						return // killed
					}
					mu.Lock()
					if status == http.StatusCreated {
						acknowledged[text]++
					}
					if len(acknowledged) >= 60*(round+1) {
						once.Do(func() { close(enough) })
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		if err := r.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
	}
	store := openStore(root)
	defer func() { _ = store.Close() }()
	stored := make(map[string]int)
	for w := range 3 {
		thread, err := store.Thread(chat.Token(token(w)).Thread())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range thread.Messages() {
			stored[m.Text]++
		}
	}
	for text := range acknowledged {
		if stored[text] == 0 {
			t.Errorf("lost: %s", text)
		}
	}
	for text, n := range stored {
		if n > 1 {
			t.Errorf("%d times: %s", n, text)
		}
	}
	t.Logf("%d acknowledged, %d stored, 5 kills", len(acknowledged), len(stored))
}

// Ensures that a post which is being sent when SIGTERM comes is answered and
// stored before the process ends, and that the operator is answered until then.
func TestServe_FinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	conn := r.dial(t)
	body := `{"text":"in flight"}`
	// The server asks for the body once the request has reached its handler.
	head := fmt.Sprintf("POST /spaces/newos4/api/chat/post.php HTTP/1.1\r\nHost: x\r\nX-Chat-Token: %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", token(1), len(body))
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.waitForLog(t, "msg=stopping")
	if status, _ := fetch(t, r.admin(t)+"/healthz"); status != http.StatusOK {
		t.Errorf("the operator is answered %d", status)
	}
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(rest), "HTTP/1.1 201") {
		t.Errorf("answer %q, %v", rest, err)
	}
	if err := r.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	store := openStore(r.root)
	defer func() { _ = store.Close() }()
	if thread, err := store.Thread(chat.Token(token(1)).Thread()); err != nil || thread.Len() != 1 {
		t.Errorf("%d messages stored, %v", thread.Len(), err)
	}
}

// waitForLog waits until the log holds text.
func (r *relayd) waitForLog(t *testing.T, text string) {
	t.Helper()
	r.waitForLogTimes(t, text, 1)
}

// waitForLogTimes waits until the log says a text that often.
func (r *relayd) waitForLogTimes(t *testing.T, text string, times int) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for strings.Count(r.log.String(), text) < times {
		select {
		case <-r.log.written:
		case <-timeout:
			t.Fatalf("the log never says %q %d times:\n%s", text, times, r.log)
		}
	}
}

// Ensures that a client which sends slowly, or nothing, is dropped by the bound
// that is for it alone, while others are served (kite-org/kite#461).
func TestServe_DropsSlowClients(t *testing.T) {
	t.Parallel()
	request := "POST /spaces/newos4/api/chat/post.php HTTP/1.1\r\nHost: x\r\nX-Chat-Token: " + token(1) + "\r\nContent-Length: %d\r\n\r\n{}"
	for name, test := range map[string]struct{ timeout, sent string }{
		"nothing":         {"HEADER", ""},
		"half a head":     {"HEADER", "POST /spaces/newos4/api/chat/post.php HTTP/1.1\r\nHost: x\r\n"},
		"half a body":     {"READ", fmt.Sprintf(request, 100)},
		"no next request": {"IDLE", fmt.Sprintf(request, len("{}"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := []string{"RELAYD_HTTP_HEADER_TIMEOUT=1h", "RELAYD_HTTP_READ_TIMEOUT=1h", "RELAYD_HTTP_IDLE_TIMEOUT=1h"}
			r := start(t, t.TempDir(), append(environ, "RELAYD_HTTP_"+test.timeout+"_TIMEOUT=200ms")...)
			conn := r.dial(t)
			if _, err := io.WriteString(conn, test.sent); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if answer, err := io.ReadAll(conn); err != nil {
				t.Errorf("not dropped: %v, %q", err, answer)
			}
			r.mustSend(t, 200, "GET", "poll.php", token(1), "")
		})
	}
}

// Ensures that a header is read only so far.
func TestServe_BoundsTheHeader(t *testing.T) {
	t.Parallel()
	conn := start(t, t.TempDir()).dial(t)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	status := make([]byte, len("HTTP/1.1 431"))
	if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 431" {
		t.Errorf("answer %q, %v", status, err)
	}
}

// dial opens a connection that ends with the test.
func (r *relayd) dial(t *testing.T) net.Conn {
	t.Helper()
	host := strings.TrimPrefix(strings.TrimSuffix(r.base, "/spaces/newos4/api/chat/"), "http://")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Ensures that the daemon sweeps at its start and leaves a corrupt thread alone
// with a line in the log.
func TestServe_SweepsAtStart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := storage.Open(storage.Options{
		Root: root, Space: "newos4", Bounds: storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 10, MaxAge: 1 << 60}},
		Now: func() time.Time { return time.Now().Add(-31 * 24 * time.Hour) },
	})
	defer func() { _ = store.Close() }()
	old, corrupt := chat.Token(token(1)).Thread(), chat.Token(token(2)).Thread()
	if _, err := store.Append(t.Context(), old, storage.Post{Author: chat.Operator, Text: "x", Create: true}); err != nil {
		t.Fatal(err)
	}
	corruptPath := filepath.Join(store.Path(), string(corrupt)+".json")
	if err := os.WriteFile(corruptPath, []byte("{"), 0o660); err != nil {
		t.Fatal(err)
	}
	r := start(t, root)
	r.waitForLog(t, "msg=swept threads=2 removed=1")
	if exists, err := store.Exists(old); err != nil || exists {
		t.Errorf("the old thread stands: %v", err)
	}
	if !strings.Contains(r.log.String(), "corrupt and was left alone\" thread="+string(corrupt)) {
		t.Errorf("the log does not name the corrupt thread:\n%s", r.log)
	}
	if data, err := os.ReadFile(corruptPath); err != nil || string(data) != "{" {
		t.Errorf("the corrupt thread is %q, %v", data, err)
	}
}

// Ensures that the sweep runs on its schedule and not only at the start.
func TestServe_SweepsOnSchedule(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_RETENTION_SCHEDULE=@every 1s")
	r.waitForLog(t, "msg=swept threads=0")
	store := storage.Open(storage.Options{
		Root: r.root, Space: "newos4", Bounds: storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 10, MaxAge: 1 << 60}},
		Now: func() time.Time { return time.Now().Add(-31 * 24 * time.Hour) },
	})
	defer func() { _ = store.Close() }()
	if _, err := store.Append(t.Context(), chat.Token(token(1)).Thread(), storage.Post{Author: chat.Operator, Text: "x", Create: true}); err != nil {
		t.Fatal(err)
	}
	r.waitForLog(t, "msg=swept threads=1 removed=1")
}

// Ensures that a connection on which nothing was sent does not delay a stop, and
// that nobody is told of requests which there were not.
func TestServe_SilentConnectionDoesNotDelayTheStop(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_HTTP_SHUTDOWN_TIMEOUT=60s", "RELAYD_HTTP_HEADER_TIMEOUT=60s", "RELAYD_HTTP_READ_TIMEOUT=60s")
	host := strings.TrimPrefix(strings.TrimSuffix(r.base, "/spaces/newos4/api/chat/"), "http://")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	r.mustSend(t, 200, "GET", "poll.php", token(1), "") // by now the connection was accepted
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 30*time.Second || strings.Contains(r.log.String(), "cut off") {
		t.Errorf("the stop took %v:\n%s", took, r.log)
	}
}

// Ensures that the log is JSON when asked for, a line an event.
func TestServe_LogsJSON(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_LOG_FORMAT=json")
	r.mustSend(t, 200, "GET", "poll.php", token(1), "")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(r.log.String()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil || event["msg"] == nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// Ensures that something else in the place of the file of windows does not hold
// up the start.
func TestServe_OddWindowFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "state", "rate-windows.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, root)
	r.waitForLog(t, "not a regular file")
}

// Ensures that a taken port and an unusable root are errors at the start.
func TestServe_CannotStart(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	config := emptyConfig(t)
	code, _, stderr := run(t, nil, "serve", "--config", config, "--root", t.TempDir(), "--listen", taken.Addr().String())
	if code != 1 || !strings.Contains(stderr, "address already in use\nhint: choose another") {
		t.Errorf("a taken port: %d, %s", code, stderr)
	}
	code, _, stderr = run(t, nil, "serve", "--config", config, "--root", config, "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(stderr, "not a directory") {
		t.Errorf("a root that is a file: %d, %s", code, stderr)
	}
}

// Ensures that bad configuration and bad command lines end with code 2 and name
// everything that is wrong.
func TestMain_Usage(t *testing.T) {
	t.Parallel()
	config := emptyConfig(t)
	for name, test := range map[string]struct {
		environ []string
		args    []string
		want    string
	}{
		"bad values":      {[]string{"RELAYD_LIMITS_WINDOW=x", "RELAYD_LISTEN=y"}, []string{"serve", "--config", config}, "2 problems"},
		"unknown flag":    {nil, []string{"serve", "--prot", "1"}, "unknown flag: --prot"},
		"unknown command": {nil, []string{"server"}, "relayd has no command \"server\""},
		"argument":        {nil, []string{"serve", "now"}, "takes no argument"},
		"missing file":    {nil, []string{"config", "print", "--config", "/none.yaml"}, "/none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := run(t, test.environ, test.args...)
			if code != 2 || !strings.Contains(stderr, test.want) || !strings.HasPrefix(stderr, "relayd: ") {
				t.Errorf("code %d, %s", code, stderr)
			}
		})
	}
}

// Ensures that a command that only holds others shows them on standard error and
// ends with code 2, and that --help shows the same and is no error.
func TestMain_NeedsCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"config"}, {"agent"}} {
		code, stdout, stderr := run(t, nil, args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "Available Commands:") {
			t.Errorf("relayd %q: code %d, %s%s", args, code, stdout, stderr)
		}
		code, help, complaints := run(t, nil, append(args, "--help")...)
		if code != 0 || help != stderr || complaints != "" {
			t.Errorf("relayd %q --help: code %d, %s%s", args, code, help, complaints)
		}
	}
}

// Ensures that OPTIONS, whatever its target, is answered like every other request
// (https://github.com/rs/cors/issues/185).
func TestServe_OptionsOfTheServer(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", regexp.MustCompile(`[0-9.]+:[0-9]+`).FindString(r.base))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 404 ") || !strings.Contains(string(answer), `"success":false`) {
		t.Errorf("%v, %s", err, answer)
	}
}

// Ensures that what config print prints of the defaults is a configuration that
// means the same.
func TestConfigPrint_DefaultsAreAConfiguration(t *testing.T) {
	t.Parallel()
	code, first, stderr := run(t, nil, "config", "print", "--config", emptyConfig(t))
	if code != 0 {
		t.Fatal(stderr)
	}
	path := filepath.Join(t.TempDir(), "printed.yaml")
	if err := os.WriteFile(path, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	code, second, stderr := run(t, nil, "config", "print", "--config", path)
	if code != 0 || first != second {
		t.Errorf("code %d, %s\nfirst:\n%s\nsecond:\n%s", code, stderr, first, second)
	}
}

// Ensures that what config print prints is a configuration that means the same.
func TestConfigPrint_IsAConfiguration(t *testing.T) {
	t.Parallel()
	environ := []string{
		"RELAYD_HTTP_TRUSTED_PROXIES=10.0.0.0/8,2001:db8::/32", "RELAYD_HTTP_ALLOWED_ORIGINS=https://a.example", "RELAYD_STATE_DIR=/a b",
		"RELAYD_RETENTION_SCHEDULE=*/5 * * * *", "RELAYD_LIMITS_WINDOW=90s",
	}
	code, first, stderr := run(t, environ, "config", "print", "--config", emptyConfig(t), "--space", "no")
	if code != 0 {
		t.Fatal(stderr)
	}
	path := filepath.Join(t.TempDir(), "printed.yaml")
	if err := os.WriteFile(path, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	code, second, stderr := run(t, nil, "config", "print", "--config", path)
	if code != 0 || first != second {
		t.Errorf("code %d, %s\nfirst:\n%s\nsecond:\n%s", code, stderr, first, second)
	}
	for _, want := range []string{"space:     \"no\"", "state_dir: /a b", "window:         1m30s", "trusted_proxies:  [10.0.0.0/8, 2001:db8::/32]"} {
		if !strings.Contains(first, want) {
			t.Errorf("lacks %q:\n%s", want, first)
		}
	}
}
