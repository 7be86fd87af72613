package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// programs are the built binaries.
type programs struct {
	relayd, chat string
	admin        bool // relayd has a second listener, for the operator
}

// findPrograms takes the programs from the directory bin, or builds them as they
// are released.
func findPrograms(ctx context.Context, bin, dir string) (programs, error) {
	if bin == "" {
		bin = dir
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", bin+"/",
			"github.com/newos4/relay/cmd/relayd", "github.com/newos4/relay/cmd/chat")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return programs{}, fmt.Errorf("building the programs: %w\n%s", err, out)
		}
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return programs{}, fmt.Errorf("looking for the programs: %w", err)
	}
	p := programs{relayd: filepath.Join(bin, "relayd"), chat: filepath.Join(bin, "chat")}
	cmd := exec.CommandContext(ctx, p.relayd, "config", "print", "--config", os.DevNull)
	cmd.Env = cleanEnv()
	keys, err := cmd.Output()
	if err != nil {
		return programs{}, fmt.Errorf("asking relayd for its configuration: %w", err)
	}
	p.admin = slices.Contains(strings.Split(string(keys), "\n"), "admin:")
	return p, nil
}

// cleanEnv returns the environment without what configures relayd, so that a
// trial is the same on every machine.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "RELAYD_") })
}

// raisedLimits let a few clients make much load.
func raisedLimits() []string {
	return []string{
		"RELAYD_LIMITS_THREAD_POSTS=1048576", "RELAYD_LIMITS_IP_POSTS=1048576", "RELAYD_LIMITS_IP_NEW_THREADS=0",
		"RELAYD_LIMITS_MESSAGES=65536", "RELAYD_LIMITS_THREADS=1048576",
	}
}

// Times that a relayd has to begin and to end.
const (
	startTime = 20 * time.Second
	stopTime  = 10 * time.Second
)

// daemon is relayd on one root, which may be ended and started anew. One
// goroutine starts and ends it; address and log may be asked by any.
type daemon struct {
	program string
	root    string
	dir     string   // of its log
	admin   bool     // it has a listener for the operator, which is turned off
	env     []string // what configures it besides
	// wrap, if set, changes how the process is started and returns what is to be
	// done once it was.
	wrap func(*exec.Cmd) (started func() error, err error)

	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process is gone
	err    error         // how it ended, once it has
	deaths []error

	mu     sync.Mutex
	listen string
}

// address is where relayd listens or last did.
func (d *daemon) address() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listen
}

func (d *daemon) logPath() string { return filepath.Join(d.dir, "relayd.log") }

// start starts relayd and returns when it serves.
func (d *daemon) start(ctx context.Context) error {
	log, err := os.OpenFile(d.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of relayd: %w", err)
	}
	defer func() { _ = log.Close() }()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("looking for the end of the log: %w", err)
	}
	cmd, started, err := d.command()
	if err != nil {
		return err
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting relayd: %w", err)
	}
	d.cmd, d.ended = cmd, make(chan struct{})
	go func(ended chan<- struct{}) { // ends with the process, for which close waits
		d.err = cmd.Wait()
		close(ended)
	}(d.ended)
	if err := started(); err != nil {
		return errors.Join(err, d.kill())
	}
	return d.awaitAddress(ctx, before)
}

func (d *daemon) command() (cmd *exec.Cmd, started func() error, err error) {
	cmd = exec.Command(d.program, "serve", "--root", d.root, "--listen", "127.0.0.1:0", "--config", os.DevNull) //nolint:noctx // close ends it
	cmd.Env = append(cleanEnv(), d.env...)
	if d.admin {
		cmd.Env = append(cmd.Env, "RELAYD_ADMIN_LISTEN=")
	}
	if d.wrap == nil {
		return cmd, func() error { return nil }, nil
	}
	started, err = d.wrap(cmd)
	return cmd, started, err
}

// awaitAddress waits until the log, behind what stood there before, says where
// relayd listens.
func (d *daemon) awaitAddress(ctx context.Context, before int64) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if address := servingAddress(d.log(before)); address != "" {
			d.mu.Lock()
			d.listen = address
			d.mu.Unlock()
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("relayd ended at its start: %w", d.err)
		default:
		}
		if !pause(ctx, 5*time.Millisecond) {
			return fmt.Errorf("relayd did not begin to serve: %w", ctx.Err())
		}
	}
}

// servingAddress returns where a log says that relayd serves, or "".
func servingAddress(log []byte) string {
	_, after, found := bytes.Cut(log, []byte("msg=serving address="))
	address, _, whole := bytes.Cut(after, []byte(" "))
	if !found || !whole {
		return ""
	}
	return string(address)
}

// log returns what relayd has logged behind an offset; nothing when there is no
// log yet.
func (d *daemon) log(offset int64) []byte {
	file, err := os.Open(d.logPath())
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.NewSectionReader(file, offset, math.MaxInt64-offset))
	if err != nil {
		return nil
	}
	return data
}

// logged reports whether relayd has logged a message.
func (d *daemon) logged(message string) bool { return bytes.Contains(d.log(0), []byte(message)) }

// complaints returns the last warnings and errors of the log, and whatever is no
// line of it, such as a panic.
func (d *daemon) complaints() []string {
	const most = 12
	var lines []string
	for line := range strings.Lines(string(d.log(0))) {
		if !strings.Contains(line, " level=INFO ") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines[max(0, len(lines)-most):]
}

func (d *daemon) pid() int { return d.cmd.Process.Pid }

// running reports whether the process is there.
func (d *daemon) running() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// noteDeath remembers that relayd ended although nobody had told it to.
func (d *daemon) noteDeath() {
	if d.cmd != nil && !d.running() {
		d.deaths = append(d.deaths, fmt.Errorf("relayd ended by itself: %s", d.cmd.ProcessState))
		d.cmd = nil
	}
}

// died returns why a relayd ended that was not told to, nil when none did.
func (d *daemon) died() error {
	d.noteDeath()
	return errors.Join(d.deaths...)
}

// kill ends relayd at once, wherever it is.
func (d *daemon) kill() error {
	_, err := d.end(syscall.SIGKILL)
	return err
}

// terminate ends relayd as systemd does and returns how long that took.
func (d *daemon) terminate() (time.Duration, error) {
	started := time.Now()
	ended, err := d.end(syscall.SIGTERM)
	if err == nil && ended != nil {
		err = fmt.Errorf("stopping relayd: %w", ended)
	}
	return time.Since(started), err
}

// end sends a signal and waits; ended is how the process ended.
func (d *daemon) end(signal syscall.Signal) (ended, err error) {
	if d.noteDeath(); d.cmd == nil {
		return nil, nil
	}
	if err := d.cmd.Process.Signal(signal); err != nil {
		return nil, fmt.Errorf("ending relayd: %w", err)
	}
	select {
	case <-d.ended:
	case <-time.After(stopTime):
		_ = d.cmd.Process.Kill() // it may just have ended
		<-d.ended
		err = fmt.Errorf("relayd did not end within %v", stopTime)
	}
	d.cmd = nil
	return d.err, err
}

// reload has relayd read its configuration again.
func (d *daemon) reload() error {
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("reloading relayd: %w", err)
	}
	return nil
}

// close ends relayd if it runs.
func (d *daemon) close() error {
	_, err := d.terminate()
	return err
}
