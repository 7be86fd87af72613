package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// checked is what relayd check --json prints.
type checked struct {
	Failures, Warnings, Notes int
	Findings                  []struct{ Check, Level, What, Why, Mend string }
}

// of returns the one finding of a check.
func (c checked) of(t *testing.T, check string) (level, text string) {
	t.Helper()
	for _, f := range c.Findings {
		if f.Check == check {
			return f.Level, f.What + "; " + f.Why + "; " + f.Mend
		}
	}
	t.Fatalf("nothing of %s in %+v", check, c)
	return "", ""
}

// diagnose runs relayd check on a root, with keys of the configuration as variables.
func diagnose(t *testing.T, root string, keys []string, flags ...string) (int, checked) {
	t.Helper()
	args := append([]string{"check", "--json", "--config", emptyConfig(t), "--root", root}, flags...)
	code, stdout, stderr := run(t, keys, args...)
	if stderr != "" {
		t.Errorf("standard error: %s", stderr)
	}
	var c checked
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return code, c
}

// everythingIn returns everything below a directory with its attributes and content, but
// for the times of reading.
func everythingIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		}
		found[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Ensures that a check changes nothing, before relayd ever ran and beside it, with
// sound and corrupt threads and with an agent that reads files.
func TestCheck_ChangesNothing(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	root, public := filepath.Join(parent, "root"), filepath.Join(parent, "public")
	if err := os.Mkdir(public, 0o755); err != nil {
		t.Fatal(err)
	}
	agent := []string{"RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS=" + public, "RELAYD_LISTEN=127.0.0.1:0", "RELAYD_ADMIN_LISTEN=127.0.0.1:0"}
	before := everythingIn(t, parent)
	diagnose(t, root, agent)
	if diff := cmp.Diff(before, everythingIn(t, parent)); diff != "" {
		t.Errorf("before relayd ran: %s", diff)
	}

	store := openStore(root)
	for _, id := range []chat.ThreadID{"60e05bd1b195af2f", "df0790f236013511"} {
		if _, err := store.Append(t.Context(), id, storage.Post{Author: chat.Operator, Text: "x", Create: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(store.Path(), "df0790f236013511.json"), []byte("{"), 0o660); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	before = everythingIn(t, parent)
	code, c := diagnose(t, root, agent)
	if diff := cmp.Diff(before, everythingIn(t, parent)); diff != "" {
		t.Errorf("with threads: %s", diff)
	}
	if level, text := c.of(t, "threads"); code != 1 || level != "failure" || !strings.Contains(text, "chat reset df0790f236013511") {
		t.Errorf("exit code %d, threads %s %s", code, level, text)
	}
}

// Ensures that a port which this very relayd serves on is fine, in a process of
// its own.
func TestCheck_BesideRelayd(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	address := strings.TrimPrefix(strings.TrimSuffix(r.base, "/spaces/newos4/api/chat/"), "http://")
	_, c := diagnose(t, r.root, nil, "--listen", address)
	if level, text := c.of(t, "listen"); level != "ok" || !strings.Contains(text, "a relayd serves on") {
		t.Errorf("listen %s %s", level, text)
	}
}

// Ensures the exit codes that scripts rely on: 0 with warnings, 1 with them under
// --strict or with a failure, 2 for a configuration that cannot be loaded, whose
// problems are findings too.
func TestCheck_ExitCodes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := openStore(root)
	if err := store.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(store.Path(), 0o770|fs.ModeSetgid|0o005); err != nil {
		t.Fatal(err)
	}
	free := []string{"RELAYD_LISTEN=127.0.0.1:0", "RELAYD_ADMIN_LISTEN=127.0.0.1:0"}
	if code, c := diagnose(t, root, free); code != 0 || c.Failures != 0 || c.Warnings == 0 {
		t.Errorf("warnings: exit code %d, %+v", code, c)
	}
	if code, _ := diagnose(t, root, free, "--strict"); code != 1 {
		t.Errorf("warnings under --strict: exit code %d", code)
	}
	if code, c := diagnose(t, root, append(free, "RELAYD_HTTP_TRUSTED_PROXIES=0.0.0.0/0")); code != 1 || c.Failures != 1 {
		t.Errorf("a failure: exit code %d, %+v", code, c)
	}
	code, c := diagnose(t, root, []string{"RELAYD_LIMITS_THREADS=x", "RELAYD_ODD=1"})
	if code != 2 || c.Failures != 2 || c.Findings[0].Check != "configuration" {
		t.Errorf("a bad configuration: exit code %d, %+v", code, c)
	}
	if code, _, stderr := run(t, nil, "check", "twice"); code != 2 || !strings.Contains(stderr, "takes no argument") {
		t.Errorf("an argument: exit code %d, %s", code, stderr)
	}
}

// Ensures that the text has a line for each finding and the summary as the last.
func TestCheck_Text(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t, []string{"RELAYD_LISTEN=127.0.0.1:0", "RELAYD_ADMIN_LISTEN=127.0.0.1:0", "RELAYD_HTTP_TRUSTED_PROXIES=::/0"},
		"check", "--config", emptyConfig(t), "--root", filepath.Join(t.TempDir(), "root"))
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if code != 1 || stderr != "" || !strings.HasPrefix(lines[len(lines)-1], "1 failure") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	for _, line := range []string{
		"FAIL  proxies        http.trusted_proxies believes all of ::/0; ",
		"\n                     mend: name the addresses",
		"\nok    agent          none; threads are left to chat reply\n",
	} {
		if !strings.Contains(stdout, line) {
			t.Errorf("no %q in:\n%s", line, stdout)
		}
	}
}

// Ensures that a real back end is asked: one that answers passes, one that is gone
// or has tools fails with the reason, and --no-network asks none.
func TestCheck_AsksTheModel(t *testing.T) {
	t.Parallel()
	model := autoreplytest.New(t, autoreplytest.Options{})
	tools := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/capabilities" {
			_, _ = io.WriteString(w, `{"object":"hermes.api_server.capabilities"}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"name":"terminal","enabled":true,"tools":["run_command"]}]}`)
	}))
	t.Cleanup(tools.Close)
	openai := func(base string) []string {
		return []string{"RELAYD_AGENT_BACKEND=openai", "RELAYD_AGENT_OPENAI_MODEL=m", "RELAYD_AGENT_OPENAI_BASE_URL=" + base}
	}
	for name, test := range map[string]struct {
		keys  []string
		flags []string
		level string
		words string
	}{
		"answers": {openai(model.URL), nil, "ok", "openai can be used"},
		"is gone": {openai("http://127.0.0.1:1/v1"), nil, "failure", "unavailable"},
		"has tools": {
			[]string{"RELAYD_AGENT_BACKEND=hermes", "RELAYD_AGENT_HERMES_BASE_URL=" + tools.URL + "/v1"}, nil,
			"failure", "run_command",
		},
		"is not asked": {openai("http://127.0.0.1:1/v1"), []string{"--no-network"}, "note", "--no-network"},
		"has no key": {
			append(openai(model.URL), "RELAYD_AGENT_OPENAI_KEY_FILE=/nonexistent"), nil, "note", "mend what is above",
		},
		"is a program that is missing": {
			[]string{"RELAYD_AGENT_BACKEND=command", "RELAYD_AGENT_COMMAND_ARGV=/nonexistent"}, nil, "failure", "/nonexistent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := diagnose(t, t.TempDir(), append(test.keys, "RELAYD_LISTEN=127.0.0.1:0", "RELAYD_ADMIN_LISTEN=127.0.0.1:0"), test.flags...)
			if level, text := c.of(t, "agent"); level != test.level || !strings.Contains(text, test.words) {
				t.Errorf("agent %s %s", level, text)
			}
		})
	}
}
