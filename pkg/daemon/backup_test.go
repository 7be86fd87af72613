package daemon_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// manualCommands returns the commands of a subsection of relayd-operation(7),
// with other paths.
func manualCommands(t *testing.T, heading string, paths ...string) string {
	t.Helper()
	source, err := os.ReadFile("../../man/relayd-operation.7")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)\n\.Ss ` + heading + `\n.*?\n\.Bd [^\n]*\n(.*?)\n\.Ed\n`).FindSubmatch(source)
	if found == nil {
		t.Fatalf("relayd-operation(7) has no commands for %s", heading)
	}
	return strings.NewReplacer(paths...).Replace(string(found[1]))
}

func shell(t *testing.T, commands string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", commands).CombinedOutput()
	t.Logf("%s\n%s", commands, out)
	if err != nil {
		t.Error(err)
	}
}

// Ensures that a backup by the manual's commands, made while people write and
// threads are removed, holds every message that was acknowledged before it began,
// whole threads only, and no epoch that a removed thread had not come to; and
// that relayd serves what the manual's commands restore of it.
func TestBackup_WhileServing(t *testing.T) {
	t.Parallel()
	root, archive := t.TempDir(), filepath.Join(t.TempDir(), "relayd.tar")
	limits := []string{"RELAYD_LIMITS_THREAD_POSTS=100000", "RELAYD_LIMITS_IP_POSTS=1000000", "RELAYD_LIMITS_MESSAGES=65536"}
	r := start(t, root, limits...)
	gone := removeThread(t, root)
	var mu sync.Mutex
	acknowledged := make(map[string]bool)
	stop, enough := make(chan struct{}), make(chan struct{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprintf("writer %d message %d", w, i)
				status, _, err := send(t.Context(), http.DefaultClient, "POST", r.base+"post.php", token(w), `{"text":"`+text+`"}`)
				if err != nil || status != http.StatusCreated {
					t.Errorf("post: %d %v", status, err)
					return
				}
				mu.Lock()
				acknowledged[text] = true
				if len(acknowledged) == 40 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	mu.Lock()
	before := maps.Clone(acknowledged)
	mu.Unlock()
	shell(t, "set -e\n"+manualCommands(t, "Backup", "/var/lib/relayd", root, "/backup/relayd.tar", archive))
	close(stop)
	writers.Wait()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	restored := t.TempDir()
	lines := slices.DeleteFunc(strings.Split(manualCommands(t, "Restore, and a move to another machine",
		"/var/lib/relayd", restored, "/backup/relayd.tar", archive), "\n"),
		func(line string) bool { return !strings.HasPrefix(line, "tar ") }) // the rest is the host's
	if len(lines) != 1 {
		t.Fatalf("restores by %q", lines)
	}
	shell(t, lines[0])
	checkRestored(t, restored, before)
	r = start(t, restored, limits...)
	for w := range 4 {
		r.mustSend(t, 201, "POST", "post.php", token(w), `{"text":"goes on"}`)
	}
	store := openStore(restored)
	defer func() { _ = store.Close() }()
	again, err := store.Append(t.Context(), gone.Thread, storage.Post{Author: chat.Operator, Text: "again", Create: true})
	if err != nil || again.Message.Epoch <= gone.Message.Epoch {
		t.Errorf("a removed thread begins anew at %d, and its readers are at %d: %v", again.Message.Epoch, gone.Message.Epoch, err)
	}
}

// removeThread leaves a thread behind that a sweep has removed, and which had run
// ahead of the clock.
func removeThread(t *testing.T, root string) storage.Receipt {
	t.Helper()
	later := func() time.Time { return time.Now().Add(time.Hour) }
	bounds := storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 10, MaxAge: time.Nanosecond}}
	store := storage.Open(storage.Options{Root: root, Space: "newos4", Now: later, Bounds: bounds})
	defer func() { _ = store.Close() }()
	receipt, err := store.Append(t.Context(), "00000000000000ff", storage.Post{Author: chat.Operator, Text: "soon gone", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	muchLater := storage.Open(storage.Options{Root: root, Space: "newos4", Now: func() time.Time { return later().Add(time.Hour) }, Bounds: bounds})
	defer func() { _ = muchLater.Close() }()
	report, err := muchLater.Sweep(t.Context(), storage.SweepOptions{})
	if err != nil || len(report.Removed) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	return receipt
}

// checkRestored makes sure that every thread is sound and that the messages are
// among what stands.
func checkRestored(t *testing.T, root string, want map[string]bool) {
	t.Helper()
	store := openStore(root)
	defer func() { _ = store.Close() }()
	ids, err := store.Threads()
	if err != nil || len(ids) != 4 {
		t.Fatalf("%d threads, %v", len(ids), err)
	}
	stands := make(map[string]bool)
	for _, id := range ids {
		thread, err := store.Thread(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range thread.Messages() {
			stands[m.Text] = true
		}
	}
	for text := range want {
		if !stands[text] {
			t.Errorf("lost: %s", text)
		}
	}
}
