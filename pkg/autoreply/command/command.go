// Package command answers through a program that the operator chose.
//
// What it promises:
//   - The program is started from an argument vector, never by a shell, and no
//     word of a thread is among its arguments. It gets the thread as one JSON
//     document on its standard input, of which [Input] is the schema, and what
//     it writes to its standard output, in UTF-8, is the answer.
//   - It starts with nothing of this process: an environment of PATH, HOME and
//     TMPDIR, the latter two being its working directory, which is new, empty,
//     readable by this user alone and removed afterwards; no descriptor but the
//     three standard ones; no terminal, in a session and process group of its
//     own.
//   - When the context ends, when the program writes too much, and also when it
//     exits, its whole group is killed. With the death of this process the
//     kernel kills the program itself.
//   - More than 256 KiB of output is a failure. What it writes to its standard
//     error may repeat a message, so that the log is told its size alone; see
//     [Options.Complaints].
//
// What it does not promise: the program is not confined. It runs as this user,
// and reads, writes and connects as it was made to; a descendant that moves to
// another session survives it. A program that hands a message to a model with
// tools gives strangers those tools.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/autoreply"
)

const (
	kib = 1 << 10

	maxOutput = 256 * kib
	maxStderr = 4 * kib

	// pipeGrace is how long a dead program's pipes may be held open, by a
	// descendant that left its group, before they are closed.
	pipeGrace = 5 * time.Second
)

// DefaultPath is the PATH of the program unless [Options.Path] is set.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Options says which program answers.
type Options struct {
	// Argv is the program and its arguments. The program is an absolute path or
	// a bare name that is looked up in Path.
	Argv []string
	// Path is the program's PATH, of which only absolute directories are
	// searched. Default [DefaultPath].
	Path string
	// TempDir is where working directories are made. Default [os.TempDir].
	TempDir string
	// Logger is told when a program that failed wrote to its standard error. Nil
	// discards.
	Logger *slog.Logger
	// Complaints gets the last 4 KiB of that, on one line, for a person to read
	// and nobody to keep. Nil discards.
	Complaints io.Writer

	pipeGrace time.Duration // tests cannot wait for the usual one
}

// Backend is an [autoreply.Backend] that runs a program for each answer.
type Backend struct {
	argv      []string
	path      string
	tempDir   string
	log       *slog.Logger
	complain  io.Writer
	pipeGrace time.Duration
}

// New returns a back end. It fails when no program is named, or one by a
// relative path, whose meaning would depend on where the daemon was started.
func New(o Options) (*Backend, error) {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return nil, errors.New("the answering command has no program")
	}
	if strings.Contains(o.Argv[0], "/") && !strings.HasPrefix(o.Argv[0], "/") {
		return nil, fmt.Errorf("the answering command %q is neither an absolute path nor a bare name", o.Argv[0])
	}
	b := &Backend{argv: o.Argv, path: o.Path, tempDir: o.TempDir, log: o.Logger, complain: o.Complaints, pipeGrace: o.pipeGrace}
	if b.path == "" {
		b.path = DefaultPath
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.complain == nil {
		b.complain = io.Discard
	}
	if b.pipeGrace == 0 {
		b.pipeGrace = pipeGrace
	}
	return b, nil
}

// Probe reports whether the program is there and may be executed. It does not
// run it.
func (b *Backend) Probe(context.Context) error {
	_, err := b.program()
	return err
}

// Answer runs the program once. It fails with [autoreply.ReasonTimeout] at the
// context's deadline, with [autoreply.ReasonNoAnswer] when nothing but white
// space was written, and with [autoreply.ReasonInternal] when the program
// cannot be started, exits with anything but 0, writes too much, or writes
// something that is not UTF-8. Only a program that cannot be started needs no
// second try.
func (b *Backend) Answer(ctx context.Context, q autoreply.Question) (autoreply.Answer, error) {
	program, err := b.program()
	if err != nil {
		return autoreply.Answer{}, err
	}
	input, err := encode(q)
	if err != nil {
		return autoreply.Answer{}, err
	}
	dir, err := os.MkdirTemp(b.tempDir, "relay-command-")
	if err != nil {
		return autoreply.Answer{}, fmt.Errorf("making a working directory: %w", err)
	}
	defer b.remove(dir)
	p := b.process(program, dir, input)
	if err := p.run(ctx); err != nil {
		b.report(q, p)
		return autoreply.Answer{}, failure(ctx, err)
	}
	return answer(p.stdout.kept)
}

// Close does nothing: between two answers nothing is held.
func (b *Backend) Close() error { return nil }

// remove takes a working directory away. What a program did there may forbid
// it, which concerns no answer.
func (b *Backend) remove(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		b.log.Warn("working directory not removed", "dir", dir, "error", err)
	}
}

// report tells what a failed program wrote to its standard error.
func (b *Backend) report(q autoreply.Question, p *process) {
	if line := p.stderr.line(); line != "" {
		b.log.Warn("answering command complained; relayd agent test shows how", "thread", q.Thread, "bytes", len(line))
		fmt.Fprintln(b.complain, line)
	}
}

// failure says what an unsuccessful run means.
func failure(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return autoreply.Failf(autoreply.ReasonTimeout, true, "the command was killed: %w", ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("the command was killed: %w", ctx.Err())
	case errors.Is(err, errStart):
		return autoreply.Failf(autoreply.ReasonInternal, false, "%w", err)
	}
	return autoreply.Failf(autoreply.ReasonInternal, true, "%w", err)
}

// answer is what a successful run means.
func answer(output []byte) (autoreply.Answer, error) {
	if !utf8.Valid(output) {
		return autoreply.Answer{}, autoreply.Failf(autoreply.ReasonInternal, true, "the command's output is not UTF-8")
	}
	text := strings.TrimRight(string(output), "\r\n")
	if strings.TrimSpace(text) == "" {
		return autoreply.Answer{}, autoreply.Failf(autoreply.ReasonNoAnswer, true, "the command wrote nothing")
	}
	return autoreply.Answer{Text: text}, nil
}
