package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/cli"
	"github.com/newos4/relay/pkg/storage"
)

// nowVariable sets the clock of a chat process, in epoch milliseconds.
const nowVariable = "CHAT_NOW"

// start is when scripts begin: 2026-10-23 18:00:00 UTC.
const start = "1792778400000"

// noSleepAtExit keeps the race detector from adding a second to each process.
const noSleepAtExit = "atexit_sleep_ms=0"

// Threads of the tokens of 64 zeros and of 64 times f, and one more.
const (
	threadA = chat.ThreadID("60e05bd1b195af2f")
	threadB = chat.ThreadID("df0790f236013511")
	threadC = chat.ThreadID("2a8abfa8cb990629")
)

// TestMain lets the test binary act as the program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"chat": func() {
		env := cli.ProcessEnv()
		env.DefaultConfig = missingFile
		env.Now = clock(os.Getenv(nowVariable))
		os.Exit(cli.Main(context.Background(), env))
	}})
}

// missingFile keeps tests from the configuration of the machine.
const missingFile = "/nonexistent/relayd.yaml"

// clock returns a clock that stands at an epoch in milliseconds, or the real one.
func clock(epoch string) func() time.Time {
	ms, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Now
	}
	return func() time.Time { return time.UnixMilli(ms) }
}

// Ensures that every command does what the scripts in testdata say: they are
// the specification of the program.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			root := filepath.Join(env.WorkDir, "root")
			env.Setenv("RELAYD_ROOT", root)
			env.Setenv("DATA", filepath.Join(root, "spaces", "newos4", "data", "chat"))
			env.Setenv(nowVariable, start)
			env.Setenv("GORACE", noSleepAtExit)
			env.Setenv("A", string(threadA))
			env.Setenv("B", string(threadB))
			env.Setenv("C", string(threadC))
			// What a txtar file cannot hold.
			env.Setenv("CSI", "\x1b[2J")
			env.Setenv("BADTEXT", "a\xffb")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits,
			"post":  scriptPost,
			"pages": scriptPages,

			"agentstate": scriptAgentState,
		},
	})
}

// scriptExits is "exits CODE chat ARG...": it runs the program and checks the
// exit code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if want, _ := strconv.Atoi(args[0]); got != want {
		ts.Fatalf("exit code is %d, want %s", got, args[0])
	}
}

// scriptPost is "post THREAD AUTHOR TEXT": it adds a message as a browser's post
// does, at CHAT_NOW. Escapes such as \n and \u202e in the text are resolved.
func scriptPost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: post THREAD AUTHOR TEXT")
	}
	text, err := strconv.Unquote(`"` + args[2] + `"`)
	ts.Check(err)
	store := openStore(ts.Getenv("RELAYD_ROOT"), clock(ts.Getenv(nowVariable)))
	post := storage.Post{Author: chat.Author(args[1]), Text: text, Create: true}
	_, err = store.Append(context.Background(), chat.ThreadID(args[0]), post)
	ts.Check(errors.Join(err, store.Close()))
}

// scriptPages is "pages THREAD COUNT": it adds COUNT messages m1, m2 and so on.
func scriptPages(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pages THREAD COUNT")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for i := range n {
		scriptPost(ts, false, []string{args[0], string(chat.Operator), "m" + strconv.Itoa(i+1)})
	}
}

func openStore(root string, now func() time.Time) *storage.Store {
	return storage.Open(storage.Options{
		Root: root, Space: "newos4", Now: now,
		Bounds: storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 200, MaxAge: 720 * time.Hour}},
	})
}

// scriptAgentState is "agentstate INBOX FILE": it writes what an agent would
// that waits with the first thread of an inbox in JSON.
func scriptAgentState(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: agentstate INBOX FILE")
	}
	var inbox struct {
		Threads []struct {
			Thread chat.ThreadID `json:"thread"`
			Last   struct {
				ID string `json:"id"`
			} `json:"last"`
		} `json:"threads"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &inbox))
	first := inbox.Threads[0]
	data, err := json.Marshal(autoreply.State{Threads: map[chat.ThreadID]autoreply.ThreadState{first.Thread: {
		Phase: autoreply.Waiting, Message: first.Last.ID, Reason: "the limit of 60 answers in an hour is reached",
		Since: 1792778460123, Until: 1792780000000, Attempts: 2,
	}}})
	ts.Check(err)
	path := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o750))
	ts.Check(os.WriteFile(path, data, 0o640))
}
