// Package browser_test tries the page and the module in a real Chromium, before
// the real relayd and the real chat.
package browser_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/cli"
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
	flag.Parse()
	// The tests wait more than they work.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	if shared, err := chromium(); err == nil {
		shared.stop()
	}
	os.Exit(code)
}

// relayd is a running process.
type relayd struct {
	url  string // without a slash at its end
	root string
	file string // the configuration
}

// addressOf hands out the address that a process says it serves.
type addressOf struct {
	mu    sync.Mutex
	text  strings.Builder
	found chan string
}

func (a *addressOf) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(p)
	match := regexp.MustCompile(`msg=serving address=(\S+)`).FindStringSubmatch(a.text.String())
	if match == nil {
		return len(p), nil
	}
	select {
	case a.found <- match[1]:
	default:
	}
	return len(p), nil
}

func (a *addressOf) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

// startRelayd runs relayd on a free port until the test ends.
func startRelayd(t *testing.T, environ ...string) *relayd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &relayd{root: t.TempDir(), file: filepath.Join(t.TempDir(), "relayd.yaml")}
	if err := os.WriteFile(r.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := &addressOf{found: make(chan string, 1)}
	// The tabs are closed before what they talk to ends.
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, exe, "serve", "--root", r.root, "--listen", "127.0.0.1:0", "--config", r.file)
	cmd.Env = append(append(os.Environ(), asRelayd+"=1", "RELAYD_ADMIN_LISTEN=", "GORACE=atexit_sleep_ms=0"), environ...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	select {
	case address := <-log.found:
		r.url = "http://" + address
	case <-time.After(patience):
		t.Fatalf("relayd does not serve:\n%s", log)
	}
	return r
}

// chat runs a command of the host's side.
func (r *relayd) chat(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	args = append(args, "--root", r.root, "--config", r.file)
	code := cli.Main(t.Context(), cli.Env{Args: args, Stdin: new(bytes.Buffer), Stdout: &out, Stderr: &out})
	if code != 0 {
		t.Fatalf("chat %q exits with %d: %s", args, code, &out)
	}
}

// reply writes to the only thread as Hermes.
func (r *relayd) reply(t *testing.T, text string) {
	t.Helper()
	r.chat(t, "reply", r.thread(t), text)
}

// thread returns the only thread.
func (r *relayd) thread(t *testing.T) string {
	t.Helper()
	threads := r.threads(t)
	if len(threads) != 1 {
		t.Fatalf("there are the threads %q, want one", threads)
	}
	return threads[0]
}

// threads returns the threads that stand on disk.
func (r *relayd) threads(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.root, "spaces", "newos4", "data", "chat", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	return files
}

// stored returns the file of the only thread.
func (r *relayd) stored(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.threadFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (r *relayd) threadFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(r.root, "spaces", "newos4", "data", "chat", r.thread(t)+".json")
}
