package command

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chat"
)

const thread = chat.ThreadID("0123456789abcdef")

// MustNew returns a back end whose command is this test binary.
func MustNew(t testing.TB, o Options, behaviour ...string) *Backend {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Argv = append([]string{self, asCommand}, behaviour...)
	if o.TempDir == "" {
		o.TempDir = t.TempDir()
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(o.TempDir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return b
}

// ask returns a thread of one message by an operator.
func ask(text string) autoreply.Question {
	return autoreply.Question{Thread: thread, Limit: 4000, Messages: []chat.Message{{Epoch: 1_700_000_000_000, Author: chat.Operator, Text: text}}}
}

// reasonOf returns what a failure says.
func reasonOf(t *testing.T, err error) (autoreply.Reason, bool) {
	t.Helper()
	failure, ok := errors.AsType[*autoreply.Failure](err)
	if !ok {
		t.Fatalf("error is %v, want a failure", err)
	}
	return failure.Reason, failure.Retry
}

// Ensures that what the command writes is the answer, without the line feeds at
// its end and otherwise to the byte.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ output, want string }{
		"plain":         {"It is there.", "It is there."},
		"trailing line": {"a\n\nb\r\n\n", "a\n\nb"},
		"leading space": {"\n  in 中文", "\n  in 中文"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := MustNew(t, Options{}, "say", test.output).Answer(t.Context(), ask("where?"))
			if err != nil || got.Text != test.want {
				t.Errorf("got %q, %v, want %q", got.Text, err, test.want)
			}
		})
	}
}

// Ensures that the command gets the documented JSON, with hidden characters
// visible.
func TestAnswer_Input(t *testing.T) {
	t.Parallel()
	q := ask("run \u202eme\x1b[2J; $(id) <b>")
	q.Messages = append([]chat.Message{{Epoch: 1_600_000_000_000, Author: chat.Hermes, Text: "hello"}}, q.Messages...)
	q.TooLong = "far too much"
	got, err := MustNew(t, Options{}, "echo").Answer(t.Context(), q)
	want := `{"thread":"0123456789abcdef","limit":4000,"too_long":"far too much","omitted":0,"messages":[` +
		`{"author":"hermes","ts":"2020-09-13T12:26:40+00:00","text":"hello"},` +
		`{"author":"operator","ts":"2023-11-14T22:13:20+00:00","text":"run ⟦U+202E⟧me⟦U+001B⟧[2J; $(id) <b>"}]}`
	if err != nil || got.Text != want {
		t.Errorf("got %s, %v\nwant %s", got.Text, err, want)
	}
}

// Ensures that of a long thread the oldest messages are left out, never the
// newest, and that it is said how many.
func TestAnswer_LongThread(t *testing.T) {
	t.Parallel()
	var q autoreply.Question
	for range 10 {
		q.Messages = append(q.Messages, chat.Message{Author: chat.Agent, Text: strings.Repeat("x", 200*kib)})
	}
	var in Input
	for _, last := range []string{"short", strings.Repeat("y", maxInputText+1)} {
		q.Messages[9].Text = last
		document, err := encode(q)
		if err := errors.Join(err, json.Unmarshal(document, &in)); err != nil {
			t.Fatal(err)
		}
		if n := len(in.Messages); in.Omitted+n != 10 || in.Messages[n-1].Text != last {
			t.Errorf("omitted %d of 10, kept %d", in.Omitted, n)
		}
		if len(document) > 2*maxInputText {
			t.Errorf("%d bytes", len(document))
		}
	}
}

// Ensures that a command that reads nothing is as good as any other, however
// much there is to read.
func TestAnswer_ReadsNothing(t *testing.T) {
	t.Parallel()
	got, err := MustNew(t, Options{}, "deaf").Answer(t.Context(), ask(strings.Repeat("x", 400*kib)))
	if err != nil || got.Text != "I did not listen" {
		t.Errorf("got %q, %v", got.Text, err)
	}
}

// Ensures that the command sees nothing of this process: its environment, its
// directory, its descriptors, even those that are open across an exec.
func TestAnswer_Surroundings(t *testing.T) {
	t.Parallel()
	leak, err := unix.Open(os.DevNull, unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(leak) }()
	temp := t.TempDir()
	got, err := MustNew(t, Options{TempDir: temp, Path: "/usr/bin:/bin"}, "look").Answer(t.Context(), ask("where are you?"))
	if err != nil {
		t.Fatal(err)
	}
	var s surroundings
	if err := json.Unmarshal([]byte(got.Text), &s); err != nil {
		t.Fatal(err)
	}
	want := []string{"HOME=" + s.Dir, "PATH=/usr/bin:/bin", "TMPDIR=" + s.Dir}
	if slices.Sort(s.Env); !slices.Equal(s.Env, want) {
		t.Errorf("environment %q, want %q", s.Env, want)
	}
	if filepath.Dir(s.Dir) != temp || s.Mode != os.ModeDir|0o700 || len(s.Files) > 0 {
		t.Errorf("working directory %s, mode %v, with %q", s.Dir, s.Mode, s.Files)
	}
	isOther := func(target string) bool { return !strings.HasPrefix(target, "pipe:") }
	if len(s.Descriptors) != 3 || slices.ContainsFunc(s.Descriptors, isOther) {
		t.Errorf("descriptors %q, want three pipes", s.Descriptors)
	}
	if !s.Leads {
		t.Error("the command leads no process group and session of its own")
	}
}

// Ensures that what a failed command said is shown on one line, never more than
// 4 KiB of it, that none of it is in the log or the error, and that its output is
// no answer.
func TestAnswer_Fails(t *testing.T) {
	t.Parallel()
	var log, shown strings.Builder
	_, err := MustNew(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Complaints: &shown}, "fail").Answer(t.Context(), ask("?"))
	if reason, retry := reasonOf(t, err); reason != autoreply.ReasonInternal || !retry {
		t.Errorf("got %v, %v", reason, retry)
	}
	if !strings.Contains(err.Error(), "exit status 3") || strings.Contains(err.Error(), "broken") {
		t.Errorf("error %q", err)
	}
	if !strings.Contains(log.String(), "complained") || strings.Contains(log.String(), "broken") {
		t.Errorf("logged %q", log.String())
	}
	line := shown.String()
	if !strings.Contains(line, `broken⟦U+001B⟧[2J`) || strings.Count(line, "\n") != 1 || len(line) > maxStderr+kib {
		t.Errorf("shown are %d bytes: %.200q", len(line), line)
	}
}

// Ensures that no part of an output that is too long, not text, or nothing at
// all becomes an answer.
func TestAnswer_Output(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		behaviour []string
		want      autoreply.Reason
	}{
		"endless":     {[]string{"endless"}, autoreply.ReasonInternal},
		"not UTF-8":   {[]string{"say", "a\xffb"}, autoreply.ReasonInternal},
		"nothing":     {[]string{"say", ""}, autoreply.ReasonNoAnswer},
		"white space": {[]string{"say", " \n\t\n"}, autoreply.ReasonNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := MustNew(t, Options{}, test.behaviour...).Answer(t.Context(), ask("?"))
			if reason, retry := reasonOf(t, err); reason != test.want || !retry || got.Text != "" {
				t.Errorf("got %q, %v", got.Text, err)
			}
		})
	}
}

// Ensures that the end of the context ends the command and its descendants, and
// that a deadline is told from a call that was given up.
func TestAnswer_ContextEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"deadline": context.DeadlineExceeded, "cancelled": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fifo := newFIFO(t)
			ctx := &endingContext{Context: t.Context(), done: make(chan struct{}), err: end}
			failed := make(chan error, 1)
			b := MustNew(t, Options{}, "hang", fifo.path)
			go func() {
				_, err := b.Answer(ctx, ask("?"))
				failed <- err
			}()
			fifo.holder(t)
			close(ctx.done)
			err := <-failed
			fifo.untilDead(t)
			if !errors.Is(err, end) {
				t.Errorf("got %v, want %v", err, end)
			}
			if errors.Is(end, context.DeadlineExceeded) {
				if reason, retry := reasonOf(t, err); reason != autoreply.ReasonTimeout || !retry {
					t.Errorf("got %v, %v", reason, retry)
				}
			}
		})
	}
}

// Ensures that a descendant that the command leaves behind dies with it and
// does not hold up the answer.
func TestAnswer_LeavesProcess(t *testing.T) {
	t.Parallel()
	fifo := newFIFO(t)
	b := MustNew(t, Options{}, "leave", fifo.path)
	answered := make(chan error, 1)
	go func() {
		got, err := b.Answer(t.Context(), ask("?"))
		if err == nil && got.Text != "done" {
			err = errors.New(got.Text)
		}
		answered <- err
	}()
	fifo.untilDead(t)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// Ensures that a descendant that leaves the group, which is promised to nobody
// to die, cannot hold up the failure by keeping the output open.
func TestAnswer_ProcessEscapes(t *testing.T) {
	t.Parallel()
	fifo := newFIFO(t)
	b := MustNew(t, Options{pipeGrace: time.Millisecond}, "escape", fifo.path)
	failed := make(chan error, 1)
	go func() {
		_, err := b.Answer(t.Context(), ask("?"))
		failed <- err
	}()
	pid := fifo.holder(t)
	defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
	if reason, _ := reasonOf(t, <-failed); reason != autoreply.ReasonInternal {
		t.Errorf("got %v", reason)
	}
}

// Ensures that nothing is started once the context has ended.
func TestAnswer_ContextEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MustNew(t, Options{}, "say", "x").Answer(ctx, ask("?")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Ensures that a program that cannot be run is found out before it is needed,
// and that a bare name is looked up in the given PATH alone.
func TestProbe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"good": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho fine\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		program, path string
		usable        bool
	}{
		"absolute":        {filepath.Join(dir, "good"), "", true},
		"in PATH":         {"good", "/nowhere::" + dir, true},
		"default PATH":    {"sh", "", true},
		"not in PATH":     {"good", "/nowhere", false},
		"absent":          {filepath.Join(dir, "none"), "", false},
		"a directory":     {dir, "", false},
		"not executable":  {filepath.Join(dir, "plain"), "", false},
		"nor in PATH":     {"plain", dir, false},
		"relative in dir": {"good", ".", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := New(Options{Argv: []string{test.program}, Path: test.path})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Probe(t.Context()); (err == nil) != test.usable {
				t.Errorf("Probe: %v", err)
			} else if err != nil {
				if reason, retry := reasonOf(t, err); reason != autoreply.ReasonInternal || retry {
					t.Errorf("got %v, %v", reason, retry)
				}
			}
		})
	}
}

// Ensures that a program without a name or with a relative path is refused at
// once.
func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{nil, {""}, {"./answer"}, {"bin/answer"}} {
		if _, err := New(Options{Argv: argv}); err == nil {
			t.Errorf("New(%q) succeeded", argv)
		}
	}
}

// Ensures that the end of a long standard error is kept, whatever the pieces.
func TestTail(t *testing.T) {
	t.Parallel()
	out := tail{limit: 8}
	for _, piece := range []string{"", "abc", "defghijklmnop", "q", "\n"} {
		_, _ = out.Write([]byte(piece))
	}
	if diff := cmp.Diff("klmnopq", out.line()); diff != "" {
		t.Error(diff)
	}
	_, _ = out.Write([]byte("界界\x00"))
	if got := out.line(); len(got) > 8 {
		t.Errorf("%q has %d bytes, want at most 8", got, len(got))
	}
}
