package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/workspace"
)

// childMode names, in the environment of a process that a test starts from its
// own binary, what the process is to do; childArgs are its arguments.
const (
	childMode = "RELAY_WORKSPACE_TEST_CHILD"
	childArgs = "RELAY_WORKSPACE_TEST_ARGS"
)

// TestMain lets the test binary also be the other processes of the tests.
func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := runChild(mode, strings.Split(os.Getenv(childArgs), "\n")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runChild(mode string, args []string) error {
	switch mode {
	case "send":
		return childSend(args[0], workspace.ConversationID(args[1]), args[2])
	case "full disk":
		return childFullDisk(args[0])
	}
	return fmt.Errorf("unknown mode %q", mode)
}

// soak multiplies the slow proofs; `make soak` sets it.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RELAY_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// child is a started process.
type child struct {
	*exec.Cmd
	stdout *bufio.Scanner
	stderr strings.Builder
}

// startChild starts the test binary as another process. It ends with the test at
// the latest.
func startChild(t *testing.T, mode string, args ...string) *child {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.CommandContext(t.Context(), path)}
	c.Env = append(os.Environ(), childMode+"="+mode, childArgs+"="+strings.Join(args, "\n"), "GORACE=atexit_sleep_ms=0")
	c.Stderr = &c.stderr
	if mode == "full disk" {
		c.SysProcAttr = ownMounts()
	}
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewScanner(pipe)
	return c
}

// finish reads the rest of what the child prints and waits for its end.
func (c *child) finish() (lines []string, err error) {
	for c.stdout.Scan() {
		lines = append(lines, c.stdout.Text())
	}
	if err := c.Wait(); err != nil {
		return lines, fmt.Errorf("%w: %s", err, c.stderr.String())
	}
	return lines, nil
}

// isKilled reports whether the child ended by SIGKILL.
func isKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// ownMounts gives a child mounts of its own, so that it may mount a small file
// system without any right.
func ownMounts() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// childSend sends messages until it is killed and prints each once it is
// acknowledged.
func childSend(dir string, to workspace.ConversationID, name string) error {
	s, err := Open(context.Background(), Options{Dir: dir})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		content := fmt.Sprintf("%s %d", name, n)
		in := workspace.SendMessage{RequestID: workspace.Some(workspace.RequestID(s.opts.NewID())), Content: workspace.Some(content)}
		if _, err := s.Send(context.Background(), ann, to, in); err != nil {
			return err
		}
		fmt.Println(content)
	}
}

// childFullDisk fills a small file system, and goes on once it has grown.
func childFullDisk(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m,mode=0700"); err != nil {
		return fmt.Errorf("mounting: %w", err)
	}
	ctx := context.Background()
	s, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		return err
	}
	agent, err := s.CreateAgent(ctx, ann, newAgent("A"), sources)
	if err != nil {
		return err
	}
	list, err := s.Conversations(ctx, ann)
	if err != nil {
		return err
	}
	to := list.Conversations[0].ID
	acknowledged := 0
	for err == nil && acknowledged < 10_000 {
		if _, err = s.Send(ctx, ann, to, text(acknowledged, strings.Repeat("x", 2000))); err == nil {
			acknowledged++
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("the disk is full and Send says: %w", err)
	}
	if err := holds(s, to, acknowledged); err != nil {
		return fmt.Errorf("on a full disk: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=16m"); err != nil {
		return fmt.Errorf("growing: %w", err)
	}
	if _, _, err := s.EditAgent(ctx, ann, agent.ID, workspace.AgentPatch{Name: workspace.Some("B")}); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if _, err := s.Send(ctx, ann, to, text(acknowledged, "small again")); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	fmt.Printf("%d acknowledged before the disk was full\n", acknowledged)
	return errors.Join(holds(s, to, acknowledged+1), s.Close())
}

// holds returns an error unless the database is whole and the chat has exactly so
// many messages, each with its event.
func holds(s *Store, to workspace.ConversationID, messages int) error {
	ctx := context.Background()
	if err := s.Check(ctx); err != nil {
		return err
	}
	list, err := s.Conversations(ctx, ann)
	if err != nil {
		return err
	}
	var events int
	err = s.read(ctx, "counting", func(v view) (err error) {
		events, err = one(v, scalar[int], `SELECT count(DISTINCT entity_id) FROM event WHERE type = 'message.changed' AND conversation_id = ?`, to)
		return err
	})
	if last := list.Conversations[0].LastSeq; err == nil && (last != int64(messages) || events != messages) {
		return fmt.Errorf("there are %d messages and %d events, %d were acknowledged", last, events, messages)
	}
	return err
}
