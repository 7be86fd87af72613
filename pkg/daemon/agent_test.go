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

// hangUp asks for a reload as systemd does.
func (r *relayd) hangUp(t *testing.T) {
	t.Helper()
	if err := r.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
