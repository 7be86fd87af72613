package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/newos4/relay/pkg/chat"
)

// process returns the program as a process of its own.
func (h *host) process(args ...string) *exec.Cmd {
	h.t.Helper()
	binary, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.CommandContext(h.t.Context(), binary)
	cmd.Args = append([]string{"chat"}, args...)
	cmd.Env = append(os.Environ(), "RELAYD_ROOT="+h.root, "GORACE="+noSleepAtExit)
	return cmd
}

// Ensures that replies of many processes to one thread at once all succeed and
// are all kept, in an order of their own (AsamK/signal-cli#961,
// 8go/matrix-commander#31).
func TestReply_ManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "go")
	const processes = 50
	var running sync.WaitGroup
	for i := range processes {
		cmd := h.process("reply", string(threadA), fmt.Sprintf("m%d", i))
		running.Go(func() {
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", cmd.Args, err, output)
			}
		})
	}
	running.Wait()
	thread, err := h.store.Thread(threadA)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]bool)
	last := int64(0)
	for _, m := range thread.Messages()[1:] {
		if m.Author != chat.Hermes || m.Epoch <= last || texts[m.Text] {
			t.Errorf("message %+v stands behind epoch %d", m, last)
		}
		last, texts[m.Text] = m.Epoch, true
	}
	if len(texts) != processes {
		t.Errorf("%d replies were kept, want %d", len(texts), processes)
	}
}

// Ensures that the signals by which a user or a service manager ends a stream
// end it with exit code 0.
func TestPollFollow_EndsOnSignals(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := h.process("poll", "--follow", "--json")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The first line shows that the stream has begun.
		if _, err := stdout.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("on %v the stream ends with %v", signal, err)
		}
	}
}

// Ensures that a process whose reader has gone ends as the pipe's writer is
// expected to, without a stack trace.
func TestPoll_ClosedPipe(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := h.process("poll")
	cmd.Stdout, cmd.Stderr = writer, &errs
	err = errors.Join(cmd.Run(), writer.Close())
	if _, ok := errors.AsType[*exec.ExitError](err); !ok || errs.Len() > 0 {
		t.Errorf("ends with %v and %q", err, errs.String())
	}
}

// Ensures that a reply returns although nobody ever closes its standard input
// (cline/cline#9073, httpie/cli#1460).
func TestReply_OpenStandardInput(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	cmd := h.process("reply", string(threadA), "hi")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(reader.Close(), writer.Close()) }()
	cmd.Stdin = reader
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(output), "MSG-") {
		t.Errorf("ends with %v and %q", err, output)
	}
}
