package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/daemon"
	"github.com/newos4/relay/pkg/sandbox"
	"github.com/newos4/relay/pkg/storage"
)

// asRelayd makes the test binary, started with this variable, be relayd.
const asRelayd = "RELAY_TEST_AS_RELAYD"

func TestMain(m *testing.M) {
	sandbox.RunChildIfAsked(os.Args)
	if os.Getenv(asRelayd) != "" {
		os.Exit(daemon.Main(context.Background(), daemon.Env{
			Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr,
		}))
	}
	os.Exit(m.Run())
}

// run executes one command in this process.
func run(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = daemon.Main(t.Context(), daemon.Env{Args: args, Environ: environ, Stdout: &out, Stderr: &err})
	return code, out.String(), err.String()
}

// relayd is a running process.
type relayd struct {
	*exec.Cmd
	base string // the URL of the space
	root string
	log  *logTail
}

// logTail keeps a process's log and hands out its address.
type logTail struct {
	mu      sync.Mutex
	text    strings.Builder
	address chan string
	written chan struct{} // has a value after a write that nobody has looked at
}

func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.text.Len()
	l.text.Write(p)
	found := regexp.MustCompile(`(?:msg=serving address=|"msg":"serving","address":")([^\s"]+)`).FindStringSubmatch(l.text.String())
	if found != nil && !strings.Contains(l.text.String()[:before], found[0]) {
		l.address <- found[1]
	}
	select {
	case l.written <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs relayd on a free port until the test ends.
func start(t *testing.T, root string, environ ...string) *relayd {
	t.Helper()
	return startWith(t, root, emptyConfig(t), environ...)
}

// startWith is start with a configuration.
func startWith(t *testing.T, root, config string, environ ...string) *relayd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &relayd{root: root, log: &logTail{address: make(chan string, 1), written: make(chan struct{}, 1)}}
	r.Cmd = exec.CommandContext(t.Context(), exe, "serve", "--root", root, "--listen", "127.0.0.1:0", "--config", config)
	r.Env = append(append(os.Environ(), asRelayd+"=1", "RELAYD_ADMIN_LISTEN=127.0.0.1:0"), environ...)
	r.Stderr = r.log
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Kill(); _ = r.Wait() })
	select {
	case address := <-r.log.address:
		r.base = "http://" + address + "/spaces/newos4/api/chat/"
	case <-time.After(20 * time.Second):
		t.Fatalf("relayd does not serve:\n%s", r.log)
	}
	return r
}

func emptyConfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relayd.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// stop ends relayd as systemd does and returns how it exited.
func (r *relayd) stop() error {
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return r.Wait()
}

func token(n int) string { return fmt.Sprintf("%064x", n) }

// send makes one request and returns the status and the decoded body.
func send(ctx context.Context, client *http.Client, method, url, token, body string) (int, map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-Chat-Token", token)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var decoded map[string]any
	err = json.NewDecoder(resp.Body).Decode(&decoded)
	return resp.StatusCode, decoded, err
}

func (r *relayd) mustSend(t *testing.T, want int, method, route, token, body string) map[string]any {
	t.Helper()
	status, decoded, err := send(t.Context(), http.DefaultClient, method, r.base+route, token, body)
	if err != nil || status != want {
		t.Fatalf("%s %s = %d %v, %v; want %d\n%s", method, route, status, decoded, err, want, r.log)
	}
	return decoded
}

// openStore opens the store of a root as another process on the host would.
func openStore(root string) *storage.Store {
	return storage.Open(storage.Options{
		Root: root, Space: "newos4",
		Bounds: storage.Bounds{Threads: 500, Page: 1000, Retention: chat.Retention{Messages: 1 << 20, MaxAge: 720 * time.Hour}},
	})
}
