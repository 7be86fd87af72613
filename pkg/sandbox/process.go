package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// process is a running child and the parent's ends of its pipes.
type process struct {
	cmd    *exec.Cmd
	in     *os.File      // to the child
	out    *os.File      // from the child
	exited chan struct{} // closed once the child is gone and reaped
}

// launch starts a child: the running binary itself, whatever has since become
// of its path, with nothing of the parent but two pipes.
func launch(arg string) (*process, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = childIn.Close() }()
	out, childOut, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	defer func() { _ = childOut.Close() }()
	p := &process{
		cmd: &exec.Cmd{
			Path:   "/proc/self/exe",
			Args:   []string{filepath.Base(os.Args[0]), arg},
			Env:    []string{},
			Dir:    "/",
			Stdin:  childIn,
			Stdout: childOut,
			// A session of its own: no terminal, no signals from one.
			SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		},
		in:     in,
		out:    out,
		exited: make(chan struct{}),
	}
	started := make(chan error, 1)
	go p.own(started)
	if err := <-started; err != nil {
		p.closePipes()
		return nil, fmt.Errorf("start: %w", err)
	}
	return p, nil
}

// own starts the child and stays with it until it is reaped. The signal at the
// parent's death is in truth one at the death of the thread that forked, so the
// thread is held for as long as the child lives.
func (p *process) own(started chan<- error) {
	defer close(p.exited)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	_ = p.cmd.Wait() // how it ended is in ProcessState
}

// exchange sends one frame and reads the one that answers it. It is over when
// ctx is: the child is killed then, whatever it is doing.
func (p *process) exchange(ctx context.Context, request, response any) error {
	stop := context.AfterFunc(ctx, p.abort)
	err := writeFrame(p.in, request)
	if err == nil {
		err = readFrame(p.out, response)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	if err != nil {
		return p.explain(ctx, err)
	}
	return nil
}

// explain adds to a broken exchange how the child ended, if that is what broke
// it. Its end of the pipes is closed a moment before it can be reaped.
func (p *process) explain(ctx context.Context, err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: %w", ErrChild, err)
	}
	select {
	case <-p.exited:
		return fmt.Errorf("%w: it ended: %v", ErrChild, p.cmd.ProcessState)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abort kills the child and ends any exchange with it, even if the child hangs
// in the kernel and cannot die yet.
func (p *process) abort() {
	_ = p.cmd.Process.Kill()
	past := time.Unix(1, 0)
	_ = p.in.SetDeadline(past)
	_ = p.out.SetDeadline(past)
}

// discard kills the child and lets go of it. The owner still reaps it.
func (p *process) discard() {
	p.abort()
	p.closePipes()
}

func (p *process) closePipes() {
	_ = p.in.Close()
	_ = p.out.Close()
}

// isGone reports whether the child has ended.
func (p *process) isGone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}
