package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/autoreply"
)

var (
	errStart    = errors.New("the command cannot be started")
	errOverflow = fmt.Errorf("the command wrote more than %d bytes", maxOutput)
)

// program returns the path of the program, or a failure that needs a hand.
func (b *Backend) program() (string, error) {
	name := b.argv[0]
	if filepath.IsAbs(name) {
		if err := checkExecutable(name); err != nil {
			return "", autoreply.Failf(autoreply.ReasonInternal, false, "%w: %w", errStart, err)
		}
		return name, nil
	}
	for _, dir := range filepath.SplitList(b.path) {
		path := filepath.Join(dir, name)
		if filepath.IsAbs(dir) && checkExecutable(path) == nil {
			return path, nil
		}
	}
	return "", autoreply.Failf(autoreply.ReasonInternal, false, "%w: no executable %q in %s", errStart, name, b.path)
}

// checkExecutable reports why this user cannot run the file at path.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%s is not executable: %w", path, err)
	}
	return nil
}

// process is one run of the program and what it has written.
type process struct {
	cmd    *exec.Cmd
	stdout head
	stderr tail

	mu     sync.Mutex
	reaped bool // the process id may belong to somebody else
}

// process prepares a run in dir.
func (b *Backend) process(program, dir string, input []byte) *process {
	p := &process{stdout: head{limit: maxOutput}, stderr: tail{limit: maxStderr}}
	p.stdout.onFull = p.kill
	p.cmd = &exec.Cmd{
		Path:  program,
		Args:  b.argv,
		Env:   []string{"PATH=" + b.path, "HOME=" + dir, "TMPDIR=" + dir},
		Dir:   dir,
		Stdin: bytes.NewReader(input),
		// A session of its own makes a group of its own, and takes the terminal
		// away.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		WaitDelay:   b.pipeGrace,
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	return p
}

// run starts the program and returns when it is gone with all of its group.
func (p *process) run(ctx context.Context) error {
	// The signal at the parent's death is in truth one at the death of the thread
	// that forked, so the thread is held for as long as the program lives.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := closeOnExec(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", errStart, strippedOf(err))
	}
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	return p.wait()
}

// wait kills the group before the program is reaped: until then its process id
// is not given to anybody else.
func (p *process) wait() error {
	p.untilExit()
	p.kill()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	err := p.cmd.Wait()
	switch {
	case p.stdout.full:
		return errOverflow
	case errors.Is(err, exec.ErrWaitDelay):
		return errors.New("the command left a process behind that kept its output open")
	case err != nil:
		return fmt.Errorf("the command failed: %w", err)
	}
	return nil
}

// untilExit returns when the program is a zombie.
func (p *process) untilExit() {
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// kill ends the program and all of its group, unless they are gone.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // fails only when nobody is left
	}
}

// closeOnExec makes sure that the program inherits no descriptor. Go's own are
// closed anyway; what libraries or whoever started this process opened may not
// be.
func closeOnExec() error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing descriptors: %w", err)
	}
	return nil
}

// strippedOf returns the cause of a failed start, without the path of the
// working directory or the program.
func strippedOf(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}
