package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// programs are the built binaries.
type programs struct{ relayd, chat string }

// build builds the programs as they are released.
func build(ctx context.Context, dir string) (programs, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/",
		"github.com/newos4/relay/cmd/relayd", "github.com/newos4/relay/cmd/chat")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return programs{}, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return programs{relayd: filepath.Join(dir, "relayd"), chat: filepath.Join(dir, "chat")}, nil
}

// process is a server that runs until it is stopped.
type process struct {
	cmd  *exec.Cmd
	addr string // where it listens
}

// start starts a server. output gets what it writes to standard error.
func start(cmd *exec.Cmd, output *os.File) (*process, error) {
	cmd.Stderr = output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	return &process{cmd: cmd}, nil
}

// stop ends the server and waits for it.
func (p *process) stop() error {
	return errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait())
}

// startRelayd starts relayd on a root, with further variables in its
// environment. Its log goes to a file, as an operator would have it.
func startRelayd(ctx context.Context, program, root string, env ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(root, "relayd.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of relayd: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, program, "serve", "--root", root, "--listen", "127.0.0.1:0")
	cmd.Env = append(cleanEnv(), "RELAYD_LIMITS_THREAD_POSTS=1048576", "RELAYD_LIMITS_IP_POSTS=1048576", "RELAYD_ADMIN_LISTEN=127.0.0.1:0")
	cmd.Env = append(cmd.Env, env...)
	p, err := start(cmd, log)
	if err != nil {
		return nil, err
	}
	if p.addr, err = awaitAddress(ctx, log); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// cleanEnv returns the environment without what configures relayd, so that a
// run measures the same on every machine.
func cleanEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "RELAYD_") {
			env = append(env, entry)
		}
	}
	return env
}

// awaitAddress reads from the log where relayd listens.
func awaitAddress(ctx context.Context, log io.ReaderAt) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		lines := bufio.NewScanner(io.NewSectionReader(log, 0, 1<<20))
		for lines.Scan() {
			if _, after, ok := strings.Cut(lines.Text(), "msg=serving address="); ok {
				addr, _, _ := strings.Cut(after, " ")
				return addr, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("relayd did not begin to serve: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// timeReply runs chat reply once and returns how long the process took.
func timeReply(ctx context.Context, program, root, thread, text string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, program, "reply", "--root", root, thread, text)
	cmd.Env = cleanEnv()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	started := time.Now()
	err := cmd.Run()
	took := time.Since(started)
	if err != nil {
		return 0, fmt.Errorf("chat reply: %w\n%s", err, &stderr)
	}
	return took, nil
}
