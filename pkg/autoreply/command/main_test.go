package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asCommand is the first argument of a test binary that is to be the command.
const asCommand = "relay-test-command"

// TestMain lets the test binary also be the command; its environment is empty,
// so that what it is to do stands among its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asCommand {
		// os.Exit would wait a second for reports of the race detector.
		syscall.Exit(behave(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// behave does what a test wants the command to do and returns its exit code.
func behave(how string, args []string) int {
	switch how {
	case "say":
		fmt.Print(args[0])
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "deaf":
		fmt.Println("I did not listen")
	case "fail":
		fmt.Println("never mind")
		fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 10_000)+"\nbroken\x1b[2J")
		return 3
	case "endless":
		signal.Ignore(syscall.SIGPIPE)
		for {
			fmt.Println("and so on")
		}
	case "look":
		return look()
	case "hang":
		return max(spawn(args[0], false), hold())
	case "leave":
		fmt.Println("done")
		return spawn(args[0], false)
	case "escape":
		fmt.Println("done")
		return spawn(args[0], true)
	case "stay":
		file, err := os.OpenFile(args[0], os.O_WRONLY, 0)
		if err != nil {
			return 9
		}
		_, _ = fmt.Fprintln(file, os.Getpid())
		return hold()
	case "host":
		b, err := New(Options{Argv: []string{os.Args[0], asCommand, "stay", args[0]}, TempDir: args[1]})
		if err == nil {
			_, err = b.Answer(context.Background(), ask("?"))
		}
		fmt.Fprintln(os.Stderr, err)
	case "hold":
		_, _ = fmt.Fprintln(os.NewFile(3, "fifo"), os.Getpid())
		return hold()
	}
	return 0
}

// hold stays until it is killed.
func hold() int {
	for {
		_ = unix.Pause()
	}
}

// spawn starts a descendant that holds the output and the named FIFO open, and
// returns once it has said so.
func spawn(fifo string, escape bool) int {
	file, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		return 9
	}
	child := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"held", asCommand, "hold"}}
	child.Stdout, child.ExtraFiles = os.Stdout, []*os.File{file}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: escape}
	if err := child.Start(); err != nil {
		return 9
	}
	return 0
}

// surroundings is what a command can see of where it runs.
type surroundings struct {
	Env         []string
	Dir         string
	Mode        os.FileMode
	Files       []string
	Descriptors []string
	Leads       bool // its process group and its session
}

func look() int {
	var s surroundings
	var err error
	s.Env = os.Environ()
	s.Dir, _ = os.Getwd()
	if info, err := os.Stat("."); err == nil {
		s.Mode = info.Mode()
	}
	s.Files, _ = filepath.Glob("*")
	hidden, _ := filepath.Glob(".*")
	s.Files = append(s.Files, hidden...)
	session, _ := unix.Getsid(0)
	s.Leads = unix.Getpgrp() == os.Getpid() && session == os.Getpid()
	s.Descriptors, err = descriptors()
	if err != nil || json.NewEncoder(os.Stdout).Encode(s) != nil {
		return 9
	}
	return 0
}

// descriptors returns what this process has open, without what Go's runtime
// opens by itself: epoll, eventfd, and the limits of its control group. The
// directory that is read is closed again before its link is.
func descriptors() ([]string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	var targets []string
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/sys/fs/cgroup/") {
			targets = append(targets, target)
		}
	}
	return targets, err
}
