package autoreply

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// asAgent, in the environment, makes the test binary an agent on the root that
// it names; crashAt is the number of the step at which it kills itself.
const (
	asAgent = "RELAY_AUTOREPLY_TEST_ROOT"
	crashAt = "RELAY_AUTOREPLY_TEST_CRASH"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(asAgent); root != "" {
		runAgent(root)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runAgent answers the test's threads until all are answered, then prints a
// line and ends; unless it was to crash before.
func runAgent(root string) {
	store := openStore(root)
	agent := New(Settings{
		Concurrency: 2, Limit: 4000, Outgoing: NewOutgoing(nil), Backend: &scripted{answer: echo},
		Budget: Budget{Time: time.Minute, Tokens: 1000}, Bounds: Bounds{Retries: 2},
	}, store, filepath.Join(root, "state", StateFile), slog.New(slog.DiscardHandler))
	agent.step = crashAtStep(os.Getenv(crashAt))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	feed := store.Feed(0)
	wg.Go(func() { feed.Run(ctx) })
	wg.Go(func() { agent.Run(ctx, feed.Changes()) })
	watch := store.Feed(0) // a feed of the test's own, to see the end
	wg.Go(func() { watch.Run(ctx) })
	for range watch.Changes() {
		if waiting, _, err := store.Awaiting(); err == nil && len(waiting) == 0 {
			break
		}
	}
	cancel()
	wg.Wait()
	fmt.Println("done")
}

func crashAtStep(at string) func(string) {
	n, _ := strconv.Atoi(at)
	var mu sync.Mutex
	return func(string) {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal ends the process
		}
	}
}

func openStore(root string) *storage.Store {
	return storage.Open(storage.Options{
		Root: root, Space: "newos4", Bounds: storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 200, MaxAge: 720 * time.Hour}},
	})
}

// Ensures that an agent which is killed at any step, again and again, answers
// every message exactly once in the end (NorthlandPositronics/Cogtrix#2053).
func TestAgent_KilledAtEveryStep(t *testing.T) {
	t.Parallel()
	kills := 0
	for later := range 4 {
		for step := 1; killTwice(t, step, step+later); step++ {
			kills += 2
		}
	}
	t.Logf("%d agents were killed", kills)
	if kills < 100 {
		t.Errorf("only %d crash points were met", kills)
	}
}

// killTwice lets an agent die at the first step and its successor at the second,
// and checks what the third one leaves. It reports whether the first one died.
func killTwice(t *testing.T, first, second int) bool {
	t.Helper()
	root := t.TempDir()
	store := openStore(root)
	defer func() { _ = store.Close() }()
	for i := range 3 {
		if _, err := store.Append(t.Context(), thread(i), storage.Post{Author: chat.Operator, Text: "x", Create: true}); err != nil {
			t.Fatal(err)
		}
	}
	crashed := killAgent(t, root, first)
	killAgent(t, root, second)
	if killAgent(t, root, 0) {
		t.Fatalf("steps %d and %d: the last agent did not end", first, second)
	}
	for i := range 3 {
		th, err := store.Thread(thread(i))
		if err != nil || th.Len() != 2 || th.Messages()[1].Author != chat.Hermes {
			t.Errorf("steps %d and %d: thread %d has %d messages, %v", first, second, i, th.Len(), err)
		}
	}
	return crashed
}

// killAgent runs an agent and reports whether it was killed at its step.
func killAgent(t *testing.T, root string, step int) bool {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), asAgent+"="+root, fmt.Sprintf("%s=%d", crashAt, step),
		"GORACE=atexit_sleep_ms=0") // the race detector would add a second to each process
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := bufio.NewScanner(out).Scan()
	_ = cmd.Wait()
	return !done
}
