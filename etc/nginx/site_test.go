package nginx_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/etc/nginx/nginxtest"
	"github.com/newos4/relay/pkg/daemon"
	"github.com/newos4/relay/pkg/sandbox"
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

// name is the name of the site in the example.
const name = nginxtest.Name

// site is a running nginx with the shipped files.
type site struct{ *nginxtest.Site }

// startSite runs nginx with the files beside this test until it ends.
func startSite(t *testing.T, opts nginxtest.Options) site {
	t.Helper()
	opts.Files = "."
	return site{nginxtest.Start(t, opts)}
}

// shipped returns the text of a file beside this test.
func shipped(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startRelayd runs relayd on a free port until the test ends.
func startRelayd(t *testing.T, environ ...string) *relayd {
	t.Helper()
	// An address of its own: no other test's connection can take the port while
	// relayd is down.
	return startRelaydOn(t, "127.0.0.77:0", environ...)
}

// relayd is a running process.
type relayd struct {
	*exec.Cmd
	address string
	log     *output
}

func startRelaydOn(t *testing.T, address string, environ ...string) *relayd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "relayd.yaml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &relayd{log: newOutput()}
	r.Cmd = exec.CommandContext(context.WithoutCancel(t.Context()), exe, "serve", "--root", t.TempDir(), "--listen", address, "--config", config)
	r.Env = append(append(os.Environ(), asRelayd+"=1", "RELAYD_ADMIN_LISTEN=127.0.0.1:0", "GORACE=atexit_sleep_ms=0"), environ...)
	r.Stderr = r.log
	nginxtest.StartProcess(t, r.Cmd)
	r.address = r.log.waitFor(t, regexp.MustCompile(`msg=serving address=(\S+)`))
	return r
}

// output keeps what a process writes.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // has a value after a write that nobody has looked at
}

func newOutput() *output { return &output{written: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.written <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// waitFor returns the group of the pattern once the output matches it.
func (o *output) waitFor(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		if found := pattern.FindStringSubmatch(o.String()); found != nil {
			return found[1]
		}
		select {
		case <-o.written:
		case <-timeout:
			t.Fatalf("%s never appears in:\n%s", pattern, o)
		}
	}
}
