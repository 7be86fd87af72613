package storage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// childMode names, in the environment of a process that a test starts from its
// own binary, what the process is to do.
const childMode = "RELAY_STORAGE_TEST_CHILD"

// TestMain lets the test binary also be the other processes of the tests.
func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := runChild(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childJob is what a child process is told on its standard input.
type childJob struct {
	Root    string
	Thread  chat.ThreadID
	Text    string
	Count   int
	Threads int // limit
	Crash   int // the number of the step at which the process kills itself
	Umask   int
}

// runChild does one job and prints what was acknowledged, a line each.
func runChild(mode string) error {
	var job childJob
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		return err
	}
	if job.Umask != 0 {
		syscall.Umask(job.Umask)
	}
	s := Open(testOptions(job.Root))
	s.limits.Load().Threads = job.Threads
	if job.Crash > 0 {
		s.step = crashAt(job.Crash)
	}
	switch mode {
	case "append":
		return childAppend(s, job)
	case "create":
		return childCreate(s, job)
	case "remove":
		s.limits.Load().Retention.MaxAge = time.Nanosecond
		return childSweep(s, job)
	case "shorten":
		s.limits.Load().Retention.Messages = 1
		return childSweep(s, job)
	case "reset":
		return childReset(s, job)
	case "hold":
		return childHold(s, job)
	case "full disk":
		return childFullDisk(job)
	}
	return fmt.Errorf("unknown mode %q", mode)
}

// crashAt kills the process before its nth change of the disk.
func crashAt(n int) stepFunc {
	return func(string) error {
		if n--; n == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal ends the process
		}
		return nil
	}
}

func childAppend(s *Store, job childJob) error {
	for i := range job.Count {
		text := fmt.Sprintf("%s %d", job.Text, i)
		if _, err := s.Append(context.Background(), job.Thread, Post{Author: chat.Operator, Text: text, Create: true}); err != nil {
			return err
		}
		fmt.Println(text)
	}
	return nil
}

func childCreate(s *Store, job childJob) error {
	for i := range job.Count {
		id := chat.Token(fmt.Sprint(job.Text, i)).Thread()
		_, err := s.Append(context.Background(), id, Post{Author: chat.Operator, Text: "first", Create: true})
		if err != nil && chat.CodeOf(err) != chat.CodeThreadLimit {
			return err
		}
		if err == nil {
			fmt.Println(id)
		}
	}
	return nil
}

func childSweep(s *Store, _ childJob) error {
	_, err := s.Sweep(context.Background(), SweepOptions{})
	return err
}

func childReset(s *Store, job childJob) error {
	aside, err := s.Reset(context.Background(), job.Thread)
	fmt.Println(aside)
	return err
}

// childHold takes the thread's lock and keeps it until its input ends.
func childHold(s *Store, job childJob) error {
	g, err := s.lockThread(context.Background(), job.Thread, time.Minute)
	if err != nil {
		return err
	}
	defer g.unlock()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// child is a started process.
type child struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr *strings.Builder
}

func startChild(t *testing.T, mode string, job childJob) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if job.Threads == 0 {
		job.Threads = 500
	}
	c := &child{Cmd: exec.CommandContext(t.Context(), exe), stderr: new(strings.Builder)}
	c.Env = append(os.Environ(), childMode+"="+mode,
		"GORACE=atexit_sleep_ms=0") // the race detector would add a second to each process
	c.Stderr = c.stderr
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewScanner(stdout)
	if mode == "full disk" {
		c.SysProcAttr = ownMounts()
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(c.stdin).Encode(job); err != nil {
		t.Fatal(err)
	}
	return c
}

// finish returns the lines that the child printed and how it ended.
func (c *child) finish() ([]string, error) {
	var lines []string
	for c.stdout.Scan() {
		lines = append(lines, c.stdout.Text())
	}
	err := c.Wait()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, c.stderr)
	}
	return lines, err
}

func testOptions(root string) Options {
	return Options{
		Root: root, Space: "newos4",
		Bounds: Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 100000, MaxAge: 720 * time.Hour}},
	}
}

// mustOpen returns a store on a root of the test's own.
func mustOpen(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	opts := testOptions(t.TempDir())
	for _, f := range change {
		f(&opts)
	}
	s := Open(opts)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// mustPost appends a message of the operator.
func mustPost(t testing.TB, s *Store, id chat.ThreadID, text string) Receipt {
	t.Helper()
	receipt, err := s.Append(context.Background(), id, Post{Author: chat.Operator, Text: text, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// texts returns the texts of the whole thread.
func texts(t testing.TB, s *Store, id chat.ThreadID) []string {
	t.Helper()
	thread, err := s.Thread(id)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range thread.Messages() {
		list = append(list, m.Text)
	}
	return list
}

const testThread = chat.ThreadID("60e05bd1b195af2f")

// fakeClock is a clock that the test moves.
type fakeClock struct{ t time.Time }

func (c *fakeClock) now() time.Time { return c.t }

func newFakeClock() *fakeClock {
	return &fakeClock{time.Date(2026, 10, 23, 18, 0, 0, 0, time.UTC)}
}
