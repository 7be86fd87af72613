package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/daemon"
	"github.com/newos4/relay/pkg/workspace/store"
)

// page is a browser of the workspace.
type page struct {
	*testing.T

	origin string
	http   *http.Client
	csrf   string
}

func (r *relayd) page(t *testing.T) *page {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	origin := strings.TrimSuffix(r.base, "/spaces/newos4/api/chat/")
	return &page{T: t, origin: origin, http: &http.Client{Jar: jar}}
}

// do sends a request as a page does, and returns its status and its answer.
func (p *page) do(method, path, body string) (int, map[string]any) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.origin+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Origin", p.origin)
	r.Header.Set(account.CSRFHeader, p.csrf)
	response, err := p.http.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer map[string]any
	if err := json.UnmarshalRead(response.Body, &answer); err != nil {
		p.Fatalf("%s %s: %v", method, path, err)
	}
	if token, ok := answer["csrfToken"].(string); ok {
		p.csrf = token
	}
	return response.StatusCode, answer
}

func (p *page) want(status int, method, path, body string) map[string]any {
	p.Helper()
	got, answer := p.do(method, path, body)
	if got != status {
		p.Fatalf("%s %s answers %d %v, want %d", method, path, got, answer, status)
	}
	return answer
}

// withStdin runs one command that reads from standard input.
func withStdin(t *testing.T, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = daemon.Main(t.Context(), daemon.Env{Args: args, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &err})
	return code, out.String(), err.String()
}

// Ensures that the workspace is served beside the chat, each by its own rules, and
// that what it keeps is private and survives a restart.
func TestWorkspace_BesideTheChat(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := start(t, root, "RELAYD_WORKSPACE_ENABLED=true")
	p := r.page(t)
	if boot := p.want(200, "GET", "/api/app/bootstrap", ""); boot["setupRequired"] != true {
		t.Errorf("bootstrap = %v", boot)
	}
	p.want(200, "POST", "/api/app/setup", `{"username":"ann","password":"correct horse"}`)
	p.want(200, "GET", "/api/app/conversations", "")
	p.want(404, "GET", "/api/nothing", "")
	p.want(410, "GET", "/api/app/groups", "")
	p.want(200, "GET", "/healthz", "")
	if gone := p.want(410, "GET", "/api/debug/agent-replies.php", ""); gone["code"] != "gone" {
		t.Errorf("the chat's retired path answers %v", gone)
	}
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"hello"}`)
	r.mustSend(t, 401, "POST", "post.php", "", `{"text":"hello"}`)
	if err := r.stop(); err != nil {
		t.Fatalf("%v\n%s", err, r.log)
	}
	err := filepath.WalkDir(filepath.Join(root, "workspace"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	r = start(t, root, "RELAYD_WORKSPACE_ENABLED=true")
	p = r.page(t)
	if boot := p.want(200, "GET", "/api/app/bootstrap", ""); boot["setupRequired"] != false {
		t.Errorf("bootstrap = %v", boot)
	}
	p.want(200, "POST", "/api/app/login", `{"username":"ann","password":"correct horse"}`)
}

// Ensures that without the workspace there are none of its routes and none of its
// files.
func TestWorkspace_IsOffByDefault(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := start(t, root)
	if status, answer := r.page(t).do("GET", "/api/app/bootstrap", ""); status != 404 || answer["success"] != false {
		t.Errorf("the answer is %d %v", status, answer)
	}
	if _, err := os.Stat(filepath.Join(root, "workspace")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the workspace's directory: %v", err)
	}
}

// Ensures that a stop does not wait for a page that waits for events, and answers
// it.
func TestWorkspace_StopEndsWaiting(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_WORKSPACE_ENABLED=true", "RELAYD_HTTP_SHUTDOWN_TIMEOUT=1m")
	p := r.page(t)
	p.want(200, "GET", "/api/app/bootstrap", "")
	p.want(200, "POST", "/api/app/setup", `{"username":"ann","password":"correct horse"}`)
	answered := make(chan int)
	go func() {
		status, _ := p.do("GET", "/api/app/events?wait=25", "")
		answered <- status
	}()
	r.page(t).want(200, "GET", "/healthz", "") // most likely the other one waits by now
	stopping := time.Now()
	if err := r.stop(); err != nil {
		t.Errorf("SIGTERM: %v\n%s", err, r.log)
	}
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the page that waited got %d", status)
	}
	if took := time.Since(stopping); took > 15*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// Ensures that accounts are managed while relayd serves, and that what is done
// takes effect at once.
func TestUser_Commands(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := start(t, root, "RELAYD_WORKSPACE_ENABLED=true")
	do := func(want int, in string, args ...string) string {
		t.Helper()
		code, stdout, stderr := withStdin(t, in, append([]string{"--root", root, "--config", emptyConfig(t)}, args...)...)
		if code != want {
			t.Errorf("%v exits with %d, want %d: %s", args, code, want, stderr)
		}
		return stdout + stderr
	}
	if out := do(1, "correct horse\n", "user", "add", "ann", "--password-file", "-"); !strings.Contains(out, "hint: add it with --admin") {
		t.Errorf("the first account: %s", out)
	}
	do(0, "correct horse\n", "user", "add", "ann", "--admin", "--password-file", "-")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("another horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(0, "", "user", "add", "bob", "--must-change", "--password-file", file)
	do(1, "correct horse", "user", "add", "ANN", "--password-file", "-")
	do(1, "short", "user", "add", "carl", "--password-file", "-")
	do(1, strings.Repeat("x", 20000), "user", "add", "carl", "--password-file", "-")
	do(1, "", "user", "add", "carl", "--password-file", file+".none")
	do(2, "", "user", "add", "carl")
	do(2, "", "user", "add")
	do(2, "", "user", "list", "x")

	p := r.page(t)
	p.want(200, "GET", "/api/app/bootstrap", "")
	p.want(200, "POST", "/api/app/login", `{"username":"ann","password":"correct horse"}`)
	do(0, "", "user", "disable", "Ann")
	p.want(401, "GET", "/api/app/agents", "")
	if out := do(0, "", "user", "list"); !strings.Contains(out, "disabled") || !strings.Contains(out, "must-change") || strings.Count(out, "\n") != 3 {
		t.Errorf("the list is\n%s", out)
	}
	do(0, "", "user", "enable", "ann")
	do(0, "a third horse", "user", "passwd", "ann", "--password-file", "-")
	p.want(401, "POST", "/api/app/login", `{"username":"ann","password":"correct horse"}`)
	p.want(200, "POST", "/api/app/login", `{"username":"ann","password":"a third horse"}`)
	do(1, "", "user", "disable", "nobody")
}

// Ensures that a backup that is made while people write is a whole database with
// what was there, and that an existing file stays.
func TestWorkspace_Backup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := start(t, root, "RELAYD_WORKSPACE_ENABLED=true")
	p := r.page(t)
	p.want(200, "GET", "/api/app/bootstrap", "")
	p.want(200, "POST", "/api/app/setup", `{"username":"ann","password":"correct horse"}`)
	dir := t.TempDir()
	copied := filepath.Join(dir, store.FileName)
	for i, want := range []int{0, 1} {
		code, _, stderr := run(t, nil, "--root", root, "--config", emptyConfig(t), "workspace", "backup", copied)
		if code != want {
			t.Errorf("try %d exits with %d: %s", i, code, stderr)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	users, err := s.Accounts().Users(context.Background())
	if err := errors.Join(err, s.Check(context.Background()), s.Close()); err != nil || len(users) != 1 {
		t.Errorf("the copy has %d users, %v", len(users), err)
	}
}

// Ensures that a workspace that cannot be opened stops the start and says why.
func TestWorkspace_CannotStart(t *testing.T) {
	t.Parallel()
	serve := func(root, setting string) (int, string) {
		t.Helper()
		env := []string{"RELAYD_WORKSPACE_ENABLED=true", "RELAYD_ADMIN_LISTEN=127.0.0.1:0", setting}
		code, _, stderr := run(t, env, "serve", "--root", root, "--listen", "127.0.0.1:0", "--config", emptyConfig(t))
		return code, stderr
	}
	if code, stderr := serve(t.TempDir(), "RELAYD_WORKSPACE_ALLOWED_HOSTS=https://x"); code != 2 || !strings.Contains(stderr, "workspace.allowed_hosts") {
		t.Errorf("a host that is none: exit code %d: %s", code, stderr)
	}
	open := t.TempDir() // which others may enter
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if code, stderr := serve(t.TempDir(), "RELAYD_WORKSPACE_DATA_DIR="+open); code != 1 || !strings.Contains(stderr, "is open to others") {
		t.Errorf("a directory that is open: exit code %d: %s", code, stderr)
	}
}
