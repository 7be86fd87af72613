package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chat"
)

// manual makes a readable root with one page.
func manual(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "manual")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	page := "Opening hours\n\nThe observatory is open on clear nights until midnight.\n"
	if err := os.WriteFile(filepath.Join(dir, "hours.txt"), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// answerTo waits until Hermes has had the last word in the thread, and returns
// that word.
func (r *relayd) answerTo(t *testing.T, id chat.ThreadID) string {
	t.Helper()
	store := openStore(r.root)
	defer func() { _ = store.Close() }()
	feed := store.Feed(0)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	var running sync.WaitGroup
	running.Go(func() { feed.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			t.Fatalf("no answer:\n%s", r.log)
		case <-feed.Changes():
		}
		thread, err := store.Thread(id)
		if err != nil {
			t.Fatal(err)
		}
		if last, ok := thread.Last(); ok && last.Author == chat.Hermes {
			return last.Text
		}
	}
}

// Ensures that the agent of the real process answers from what it may read and
// from nothing else, and leaves its state for chat to show.
func TestServe_AgentQuotesTheManual(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS="+manual(t), "RELAYD_AGENT_QUIET=10ms")
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"When is the observatory open?"}`)
	answer := r.answerTo(t, chat.Token(token(1)).Thread())
	if !strings.Contains(answer, "open on clear nights until midnight") || !strings.Contains(answer, "manual/hours.txt") {
		t.Errorf("answer = %q", answer)
	}
	r.waitForLog(t, "a run of the agent ended")
	if _, counted := fetch(t, r.admin(t)+"/metrics"); !strings.Contains(counted, `relay_agent_runs_total{outcome="answered",reason=""} 1`) {
		t.Errorf("the run is not counted:\n%s", counted)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	state, err := autoreply.ReadState(filepath.Join(r.root, "state", autoreply.StateFile))
	if err != nil || state.Counts["answered"] != 1 || len(state.Threads) != 0 {
		t.Errorf("state = %+v, %v", state, err)
	}
}

// Ensures that a reload changes the agent and the limits, that it names what
// needs a restart, and that a broken configuration changes nothing.
func TestServe_Reload(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "relayd.yaml")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("agent: {backend: none}\n")
	r := startWith(t, t.TempDir(), config)
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"When is the observatory open?"}`)

	write("agent: {backend: nonsense}\n")
	r.hangUp(t)
	r.waitForLog(t, "the configuration was not reloaded")

	write(fmt.Sprintf("space: other\nlimits: {thread_posts: 1}\nagent: {backend: extract, quiet: 10ms, roots: [%s]}\n", manual(t)))
	r.hangUp(t)
	r.waitForLog(t, `needs_restart=[space]`)
	if answer := r.answerTo(t, chat.Token(token(1)).Thread()); !strings.Contains(answer, "midnight") {
		t.Errorf("answer = %q", answer)
	}
	r.mustSend(t, 429, "POST", "post.php", token(1), `{"text":"one more"}`)
}

// Ensures that an agent that cannot be confined, or whose root is none, leaves
// its threads to people and says why, while browsers are served.
func TestServe_AgentThatCannotStart(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS=/proc", "RELAYD_AGENT_QUIET=10ms")
	r.mustSend(t, 201, "POST", "post.php", token(1), `{"text":"x"}`)
	r.waitForLog(t, "a thread stays unanswered")
	r.waitForLog(t, "the agent cannot start")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	state, err := autoreply.ReadState(filepath.Join(r.root, "state", autoreply.StateFile))
	if err != nil {
		t.Fatal(err)
	}
	if s := state.Threads[chat.Token(token(1)).Thread()]; s.Phase != autoreply.Failed || !strings.Contains(s.Reason, "/proc") {
		t.Errorf("state = %+v", s)
	}
}

// Ensures that a dry run shows what was looked at and the answer, stores
// nothing, and says why there is none.
func TestAgentTest(t *testing.T) {
	t.Parallel()
	root, config := t.TempDir(), emptyConfig(t)
	environ := []string{"RELAYD_ROOT=" + root, "RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS=" + manual(t)}
	code, stdout, stderr := run(t, environ, "agent", "test", "When is the observatory open?", "--config", config)
	if code != 0 || !strings.Contains(stdout, "manual/hours.txt") || !strings.Contains(stdout, "until midnight") || !strings.HasPrefix(stdout, "-- ") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
		t.Errorf("a dry run left %v, %v", entries, err)
	}
	code, _, stderr = run(t, []string{"RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS=/proc"}, "agent", "test", "x", "--config", config)
	if code != 1 || !strings.Contains(stderr, "no answer after") || !strings.Contains(stderr, "/proc") {
		t.Errorf("code %d, %s", code, stderr)
	}
	code, _, stderr = run(t, nil, "agent", "test", "x", "--config", config)
	if code != 2 || !strings.Contains(stderr, "agent.backend is none") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// Ensures that what is relayd's own stays closed also where a root contains it:
// its configuration, however it was named, keys, threads, resets, credentials
// and state.
func TestAgent_OwnFilesStayClosed(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Join(root, "handed"))
	const marker = "observatory canary"
	open := "open.txt"
	for _, name := range []string{
		"relay.yaml", "state/agent.txt", "spaces/newos4/data/chat/x.txt", "spaces/newos4/data/chat-reset/x.txt", "one.txt", "two.txt", "handed/openai", open,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "The " + marker + " of " + name + "\n"
		if name == "relay.yaml" {
			text = "# " + text
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := run(t, []string{
		"RELAYD_ROOT=" + root, "RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS=" + root,
		"RELAYD_AGENT_OPENAI_KEY_FILE=one.txt", "RELAYD_AGENT_HERMES_KEY_FILE=" + filepath.Join(root, "two.txt"),
	}, "agent", "test", "What is the observatory canary?", "--config", "relay.yaml")
	if code != 0 || !strings.Contains(stdout, open) || strings.Count(stdout, marker) != 1 {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}

// Ensures that no answer carries a configured key, whichever back end is in use.
func TestAgent_KeyOfAnotherBackend(t *testing.T) {
	t.Parallel()
	dir := manual(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("midnight-rendezvous\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more.txt"), []byte("The observatory opens to midnight-rendezvous.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, []string{
		"RELAYD_ROOT=" + t.TempDir(), "RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS=" + dir, "RELAYD_AGENT_HERMES_KEY_FILE=" + key,
	}, "agent", "test", "What opens the observatory?", "--config", emptyConfig(t))
	if code != 1 || !strings.Contains(stderr, "held a secret") || strings.Contains(stdout, "rendezvous") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}

// Ensures that what a command complains of, which may repeat a message, is shown
// by a dry run.
func TestAgentTest_ShowsComplaints(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := run(t, []string{"RELAYD_AGENT_BACKEND=command", "RELAYD_AGENT_COMMAND_ARGV=" + program},
		"agent", "test", "a question", "--config", emptyConfig(t))
	if code != 1 || strings.Count(stderr, "a question") != 1 {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// Ensures that reloads leave neither processes nor descriptors behind.
func TestServe_ReloadsLeakNothing(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS="+manual(t))
	r.waitForLog(t, "the agent answers")
	before := r.descriptors(t)
	for i := range 30 {
		r.hangUp(t)
		r.waitForLogTimes(t, "the configuration was reloaded", i+1)
	}
	// The last of them may not have let go of the reader before yet.
	if after := r.descriptors(t); after > before+8 {
		t.Errorf("%d descriptors after the reloads, %d before", after, before)
	}
	if n := r.children(t); n > 2 {
		t.Errorf("%d children after the reloads", n)
	}
}

func (r *relayd) descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// children counts the processes that relayd has started and that are left, dead
// ones included.
func (r *relayd) children(t *testing.T) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.Process.Pid))
	if err != nil || len(lists) == 0 {
		t.Fatalf("this kernel does not list children: %v", err)
	}
	n := 0
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread is gone
		}
		n += len(strings.Fields(string(text)))
	}
	return n
}

// hangUp asks for a reload as systemd does.
func (r *relayd) hangUp(t *testing.T) {
	t.Helper()
	if err := r.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
