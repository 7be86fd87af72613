// Package cli is the command chat, the host's side of the newOS4 chat: what
// Hermes, a cron job or an operator uses to read threads, to answer them and to
// look after their files.
//
// It works on the same files as relayd, under the same locks, whether relayd
// runs or not. What it prints for people passes through package untrusted; what
// it prints as JSON keeps every character. Contract: newos4-chat(7), section 8.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Env is everything that a run of chat takes from its process. Nothing is taken
// from elsewhere but the files that are named by the configuration.
type Env struct {
	// Args are the arguments without the program's name.
	Args []string
	// Stdin is read only by a command that was asked to, and by reset for an
	// answer.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Environ is the environment, as of [os.Environ].
	Environ []string
	// IsTerminal reports whether somebody sits at Stdin; nil means nobody does.
	IsTerminal func() bool
	// Columns returns how many cells wide the terminal is that a writer writes to,
	// and 0 for one that writes to none; it is asked anew for each line. Nil means
	// that none does.
	Columns func(io.Writer) int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Interrupt returns a context that ends when the user wants a waiting
	// command to end; nil means with the context of [Main] alone.
	Interrupt func(context.Context) (context.Context, context.CancelFunc)
	// DefaultConfig stands in for the configuration file that is read unless
	// another one is named; empty means [config.DefaultFile].
	DefaultConfig string
}

// ProcessEnv returns the Env of this process.
func ProcessEnv() Env {
	return Env{
		Args:       os.Args[1:],
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Environ:    os.Environ(),
		IsTerminal: func() bool { return isTerminal(os.Stdin) },
		Columns:    terminalColumns,
		Interrupt:  untilSignal,
	}
}

// Main runs one command and returns its exit code, one of those that the help
// lists. When ctx ends, a command that waits ends too.
func Main(ctx context.Context, env Env) int {
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.IsTerminal == nil {
		env.IsTerminal = func() bool { return false }
	}
	if env.Columns == nil {
		env.Columns = func(io.Writer) int { return 0 }
	}
	if env.Interrupt == nil {
		env.Interrupt = context.WithCancel
	}
	a := &app{env: env, out: bufio.NewWriter(env.Stdout)}
	return int(a.run(ctx))
}

// app is one run of chat.
type app struct {
	env Env
	// out is the buffered standard output. Errors of writing to it show when it
	// is flushed.
	out *bufio.Writer
	// errMu keeps lines to standard error apart: a change feed may warn while a
	// command does.
	errMu sync.Mutex

	configFile string
	json       bool
	// found reports that the arguments named a command and its flags.
	found bool
	// refusal is an error of printing the help, which cobra has no way to
	// return.
	refusal error
}

func (a *app) run(ctx context.Context) exitCode {
	root := a.rootCommand()
	// Cobra takes nil for "use os.Args".
	root.SetArgs(append([]string{}, a.env.Args...))
	root.SetIn(a.env.Stdin)
	root.SetOut(a.out)
	root.SetErr(a.env.Stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		err = a.refusal
	case !a.found:
		err = unfound(err)
	}
	if flushed := a.flush(); err == nil {
		err = flushed
	}
	return a.report(err)
}

// unfound makes a failure of an error by which cobra says that there is no such
// command.
func unfound(err error) error {
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	return usagef("chat --help lists the commands", "%w", err)
}

// printf prints to the buffered standard output, which keeps the first error of
// writing until it is flushed.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.out, format, args...) }

// printFolded prints one line, which on a terminal goes on behind prefix where it
// is too long.
func (a *app) printFolded(line, prefix string) {
	a.printf("%s\n", fold(line, prefix, a.env.Columns(a.env.Stdout)))
}

// flush hands what was printed to whoever reads it.
func (a *app) flush() error {
	if err := a.out.Flush(); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}
