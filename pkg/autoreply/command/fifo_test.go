package command

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Ensures that the command dies with the process that asked it.
func TestAnswer_HostDies(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fifo := newFIFO(t)
	host := exec.CommandContext(t.Context(), self, asCommand, "host", fifo.path, t.TempDir())
	host.Stderr = t.Output()
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	fifo.holder(t)
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	fifo.untilDead(t)
	_ = host.Wait() // it was killed
}

// endingContext is one that a test ends in the way it wants.
type endingContext struct {
	context.Context
	done chan struct{}
	err  error
}

func (c *endingContext) Done() <-chan struct{} { return c.done }

func (c *endingContext) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// fifo is a named pipe whose reading end closes when all who hold it are dead.
type fifo struct {
	path string
	file *os.File
	read *bufio.Reader
}

func newFIFO(t *testing.T) *fifo {
	t.Helper()
	f := &fifo{path: filepath.Join(t.TempDir(), "fifo")}
	if err := unix.Mkfifo(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// holder waits for the descendant and returns its process id.
func (f *fifo) holder(t *testing.T) int {
	t.Helper()
	file, err := os.Open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	f.file, f.read = file, bufio.NewReader(file)
	line, err := f.read.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// untilDead returns once nobody holds the writing end any more.
func (f *fifo) untilDead(t *testing.T) {
	t.Helper()
	if f.file == nil {
		file, err := os.Open(f.path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		f.read = bufio.NewReader(file)
	}
	if _, err := io.Copy(io.Discard, f.read); err != nil {
		t.Error(err)
	}
}
