// Package nginx_test runs the real nginx with the files of this directory, of
// which only the placeholders are filled in, before the real relayd.
package nginx_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/etc/nginx/nginxtest"
	"github.com/newos4/relay/pkg/config"
)

// Ensures that the chat takes 60 requests a minute and a burst of 50 from one
// address, however the path is spelled, and answers more with nginx's own page
// and 503; that other addresses and other routes are not affected; and that the
// address is served again soon.
func TestZone(t *testing.T) {
	t.Parallel()
	s := startSite(t, nginxtest.Options{Upstream: startRelayd(t).address})
	client := s.client(t, "127.0.0.1")
	began, accepted, refused := time.Now(), make(map[int]int), 0
	spellings := []string{
		chatPath + "poll.php", "/spaces/newos4/%61pi/chat/poll.php", "/spaces/newos4//api/chat/poll.php",
		"/x/../spaces/newos4/api/chat/poll.php", chatPath + "%70oll.php?since=0",
	}
	for i := range 120 {
		got := do(t, client, request{path: spellings[i%len(spellings)]})
		switch {
		case got.status == 503 && got.isHTML():
			refused++
		case got.status == 200 || got.is(404, "not_found"):
			accepted[got.status]++
		default:
			t.Fatalf("answer %d is %d %s", i, got.status, got.body)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Fatalf("%d answers took %v: they are put off", i+1, took)
		}
	}
	total := accepted[200] + accepted[404]
	if most := room(began); total < 51 || total > most || refused == 0 {
		t.Errorf("accepted %d, want 51 to %d; refused %d", total, most, refused)
	}
	if accepted[200] == 0 || accepted[404] == 0 {
		t.Errorf("not all spellings were accepted at first: %v", accepted)
	}
	for range 10 {
		if got := do(t, client, request{path: "/"}); got.status == 503 {
			t.Fatal("a page is refused together with the chat")
		}
	}
	if got := do(t, s.client(t, "127.0.0.2"), poll()); got.status != 200 {
		t.Errorf("another address gets %d", got.status)
	}
	served := waitUntilServed(t, client)
	if most := room(began); total+1 > most {
		t.Errorf("served again after %v, which makes %d; want at most %d", served, total+1, most)
	}
	t.Logf("accepted %d, refused %d as HTML 503, served again after %v", total, refused, served.Round(100*time.Millisecond))
}

// room is what the zone may have admitted since a time: one request, the burst,
// and one for each second. nginx looks at its clock now and then only.
func room(since time.Time) int {
	const inexact = 50 * time.Millisecond
	return 1 + 50 + int((time.Since(since)+inexact)/time.Second)
}

// waitUntilServed polls until the zone has room again, and returns how long that
// took. A refused request does not count, so that trying puts nothing off.
func waitUntilServed(t *testing.T, client *http.Client) time.Duration {
	t.Helper()
	began, tick := time.Now(), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		got := do(t, client, poll())
		if got.status == 200 {
			return time.Since(began)
		}
		if time.Since(began) > 15*time.Second {
			t.Fatalf("still refused by %d", got.status)
		}
		<-tick.C
	}
}

// Ensures that the refusal of a large body is relayd's JSON, up to sizes that are
// no mistake any more, with and without a length, every time.
func TestTooLarge_IsRelaydsRefusal(t *testing.T) {
	t.Parallel()
	client := startSite(t, nginxtest.Options{Upstream: startRelayd(t).address}).client(t, "127.0.0.1")
	const rounds = 5
	for _, size := range []int{33 << 10, 100 << 10, 8 << 20} {
		body := strings.Repeat("x", size)
		for range rounds {
			for kind, reader := range map[string]io.Reader{"length": strings.NewReader(body), "chunked": struct{ io.Reader }{strings.NewReader(body)}} {
				r := post("")
				r.body = reader
				if got := do(t, client, r); !got.is(413, "too_large") {
					t.Errorf("%d bytes, %s: %d %s", size, kind, got.status, got.body)
				}
			}
		}
	}
	r := post("")
	r.length = 1 << 30
	r.header["Expect"] = []string{"100-continue"}
	if got := do(t, client, r); got.status != 413 || !got.isHTML() {
		t.Errorf("1 GiB: %d %s", got.status, got.body)
	}
}

// Ensures that nothing under a space's data is served, in any spelling and with
// any method, and that what exists and what does not look the same.
func TestData_IsForbidden(t *testing.T) {
	t.Parallel()
	relayd := startRelayd(t)
	s := startSite(t, nginxtest.Options{Upstream: relayd.address})
	client := s.client(t, "127.0.0.1")
	if got := do(t, client, post("hello")); got.status != 201 {
		t.Fatalf("post: %d %s", got.status, got.body)
	}
	existing := "c386d8e8d07342f2.json" // of the token 1
	paths := []string{
		"/spaces/newos4/data", "/spaces/newos4/data/", "/spaces/newos4/data/chat/", "/spaces/newos4/data/chat/absent.json",
		"/spaces/newos4/data/chat/" + existing, "/spaces/newos4/data/chat/" + existing + "?x=1",
		"//spaces//newos4//data//chat/" + existing, "/spaces/./newos4/data/chat/" + existing,
		"/spaces/newos4/api/../data/chat/" + existing, "/spaces/newos4/api/chat/..%2f..%2fdata/chat/" + existing,
		"/spaces/newos4/api/chat/%2e%2e/%2e%2e/data/chat/" + existing, "/x/../spaces/newos4/data/",
		"/spaces/newos4/%64ata/chat/" + existing, "/spaces%2Fnewos4%2Fdata%2Fchat", "/%73paces/newos4/data/",
		"/spaces/newos4/%2564ata/chat/" + existing, "/spaces/newos4/data%252fchat/" + existing,
		`/spaces/newos4\data\chat\` + existing, "/spaces/newos4/data%5cchat",
		"/Spaces/NEWOS4/Data/chat/" + existing, "/spaces/newos4/DATA/chat/" + existing,
		"/spaces/other/data/chat/" + existing,
	}
	for _, path := range paths {
		if got := do(t, client, request{path: path}); got.status != 403 || strings.Contains(got.body, "hello") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, method := range []string{"HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"} {
		if got := do(t, client, request{method: method, path: "/spaces/newos4/data/chat/" + existing}); got.status != 403 {
			t.Errorf("%s: %d", method, got.status)
		}
	}
	if got := do(t, client, request{scheme: "http", path: "/spaces/newos4/data/chat/" + existing}); got.status != 403 {
		t.Errorf("without TLS: %d", got.status)
	}
	if a, b := do(t, client, request{path: paths[3]}), do(t, client, request{path: paths[4]}); a.body != b.body {
		t.Errorf("an absent file: %s, one that exists: %s", a.body, b.body)
	}
}

// Ensures that an address cannot be claimed: whatever a client says of itself, it
// is counted by the address it comes from, and others are counted apart.
func TestAddress_CannotBeClaimed(t *testing.T) {
	t.Parallel()
	s := startSite(t, nginxtest.Options{Upstream: startRelayd(t, "RELAYD_LIMITS_IP_POSTS=5").address})
	claims := []http.Header{
		{}, {"X-Forwarded-For": {"198.51.100.1"}}, {"X-Forwarded-For": {"198.51.100.2, 198.51.100.3"}},
		{"X-Forwarded-For": {"198.51.100.4", "198.51.100.5"}}, {"X-Forwarded-For": {"2001:db8::1"}},
		{"X-Forwarded-For": {"127.0.0.2"}}, {"X-Forwarded-For": {"garbage"}}, {"X-Forwarded-For": {""}},
		{"X-Real-Ip": {"198.51.100.6"}}, {"Forwarded": {"for=198.51.100.7"}}, {"X-Client-Ip": {"198.51.100.8"}},
		{"X_Forwarded_For": {"198.51.100.9"}}, {"X-Forwarded-For": {"::ffff:198.51.100.10"}}, {"X-Forwarded-For": {"198.51.100.11:80"}},
	}
	for _, source := range []string{"127.0.0.1", "127.0.0.2"} {
		client := s.client(t, source)
		for i, claim := range claims {
			r := post("hello")
			claim["X-Chat-Token"] = []string{token(i)}
			r.header = claim
			got := do(t, client, r)
			if i < 5 && got.status != 201 {
				t.Errorf("%s, message %d, %v: %d %s", source, i, claim, got.status, got.body)
			}
			if i >= 5 && (!got.is(429, "rate_limited") || !strings.Contains(got.body, `"scope":"ip"`)) {
				t.Errorf("%s, message %d, %v: %d %s", source, i, claim, got.status, got.body)
			}
		}
	}
}

// Ensures that the token reaches relayd, once or twice as it was sent, and stands
// in no log of nginx's.
func TestToken_ReachesRelaydAndNoLog(t *testing.T) {
	t.Parallel()
	s := startSite(t, nginxtest.Options{Upstream: startRelayd(t).address})
	client := s.client(t, "127.0.0.1")
	if got := do(t, client, post("hello")); got.status != 201 || !strings.Contains(got.body, "c386d8e8d07342f2") {
		t.Errorf("post: %d %s", got.status, got.body)
	}
	if got := do(t, client, poll()); got.status != 200 || !strings.Contains(got.body, "hello") {
		t.Errorf("poll: %d %s", got.status, got.body)
	}
	twice := poll()
	twice.header = http.Header{"X-Chat-Token": {token(1), token(2)}}
	if got := do(t, client, twice); !got.is(401, "bad_token") {
		t.Errorf("two tokens: %d %s", got.status, got.body)
	}
	for range 60 { // more than the zone admits, so that the error log has its lines too
		do(t, client, poll())
	}
	for _, log := range []string{"access.log", "error.log"} {
		text := s.Read(t, log)
		if !strings.Contains(text, "poll.php") || strings.Contains(text, token(1)) {
			t.Errorf("%s names no request, or a token:\n%s", log, text)
		}
	}
}

// Ensures that what the contract says of methods and origins passes through
// nginx, and that nginx adds no redirect.
func TestMethods_PassThrough(t *testing.T) {
	t.Parallel()
	client := startSite(t, nginxtest.Options{Upstream: startRelayd(t, "RELAYD_HTTP_ALLOWED_ORIGINS=https://a.example").address}).client(t, "127.0.0.1")
	if got := do(t, client, request{method: "HEAD", path: poll().path}); got.status != 200 || got.body != "" || got.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", got.status, got.header)
	}
	got := do(t, client, request{method: "OPTIONS", path: post("").path, header: http.Header{
		"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"x-chat-token, content-type"},
	}})
	if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != "https://a.example" ||
		got.header.Get("Vary") != "Origin" || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "X-Chat-Token") {
		t.Errorf("a preflight: %d %v", got.status, got.header)
	}
	for _, method := range []string{"OPTIONS", "DELETE", "GET"} {
		if got := do(t, client, request{method: method, path: post("").path}); !got.is(405, "method") || got.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d %v %s", method, got.status, got.header, got.body)
		}
	}
	for _, path := range []string{"/spaces/newos4/api/chat", chatPath, "/spaces/newos4/api"} {
		if got := do(t, client, request{path: path}); !got.is(404, "not_found") {
			t.Errorf("%s: %d %v %s", path, got.status, got.header, got.body)
		}
	}
	for _, path := range []string{"/api/debug/agent-replies.php", "/spaces/newos4/api/debug/agent-replies.php"} {
		if got := do(t, client, request{method: "POST", path: path}); !got.is(410, "gone") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// Ensures that clients get nginx's own page with 502 while relayd is down, and
// are served at once when it is up again.
func TestRelaydDown(t *testing.T) {
	t.Parallel()
	relayd := startRelayd(t)
	client := startSite(t, nginxtest.Options{Upstream: relayd.address}).client(t, "127.0.0.1")
	if got := do(t, client, post("before")); got.status != 201 {
		t.Errorf("before: %d %s", got.status, got.body)
	}
	if err := relayd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := relayd.Wait(); err != nil {
		t.Fatalf("relayd: %v\n%s", err, relayd.log)
	}
	for _, r := range []request{post("down"), poll(), {path: "/"}} {
		if got := do(t, client, r); got.status != 502 || !got.isHTML() {
			t.Errorf("%s while relayd is down: %d %s", r.path, got.status, got.body)
		}
	}
	startRelaydOn(t, relayd.address)
	if got := do(t, client, post("after")); got.status != 201 {
		t.Errorf("after: %d %s", got.status, got.body)
	}
}

// Ensures that the example serves by TLS 1.2 and 1.3, sends what comes without
// TLS there, refuses a program that shows its token without it, and names no
// version.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := startSite(t, nginxtest.Options{Upstream: startRelayd(t).address})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client := s.client(t, "127.0.0.1")
		client.Transport.(*http.Transport).TLSClientConfig.MaxVersion = version
		if got := do(t, client, poll()); got.status != 200 || got.tls != version {
			t.Errorf("%s: %d by %s", tls.VersionName(version), got.status, tls.VersionName(got.tls))
		}
	}
	client := s.client(t, "127.0.0.1")
	if got := do(t, client, poll()); got.status != 200 || got.header.Get("Server") != "nginx" || got.header.Get("Strict-Transport-Security") != "" {
		t.Errorf("poll: %d %v", got.status, got.header)
	}
	for _, path := range []string{"/", "/spaces/newos4/", "/a%20b?c=d"} {
		got := do(t, client, request{scheme: "http", path: path})
		if got.status != 301 || got.header.Get("Location") != "https://"+name+path {
			t.Errorf("%s without TLS: %d %v", path, got.status, got.header)
		}
	}
	r := post("hello")
	r.scheme = "http"
	if got := do(t, client, r); got.status != 403 {
		t.Errorf("post without TLS: %d %v", got.status, got.header)
	}
}

// Ensures that an existing server needs one line, even if it hands each .php to
// another program and has its own pages for the errors of others, and that all
// else of it stays its own.
func TestExistingServer(t *testing.T) {
	t.Parallel()
	s := startSite(t, nginxtest.Options{Upstream: startRelayd(t).address, Site: `
server {
	listen 443 ssl;
	ssl_certificate fullchain.pem;
	ssl_certificate_key privkey.pem;
	location ~ \.php$ { return 418; }
	proxy_intercept_errors on;
	error_page 410 =418 /other.php;
	location / { return 204; }
	include snippets/relayd-chat.conf;
}
`})
	client := s.client(t, "127.0.0.1")
	if got := do(t, client, post("hello")); got.status != 201 {
		t.Errorf("post: %d %s", got.status, got.body)
	}
	for path, want := range map[string]int{
		"/": 204, "/other.php": 418, "/spaces/newos4/": 204, "/spaces/newos4/api/other.php": 418, chatPath + "other.php": 404,
		"/spaces/newos4/data/chat/x.json": 403, "/spaces/newos4/data/x.php": 403, "/spaces/newos4/database": 204, "/SPACES/newos4/Data/x": 403,
		"/api/debug/agent-replies.php": 410, "/spaces/newos4/api/debug/agent-replies.php": 410,
	} {
		if got := do(t, client, request{path: path}); got.status != want {
			t.Errorf("%s: %d, want %d", path, got.status, want)
		}
	}
}

// Ensures that what the files have commented out works as their comments say:
// HTTP/2, HSTS, larger bodies for a route, and another proxy in front, behind
// which an IPv6 network is one client.
func TestOptions_AsTheCommentsSay(t *testing.T) {
	t.Parallel()
	relayd := startRelayd(t)
	s := startSite(t, nginxtest.Options{Upstream: relayd.address, Edit: strings.NewReplacer(
		"#set_real_ip_from 192.0.2.0/24;", "set_real_ip_from 127.0.0.1;",
		"#real_ip_", "real_ip_", "#add_header", "add_header",
		"\n    #     location", "\n    location", "\n    #         ", "\n    ", "\n    #     }", "\n    }",
		"listen 443 ssl;", http2(t),
	)})
	client := s.client(t, "127.0.0.1")
	large := request{method: "POST", path: "/api/app/uploads", body: bytes.NewReader(make([]byte, 20<<20))}
	if got := do(t, client, large); !got.is(404, "not_found") || got.proto != 2 || got.header.Get("Strict-Transport-Security") == "" {
		t.Errorf("a large body: HTTP/%d %d %v %s", got.proto, got.status, got.header, got.body)
	}
	statuses := make(map[int]int)
	for i := range 120 {
		r := poll()
		r.header = http.Header{"X-Forwarded-For": {fmt.Sprintf("198.51.100.%d, 2001:db8:0:1::%x", i, i)}}
		statuses[do(t, client, r).status]++
	}
	if statuses[200] < 51 || statuses[503] == 0 {
		t.Errorf("one network: %v", statuses)
	}
	other := post("hello")
	other.header["X-Forwarded-For"] = []string{"2001:db8:0:2::1"}
	if got := do(t, client, other); got.status != 201 {
		t.Errorf("another network: %d %s", got.status, got.body)
	}
	for _, network := range []string{"2001:db8:0:1::/64", "2001:db8:0:2::/64"} {
		relayd.log.waitFor(t, regexp.MustCompile(`ip=(`+regexp.QuoteMeta(network)+")"))
	}
	untrusted := poll()
	untrusted.header = http.Header{"X-Forwarded-For": {"2001:db8:0:1::1"}}
	if got := do(t, s.client(t, "127.0.0.2"), untrusted); got.status != 200 {
		t.Errorf("an address that is no proxy's is counted as %s: %d", untrusted.header, got.status)
	}
}

// http2 returns the lines that turn HTTP/2 on in the installed nginx.
func http2(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), nginxtest.Path(t), "-v").CombinedOutput()
	version := regexp.MustCompile(`nginx/(\d+)\.(\d+)\.(\d+)`).FindStringSubmatch(string(out))
	if err != nil || version == nil {
		t.Fatalf("nginx -v: %v\n%s", err, out)
	}
	number := 0
	for _, part := range version[1:] {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(err)
		}
		number = 1000*number + n
	}
	if number >= 1_025_001 {
		return "http2 on;\n    listen 443 ssl;"
	}
	return "listen 443 ssl http2;"
}

// Ensures that the numbers in the files fit relayd's own.
func TestNumbers_FitRelayds(t *testing.T) {
	t.Parallel()
	defaults := make(map[string]string)
	for _, option := range new(config.Config).Options() {
		defaults[option.Key] = option.Default
	}
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	directive := func(file, pattern string) string {
		found := regexp.MustCompile(`(?m)^ *` + pattern).FindStringSubmatch(shipped(t, file))
		if found == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return found[1]
	}
	if got := directive("conf.d/relayd.conf", `server (\S+);`); got != defaults["listen"] {
		t.Errorf("the upstream is %s, relayd listens on %s", got, defaults["listen"])
	}
	if got := directive("snippets/relayd-chat.conf", `location \^~ /spaces/(\w+)/`); got != defaults["space"] {
		t.Errorf("the space is %s, relayd's is %s", got, defaults["space"])
	}
	if got := duration(directive("conf.d/relayd.conf", `keepalive_timeout (\S+);`)); got >= duration(defaults["http.idle_timeout"]) {
		t.Errorf("nginx keeps connections for %v, relayd for %s", got, defaults["http.idle_timeout"])
	}
	if got := duration(directive("snippets/relayd-proxy.conf", `proxy_read_timeout (\S+);`)); got <= duration(defaults["http.write_timeout"]) {
		t.Errorf("nginx waits for %v, relayd may take %s", got, defaults["http.write_timeout"])
	}
	buffer, err := strconv.Atoi(directive("snippets/relayd-chat.conf", `client_body_buffer_size (\d+)k;`))
	if limit, err2 := strconv.Atoi(defaults["limits.body"]); err != nil || err2 != nil || buffer<<10 < limit {
		t.Errorf("nginx keeps %d KiB in memory, relayd takes %s bytes", buffer, defaults["limits.body"])
	}
}
