package daemon_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manager is a service manager that listens to one service.
type manager struct {
	path   string
	states chan string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{path: filepath.Join(t.TempDir(), "notify"), states: make(chan string, 100)}
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "unixgram", m.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		defer close(m.states)
		buffer := make([]byte, 4096)
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			m.states <- string(buffer[:n])
		}
	}()
	return m
}

// next returns the next state that is no sign of life.
func (m *manager) next(t *testing.T) string {
	t.Helper()
	for {
		state := m.any(t)
		if state != "WATCHDOG=1" {
			return state
		}
	}
}

func (m *manager) any(t *testing.T) string {
	t.Helper()
	select {
	case state := <-m.states:
		return state
	case <-time.After(20 * time.Second):
		t.Fatal("the service says nothing")
	}
	return ""
}

// Ensures that the service manager hears of each state when it is true: ready
// once browsers are served and the threads were scanned, alive, reloading and
// what that came to, stopping.
func TestServe_TellsTheServiceManager(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	config := filepath.Join(t.TempDir(), "relayd.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	r := startWith(t, t.TempDir(), config, "NOTIFY_SOCKET="+m.path, "WATCHDOG_USEC=300000")
	if state := m.any(t); !strings.HasPrefix(state, "READY=1\nSTATUS=serving on 127.0.0.1:") {
		t.Errorf("first says %q", state)
	}
	if state := m.any(t); state != "WATCHDOG=1" {
		t.Errorf("then says %q", state)
	}
	for _, reload := range []struct{ config, status string }{
		{"limits: {text: 7}\n", "serving; the configuration was reloaded"},
		{"limits: {text: 7}\nspace: other\nwatch: {rescan: 1s}\n", "serving; a restart is needed for space, watch.rescan"},
		{"nonsense: 1\n", "serving; the configuration was not reloaded: "},
		{"limits: {text: 7, threads: 1}\nlog: {level: error}\n", "serving; the configuration was reloaded"},
	} {
		write(reload.config)
		r.hangUp(t)
		if state := m.next(t); !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[0-9]+$`).MatchString(state) {
			t.Errorf("before a reload says %q", state)
		}
		if state := m.next(t); !strings.HasPrefix(state, "READY=1\nSTATUS="+reload.status) || strings.Count(state, "\n") != 1 {
			t.Errorf("after a reload says %q, want %q", state, reload.status)
		}
	}
	r.mustSend(t, 413, "POST", "post.php", token(1), `{"text":"eight..."}`)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	if got := r.mustSend(t, 507, "POST", "post.php", token(2), `{"text":"x"}`); got["code"] != "thread_limit" {
		t.Errorf("one thread more than the new limit: %v", got)
	}
	if log := r.log.String(); strings.Count(log, "the configuration was reloaded") != 2 || strings.Contains(log, "status=413") {
		t.Errorf("the new level of the log does not hold:\n%s", log)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if state := m.next(t); state != "STOPPING=1\nSTATUS=stopping" {
		t.Errorf("last says %q", state)
	}
}

// Ensures that a service which cannot bind an address fails without ever having
// called itself ready.
func TestServe_BindFailureIsNotReady(t *testing.T) {
	t.Parallel()
	taken := mustListen(t)
	for name, environ := range map[string][]string{
		"browsers": {"RELAYD_LISTEN=" + taken.Addr().String(), "RELAYD_ADMIN_LISTEN="},
		"operator": {"RELAYD_LISTEN=127.0.0.1:0", "RELAYD_ADMIN_LISTEN=" + taken.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t)
			cmd := relaydCommand(t, "serve", "--root", t.TempDir(), "--config", emptyConfig(t))
			cmd.Env = append(append(cmd.Env, "NOTIFY_SOCKET="+m.path), environ...)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "address already in use\nhint: choose another address") {
				t.Errorf("ends with %v: %s", err, out)
			}
			select {
			case state := <-m.states:
				t.Errorf("said %q", state)
			default:
			}
		})
	}
}

func relaydCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), asRelayd+"=1")
	return cmd
}

// handOver makes a command that is started with the listener as its socket of
// that name, as systemd starts a service.
func handOver(t *testing.T, listener *net.TCPListener, name string, args ...string) *exec.Cmd {
	t.Helper()
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return handOverFile(t, file, name, args...)
}

// handOverFile is handOver for whatever it is.
func handOverFile(t *testing.T, file *os.File, name string, args ...string) *exec.Cmd {
	t.Helper()
	service := relaydCommand(t, args...)
	// Only the process itself knows its id, by which the sockets are known as its.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`}, service.Args...)...)
	cmd.Env = append(service.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES="+name)
	cmd.ExtraFiles = []*os.File{file}
	return cmd
}

func mustListen(t *testing.T) *net.TCPListener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.(*net.TCPListener)
}

// Ensures that a request which came before the daemon was started is answered by
// it, when the socket was the service manager's, and that the configured address
// is left alone.
func TestServe_SocketActivation(t *testing.T) {
	t.Parallel()
	listener, taken := mustListen(t), mustListen(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "GET /spaces/newos4/api/chat/poll.php HTTP/1.1\r\nHost: x\r\nX-Chat-Token: %s\r\nConnection: close\r\n\r\n", token(1)); err != nil {
		t.Fatal(err)
	}
	cmd := handOver(t, listener, "http", "serve", "--root", t.TempDir(), "--config", emptyConfig(t), "--listen", taken.Addr().String())
	cmd.Env = append(cmd.Env, "RELAYD_ADMIN_LISTEN=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK") {
		t.Errorf("answer %q, %v", answer, err)
	}
}

// Ensures that the log warns of an operator's side that other hosts can reach, and
// of no other.
func TestServe_WarnsOfAnExposedOperatorsSide(t *testing.T) {
	t.Parallel()
	const warning = "the operator's side can be reached from other hosts"
	exposed := start(t, t.TempDir(), "RELAYD_ADMIN_LISTEN=0.0.0.0:0")
	exposed.waitForLog(t, warning)
	private := start(t, t.TempDir())
	private.waitForLog(t, "msg=ready")
	if strings.Contains(private.log.String(), warning) {
		t.Errorf("warns without reason:\n%s", private.log)
	}
}

// Ensures that a service manager which has stopped reading delays neither the
// service nor its end.
func TestServe_ManagerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	address := &net.UnixAddr{Name: path, Net: "unixgram"}
	deaf, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = deaf.Close() }()
	fill, err := net.DialUnix("unixgram", nil, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fill.Close() }()
	if err := fill.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write([]byte("x"))
	}
	r := start(t, t.TempDir(), "NOTIFY_SOCKET="+path)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	ended := make(chan error, 1)
	go func() { ended <- r.stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not stop")
	}
}

// Ensures that pipes in the places of a key and of what relayd keeps, which would
// never begin, delay neither the service nor its end.
func TestServe_PipesInPlaceOfFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "state"), 0o750); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(root, "key")
	for _, path := range []string{key, filepath.Join(root, "state", "rate-windows.json"), filepath.Join(root, "state", "agent.json")} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, root, "RELAYD_AGENT_OPENAI_KEY_FILE="+key)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	r.hangUp(t)
	r.waitForLog(t, "the configuration was reloaded")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// Ensures that a time of the watchdog's which cannot be kept is refused by name.
func TestServe_WatchdogOutOfBounds(t *testing.T) {
	t.Parallel()
	for _, usec := range []string{"1", "0", "-5", "soon", "9223372036854775807", "99999999999999999999"} {
		t.Run(usec, func(t *testing.T) {
			t.Parallel()
			cmd := relaydCommand(t, "serve", "--root", t.TempDir(), "--config", emptyConfig(t))
			cmd.Env = append(cmd.Env, "WATCHDOG_USEC="+usec, "RELAYD_LISTEN=127.0.0.1:0", "RELAYD_ADMIN_LISTEN=")
			if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "the watchdog's time") {
				t.Errorf("ends with %v: %s", err, out)
			}
		})
	}
}

// Ensures that nothing but a listening socket of TCP is taken for the one of
// browsers, and that relayd then serves nowhere instead of where it was not meant
// to.
func TestServe_HandedOverAndNoListener(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.Close() }()
	packets, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packets.Close() }()
	for name, test := range map[string]struct {
		file func() (*os.File, error)
		want string
	}{
		"no TCP":    {local.File, "not of TCP"},
		"no stream": {packets.File, "taking over the service manager's socket"},
		"no socket": {func() (*os.File, error) { return os.Open(emptyConfig(t)) }, "it is none"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := test.file()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			cmd := handOverFile(t, file, "http", "serve", "--root", t.TempDir(), "--config", emptyConfig(t), "--listen", "127.0.0.1:0")
			cmd.Env = append(cmd.Env, "RELAYD_ADMIN_LISTEN=")
			if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), test.want) {
				t.Errorf("ends with %v: %s", err, out)
			}
		})
	}
}

// Ensures that a page in a browser of this host cannot read the operator's side by
// having its own name lead there.
func TestServe_OperatorsSideAnswersToNoForeignName(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8641": 200, "[::1]:8641": 200, "[::1]": 200, "localhost": 200, "LOCALHOST:1": 200,
		"rebound.example": 421, "rebound.example:8641": 421, "127.0.0.1.rebound.example": 421, "localhost.rebound.example": 421,
	} {
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.admin(t)+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want && (want != 200 || path != "/readyz") { // which may not be ready yet
				t.Errorf("%s of %s: %d, want %d", path, host, resp.StatusCode, want)
			}
		}
	}
}

// Ensures that no word of a command line reaches the terminal as a control
// character.
func TestMain_ShowsControlCharacters(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"serve", "--config", "/missing/\x1b[2J"}, {"serve", "--\x1b[2J"}, {"\x1b[2J"}, {"check", "--config", "/missing/\x1b[2J"},
		{"config", "print", "--listen", "\x1b[2J"}, {"serve", "\x1b[2J"},
	} {
		if code, stdout, stderr := run(t, nil, args...); code != 2 || strings.Contains(stdout+stderr, "\x1b") {
			t.Errorf("%q: code %d, %q", args, code, stdout+stderr)
		}
	}
}

// Ensures that a socket which is not meant for browsers is refused by name.
func TestServe_ForeignSocket(t *testing.T) {
	t.Parallel()
	cmd := handOver(t, mustListen(t), "ssh", "serve", "--root", t.TempDir(), "--config", emptyConfig(t))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "handed over [ssh]") {
		t.Errorf("%v: %s", err, out)
	}
	cmd = handOver(t, mustListen(t), "http:ssh", "serve", "--root", t.TempDir(), "--config", emptyConfig(t))
	cmd.Env, cmd.ExtraFiles = append(cmd.Env, "LISTEN_FDS=2"), append(cmd.ExtraFiles, cmd.ExtraFiles[0])
	out, err = cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "handed over [http ssh]") {
		t.Errorf("one socket too many: %v: %s", err, out)
	}
}

// Ensures that the operator's side tells of life, readiness and counts, and
// nothing else, and that browsers cannot reach any of it.
func TestServe_OperatorsSide(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_LIMITS_THREAD_POSTS=1")
	admin := r.admin(t)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	r.mustSend(t, 429, "POST", "post.php", token(1), `{"text":"x"}`)
	r.waitForLog(t, "a thread awaits hermes")
	r.waitForLog(t, "msg=swept")
	for path, want := range map[string]string{
		"/healthz": `^ok\n$`,
		"/readyz":  `(?s)"ready": true.*"watching"`,
		"/metrics": `(?s)relay_disk_free_bytes [1-9].*relay_fsync_duration_seconds_count [1-9].*relay_http_refusals_total\{code="rate_limited"\} 1\n.*` +
			`relay_http_requests_total\{route="post",status="201"\} 1\n.*relay_sweeps_total\{result="done"\} 1\n.*` +
			`relay_threads 1\n.*relay_threads_awaiting 1\n.*relay_threads_awaiting_oldest_seconds [0-9.e-]*[1-9].*relay_threads_limit 500\n.*relay_watching 1\n`,
	} {
		status, body := fetch(t, admin+path)
		if status != http.StatusOK || !regexp.MustCompile(want).MatchString(body) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := fetch(t, admin+"/"); status != http.StatusNotFound {
		t.Errorf("another path: %d", status)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if status, _ := fetch(t, strings.TrimSuffix(r.base, "/spaces/newos4/api/chat/")+path); status != http.StatusNotFound {
			t.Errorf("a browser asks for %s: %d", path, status)
		}
	}
}

// admin returns the URL of the operator's side.
func (r *relayd) admin(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`admin=(\S+)`).FindStringSubmatch(r.log.String())
	if found == nil {
		t.Fatalf("no operator's side:\n%s", r.log)
	}
	return "http://" + found[1]
}

func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// Ensures that what healthcheck is told by whoever listens cannot act on a terminal
// or fill the memory.
func TestHealthcheck_Stranger(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"ready":false,"checks":{"disk":{"ok":false,"error":"\u001b[2Jgone"}}}`:                 "gone",
		`{"ready":true,"checks":{"disk":{"ok":true}},"x":"` + strings.Repeat("x", 64<<10) + `"}`: "not as relayd does",
	} {
		stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		code, stdout, stderr := run(t, []string{"RELAYD_ADMIN_LISTEN=" + strings.TrimPrefix(stranger.URL, "http://")},
			"healthcheck", "--config", emptyConfig(t))
		stranger.Close()
		if code != 1 || !strings.Contains(stderr, want) || strings.Contains(stdout+stderr, "\x1b") {
			t.Errorf("code %d, %q %q", code, stdout, stderr)
		}
	}
}

// Ensures that healthcheck says by its exit code, and in words, whether the
// running daemon is well.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	address := strings.TrimPrefix(r.admin(t), "http://")
	foreign := strings.TrimPrefix(strings.TrimSuffix(r.base, "/spaces/newos4/api/chat/"), "http://")
	nobody := mustListen(t)
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(want int, words, address string, args ...string) {
		t.Helper()
		code, stdout, stderr := run(t, []string{"RELAYD_ADMIN_LISTEN=" + address},
			append([]string{"healthcheck", "--config", emptyConfig(t)}, args...)...)
		if code != want || !strings.Contains(stdout+stderr, words) {
			t.Errorf("%s %v: code %d, %s%s", address, args, code, stdout, stderr)
		}
	}
	check(0, "ready\n", address)
	check(0, "alive\n", address, "--alive")
	check(0, "ready\n", strings.Replace(address, "127.0.0.1", "0.0.0.0", 1))
	check(1, "hint: does it run", nobody.Addr().String())
	check(1, "not as relayd does", foreign)
	check(1, "status 404", foreign, "--alive")
	check(2, "admin.listen is empty", "")
	check(2, "longer than 0", address, "--timeout", "0s")
	// Nobody takes the connection, so nothing answers.
	check(1, "deadline exceeded", mustListen(t).Addr().String(), "--timeout", "50ms")

	threads := filepath.Join(r.root, "spaces", "newos4", "data", "chat")
	if err := os.Rename(threads, threads+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(threads, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check(1, "not ready:\n", address)
	check(1, "storage: ", address)
	check(0, "alive\n", address, "--alive")
}
