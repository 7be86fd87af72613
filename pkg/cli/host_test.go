package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/cli"
	"github.com/newos4/relay/pkg/storage"
)

// host is a data directory with the commands that run on it.
type host struct {
	t     *testing.T
	root  string
	store *storage.Store
	// unprivileged commands get at nothing that root alone may read.
	unprivileged bool
	// columns is the width of the terminal that commands write to, 0 for none.
	columns atomic.Int64
}

func newHost(t *testing.T) *host {
	t.Helper()
	root := t.TempDir()
	store := openStore(root, time.Now)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &host{t: t, root: root, store: store}
}

// mustPost adds a message as a browser does and returns it.
func (h *host) mustPost(id chat.ThreadID, text string) chat.Message {
	h.t.Helper()
	receipt, err := h.store.Append(h.t.Context(), id, storage.Post{Author: chat.Operator, Text: text, Create: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return receipt.Message
}

// env returns the Env of a command that nobody sits at and whose standard input
// must be left alone.
func (h *host) env(args ...string) cli.Env {
	return cli.Env{
		Args:          args,
		Stdin:         untouchable{h.t},
		Stdout:        io.Discard,
		Stderr:        io.Discard,
		Environ:       []string{"RELAYD_ROOT=" + h.root},
		DefaultConfig: missingFile,
		Columns:       func(io.Writer) int { return int(h.columns.Load()) },
	}
}

// run runs a command and returns what it printed and its exit code.
func (h *host) run(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	env := h.env(args...)
	env.Stdout, env.Stderr = &out, &errs
	code = h.main(h.t.Context(), env)
	return out.String(), errs.String(), code
}

// main runs a command.
func (h *host) main(ctx context.Context, env cli.Env) int {
	if !h.unprivileged || os.Geteuid() != 0 {
		return cli.Main(ctx, env)
	}
	code := make(chan int, 1)
	go func() {
		// The thread has another user to the file system from here on. It ends
		// with the goroutine that holds it.
		runtime.LockOSThread()
		const nobody = 65534
		_, _ = unix.SetfsuidRetUid(nobody)
		code <- cli.Main(ctx, env)
	}()
	return <-code
}

// mustForbid puts a file that root alone may read in the place of the thread's,
// and has the commands run as somebody else.
func (h *host) mustForbid(id chat.ThreadID) {
	h.t.Helper()
	h.unprivileged = true
	path := filepath.Join(h.store.Path(), string(id)+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	err = errors.Join(
		os.Chmod(filepath.Dir(h.root), 0o711), // the directory of all that the test makes
		os.WriteFile(path+".new", data, 0),
		os.Rename(path+".new", path),
	)
	if err != nil {
		h.t.Fatal(err)
	}
}

// mustAllow lets everybody read the thread's file again.
func (h *host) mustAllow(id chat.ThreadID) {
	h.t.Helper()
	if err := os.Chmod(filepath.Join(h.store.Path(), string(id)+".json"), 0o666); err != nil {
		h.t.Fatal(err)
	}
}

// untouchable is a standard input whose other end never closes (cline/cline#9073,
// httpie/cli#1460): to read it is to hang.
type untouchable struct{ t *testing.T }

func (u untouchable) Read([]byte) (int, error) {
	u.t.Error("standard input was read, though nobody asked for it")
	return 0, io.EOF
}

// stream is a command that runs beside the test.
type stream struct {
	t      *testing.T
	lines  *bufio.Scanner
	errs   *bytes.Buffer // to be read once the command has ended
	cancel context.CancelFunc
	code   chan int
}

// start runs a command beside the test, which reads its lines.
func (h *host) start(args ...string) *stream {
	ctx, cancel := context.WithCancel(h.t.Context())
	reader, writer := io.Pipe()
	s := &stream{t: h.t, lines: bufio.NewScanner(reader), errs: new(bytes.Buffer), cancel: cancel, code: make(chan int, 1)}
	env := h.env(args...)
	env.Stdout, env.Stderr = writer, s.errs
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.code <- h.main(ctx, env)
		_ = writer.Close()
	}()
	h.t.Cleanup(func() {
		cancel()
		_ = reader.Close()
		<-done
	})
	return s
}

// expect reads the next line, whenever it comes, and checks what it holds.
func (s *stream) expect(want string) {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("the output ended, want a line with %q", want)
	}
	if line := s.lines.Text(); !strings.Contains(line, want) {
		s.t.Fatalf("line %q lacks %q", line, want)
	}
}

// interrupt ends the command and returns its exit code.
func (s *stream) interrupt() int {
	s.cancel()
	for s.lines.Scan() {
		s.t.Errorf("unexpected line %q", s.lines.Text())
	}
	return <-s.code
}
