package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// chatTimeout bounds one call of the chat command.
const chatTimeout = 12 * time.Second

// The exit codes of the chat command.
const (
	codeDone    = 0
	codeUsage   = 2
	codeUnknown = 3 // no such thread
	codeRefused = 4 // by a limit or a condition
	codeCorrupt = 5
	codeNothing = 6 // before the time-out

	codeStopped = -1 // what the judge takes for the code of a call that it stopped
)

// chatCall is one call of the chat command.
type chatCall struct {
	root  tree
	args  []string
	stdin *os.File // the null device unless set
	umask string   // the caller's unless set
}

// chatResult is what came of it.
type chatResult struct {
	asked  string
	code   int // codeStopped when it did not end by itself in time
	stdout []byte
	stderr string
	took   time.Duration
	err    error // why it could not be run
}

// command prepares a call of the chat command.
func (s *target) command(ctx context.Context, c chatCall) *exec.Cmd {
	words := slices.Concat(s.chat, []string{"--root", c.root.dir}, c.args)
	if c.umask != "" {
		words = append([]string{"sh", "-c", "umask " + c.umask + `; exec "$@"`, "chat"}, words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if c.stdin != nil {
		cmd.Stdin = c.stdin
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// runChat calls the chat command and waits for its end.
func (s *target) runChat(ctx context.Context, c chatCall) chatResult {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := s.command(ctx, c)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	r := chatResult{
		asked:  clip([]byte("chat " + strings.Join(c.args, " "))),
		stdout: stdout.Bytes(),
		stderr: stderr.String(),
		took:   time.Since(start),
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else if err != nil {
		r.err = fmt.Errorf("running the command: %w", err)
	}
	return r
}

// chatIn calls the chat command in a root.
func (t *trial) chatIn(r tree, args ...string) chatResult {
	return t.runChat(t.ctx, chatCall{root: r, args: args})
}

// wantEnded ends the case unless the command ended by itself in time.
func (t *trial) wantEnded(r chatResult) {
	t.must(r.err)
	if r.code == codeStopped {
		t.fatalf("%s: still running after %s; it said %s%s",
			r.asked, r.took.Round(time.Millisecond), clip([]byte(r.stderr)), clip(r.stdout))
	}
}

// wantExit ends the case unless the command ended with the code.
func (t *trial) wantExit(r chatResult, code int) {
	t.wantEnded(r)
	if r.code != code {
		t.fatalf("%s: exit code %d instead of %d after %s; it said %s%s",
			r.asked, r.code, code, r.took.Round(time.Millisecond), clip([]byte(r.stderr)), clip(r.stdout))
	}
}

// wantFailure ends the case unless the command failed by itself, in whatever
// way, and said so.
func (t *trial) wantFailure(r chatResult) {
	t.wantEnded(r)
	if r.code == codeDone {
		t.fatalf("%s: exit code %d; it said %s%s", r.asked, r.code, clip([]byte(r.stderr)), clip(r.stdout))
	}
	if r.stderr == "" {
		t.errorf("%s: exit code %d without a word", r.asked, r.code)
	}
}

// openPipe returns the reading end of a pipe into which nothing is written and
// which is not closed before the case is over.
func (t *trial) openPipe() *os.File {
	r, w, err := os.Pipe()
	t.must(err)
	t.cleanup(r.Close)
	t.cleanup(w.Close)
	return r
}

// filled returns the reading end of a pipe that holds a text and then ends.
func (t *trial) filled(text string) *os.File {
	r, w, err := os.Pipe()
	t.must(err)
	t.cleanup(r.Close)
	_, err = w.WriteString(text)
	t.must(errors.Join(err, w.Close()))
	return r
}

// shown returns what the chat command shows of a thread of at most one page, by
// the same checks as a poll.
func (t *trial) shown(r tree, thread string) page {
	result := t.chatIn(r, "poll", thread, "--json")
	t.wantExit(result, codeDone)
	return t.page(result.asked, result.stdout, thread, 0)
}

// wantShown checks the texts of a thread of at most one page.
func (t *trial) wantShown(r tree, thread string, want ...string) {
	if got := t.shown(r, thread).texts(); !slices.Equal(got, want) {
		t.errorf("the thread's texts are %q instead of %q", got, want)
	}
}
