package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// soak multiplies the slow proofs; `make soak` sets it.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RELAY_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// isKilled reports whether the child ended by SIGKILL.
func isKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// Ensures that a process that is killed before any of its changes of the disk
// leaves every thread whole, with every acknowledged message and at most one
// that was not, and the next writer unhindered.
func TestCrash_AtEveryStep(t *testing.T) {
	t.Parallel()
	for mode, prepared := range map[string]int{"append": 0, "shorten": 3, "remove": 3, "reset": 3} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			points := 0
			for step := 1; crashAtStep(t, mode, prepared, step); step++ {
				points++
			}
			t.Logf("%d crash points", points)
			if points < 5 {
				t.Errorf("only %d crash points were met", points)
			}
		})
	}
}

// crashAtStep runs one child and reports whether it met its crash point.
func crashAtStep(t *testing.T, mode string, prepared, step int) bool {
	t.Helper()
	root := t.TempDir()
	s := Open(testOptions(root))
	defer func() { _ = s.Close() }()
	var want []string
	for i := range prepared {
		want = append(want, fmt.Sprint("prepared ", i))
		mustPost(t, s, testThread, want[i])
	}
	job := childJob{Root: root, Thread: testThread, Text: "x", Count: 10 * soak(), Crash: step}
	acknowledged, err := startChild(t, mode, job).finish()
	if err != nil && !isKilled(err) {
		t.Fatalf("%s, step %d: %v", mode, step, err)
	}
	got := texts(t, s, testThread)
	switch mode {
	case "append":
		checkAppended(t, got, acknowledged)
	case "shorten":
		if !slices.Equal(got, want) && !slices.Equal(got, want[len(want)-1:]) {
			t.Errorf("step %d: texts = %v", step, got)
		}
	case "remove":
		if !slices.Equal(got, want) && got != nil {
			t.Errorf("step %d: texts = %v", step, got)
		}
	case "reset":
		aside, _ := filepath.Glob(filepath.Join(root, "spaces/newos4/data/chat-reset", string(testThread)+".*.json"))
		if slices.Equal(got, want) == (len(aside) == 1) {
			t.Errorf("step %d: texts = %v, aside %v", step, got, aside)
		}
	}
	mustPost(t, s, testThread, "after the crash")
	return isKilled(err)
}

// checkAppended compares the thread with what a writer was told.
func checkAppended(t *testing.T, got, acknowledged []string) {
	t.Helper()
	if len(got) < len(acknowledged) || len(got) > len(acknowledged)+1 || !slices.Equal(got[:len(acknowledged)], acknowledged) {
		t.Errorf("texts = %v, acknowledged %v", got, acknowledged)
	}
}

// Ensures the same for processes that are killed from outside at any moment,
// several at once on one thread.
func TestCrash_AtAnyMoment(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 60 * soak() {
		s := mustOpen(t)
		var children []*child
		for p := range 3 {
			children = append(children, startChild(t, "append", childJob{Root: s.opts.Root, Thread: testThread, Text: fmt.Sprint("p", p), Count: 1000}))
		}
		acknowledged := make(map[string]bool)
		for range 1 + r.IntN(30) {
			if children[0].stdout.Scan() {
				acknowledged[children[0].stdout.Text()] = true
			}
		}
		for _, c := range children {
			_ = c.Process.Kill()
		}
		for _, c := range children {
			lines, _ := c.finish()
			for _, line := range lines {
				acknowledged[line] = true
			}
		}
		got := texts(t, s, testThread)
		for _, text := range got {
			delete(acknowledged, text)
		}
		if len(acknowledged) > 0 {
			t.Errorf("round %d: lost %v", round, acknowledged)
		}
		unique := slices.Clone(got)
		slices.Sort(unique)
		if len(slices.Compact(unique)) != len(got) {
			t.Errorf("round %d: a message stands twice", round)
		}
		mustPost(t, s, testThread, "after the crash")
	}
}

// Ensures that a full disk loses and acknowledges nothing, leaves the old
// thread readable, and that writing goes on once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	c := startChild(t, "full disk", childJob{Root: t.TempDir()})
	lines, err := c.finish()
	if err != nil {
		t.Fatalf("%v\n%v", err, lines)
	}
	t.Log(lines)
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

func childFullDisk(job childJob) error {
	if err := unix.Mount("tmpfs", job.Root, "tmpfs", 0, "size=256k"); err != nil {
		return fmt.Errorf("mounting: %w", err)
	}
	opts := testOptions(job.Root)
	s := Open(opts)
	text := fmt.Sprintf("%04000d", 0)
	var acknowledged []string
	var refused error
	for i := 0; refused == nil && i < 100; i++ {
		message := fmt.Sprint(text, i)
		_, refused = s.Append(context.Background(), testThread, Post{Author: chat.Operator, Text: message, Create: true})
		if refused == nil {
			acknowledged = append(acknowledged, message)
		}
	}
	if chat.CodeOf(refused) != chat.CodeStorage || !errors.Is(refused, unix.ENOSPC) {
		return fmt.Errorf("the disk is full and Append says: %w", refused)
	}
	thread, err := Open(opts).Thread(testThread)
	if err != nil {
		return fmt.Errorf("reading on a full disk: %w", err)
	}
	for i, m := range thread.Messages() {
		if m.Text != acknowledged[i] {
			return fmt.Errorf("message %d differs", i)
		}
	}
	if thread.Len() != len(acknowledged) {
		return fmt.Errorf("%d messages, %d acknowledged", thread.Len(), len(acknowledged))
	}
	fmt.Printf("%d acknowledged before the disk was full\n", len(acknowledged))
	s.limits.Load().Retention = chat.Retention{Messages: 1, MaxAge: time.Hour}
	if _, err := s.Append(context.Background(), testThread, Post{Author: chat.Operator, Text: "small again"}); err != nil {
		return fmt.Errorf("a message that fits is refused: %w", err)
	}
	return nil
}
