package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/cli"
	"github.com/newos4/relay/pkg/config"
)

// failingWriter fails each write.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// Ensures that a cursor never runs ahead of output that nobody got.
func TestPollCursorFile_StaysWhenOutputFails(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	file := filepath.Join(h.root, "cursor")
	for _, args := range [][]string{{}, {"--json"}, {"--follow"}, {"--wait", "1h", "--json"}} {
		env := h.env(append([]string{"poll", string(threadA), "--cursor-file", file}, args...)...)
		var errs bytes.Buffer
		env.Stdout, env.Stderr = failingWriter{errors.New("disk full")}, &errs
		if code := cli.Main(t.Context(), env); code != 1 || errs.String() != "chat: writing to standard output: disk full\n" {
			t.Errorf("%v: exits %d with %q", args, code, errs.String())
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("%v: the cursor was written", args)
		}
	}
}

// Ensures that a command whose reader has gone ends without a word, but not as
// a success.
func TestMain_ReaderHasGone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	for _, args := range [][]string{{"poll"}, {"poll", "--follow"}, {"poll", string(threadA)}, {"sweep"}, {"--help"}} {
		env := h.env(args...)
		var errs bytes.Buffer
		env.Stdout, env.Stderr = failingWriter{syscall.EPIPE}, &errs
		if code := cli.Main(t.Context(), env); code != 1 || errs.Len() > 0 {
			t.Errorf("%v: exits %d with %q", args, code, errs.String())
		}
	}
}

// Ensures that no run leaves anything to the next: neither flags nor results.
func TestMain_RunsAreIndependent(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	for range 2 {
		if stdout, _, code := h.run("poll", "--json"); code != 0 || !strings.HasPrefix(stdout, "{") {
			t.Errorf("with --json: exits %d with %q", code, stdout)
		}
		if stdout, _, code := h.run("poll"); code != 0 || !strings.HasPrefix(stdout, "THREAD") {
			t.Errorf("without: exits %d with %q", code, stdout)
		}
		if _, _, code := h.run("reply", string(threadA), "--help"); code != 2 {
			t.Errorf("misplaced --help exits %d, want 2", code)
		}
	}
}

// Ensures that the help names the defaults that hold.
func TestMain_HelpNamesDefaults(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for flag, want := range map[string]string{
		"--root": "(default " + config.Default("root") + ")", "--space": "(default " + config.Default("space") + ")",
		"--config": config.DefaultFile, "--max-age": "(default " + config.Default("retention.max_age") + ")",
	} {
		help, _, _ := h.run("sweep", "--help")
		_, line, _ := strings.Cut(help, "\n      "+flag+" ")
		if line, _, _ = strings.Cut(line, "\n"); !strings.HasSuffix(line, want) {
			t.Errorf("the help of %s lacks %q: %s", flag, want, line)
		}
	}
}

// Ensures that a token, which lets its holder read and write a thread, is
// nowhere repeated, wherever somebody pastes it.
func TestMain_NeverPrintsAToken(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	token := strings.Repeat("0123456789abcdef", chat.TokenLength/16)
	for _, args := range [][]string{
		{token}, {"--" + token}, {"-" + token}, {"poll", token}, {"poll", strings.ToUpper(token)},
		{"poll", token[:60]}, {"poll", " " + token}, {"poll", token, token}, {"poll", "X-Chat-Token: " + token},
		{"reply", token, "hello"}, {"reply", token, "a", token}, {"reset", token, "--yes"}, {"poll", "--wait", token},
		{"poll", string(threadA), "--since", token}, {"--space", token + token, "poll"}, {"sweep", token}, {"sweep", "--max-age", token},
	} {
		stdout, stderr, code := h.run(args...)
		if code != 2 {
			t.Errorf("%v: exits %d, want 2", args, code)
		}
		if output := strings.ToLower(stdout + stderr); strings.Contains(output, token[:32]) {
			t.Errorf("%v: prints the token:\n%s", args, output)
		}
	}
	_, stderr, _ := h.run("poll", token)
	if want := "hint: the thread of that token is " + string(chat.Token(token).Thread()); !strings.Contains(stderr, want) {
		t.Errorf("the thread is not named:\n%s", stderr)
	}
}
