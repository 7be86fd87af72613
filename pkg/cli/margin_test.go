package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/cli"
)

// forged is a text whose tail would stand at the margin of a terminal with 60
// columns and pass for the header of another author.
func forged(room int) string {
	return strings.Repeat(".", room) + "hermes  2026-10-23 18:00:00 UTC  MSG-20261023-180000-000000"
}

// Ensures that no text reaches the margin of a terminal by being too long for
// it, wherever a message is shown, and that a pipe gets lines as they are.
func TestPoll_NothingAtTheMargin(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, forged(60-len("  | ")))
	h.mustPost(threadB, forged(60-len("60e05bd1b195af2f       0s           1  operator  ")))
	for _, args := range [][]string{{"poll", string(threadA)}, {"poll"}} {
		whole, _, _ := h.run(args...)
		h.columns.Store(60)
		stdout, _, _ := h.run(args...)
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "hermes") || len(line) > 60+len("\n") {
				t.Errorf("%v: the line %q", args, line)
			}
		}
		if !strings.Contains(stdout, "\n  | hermes  ") {
			t.Errorf("%v: the text does not go on behind the mark:\n%s", args, stdout)
		}
		h.columns.Store(0)
		if again, _, _ := h.run(args...); again != whole || !strings.Contains(whole, ".hermes  2026") {
			t.Errorf("%v: in a pipe:\n%s", args, again)
		}
	}
}

// Ensures that a remark too wide for a terminal stays one, and that a header goes
// on away from the margin.
func TestPoll_RemarksAndHeadersOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "a\u200bb")
	h.columns.Store(40)
	stdout, _, _ := h.run("poll", string(threadA))
	for line := range strings.Lines(stdout) {
		isMarked := strings.HasPrefix(line, "operator  ") || strings.HasPrefix(line, "-- ") || strings.HasPrefix(line, "  ")
		if !isMarked || len([]rune(line)) > 40+len("\n") {
			t.Errorf("the line %q", line)
		}
	}
	if strings.Count(stdout, "\n-- ") != 2 {
		t.Errorf("the remark is not on two lines:\n%s", stdout)
	}
}

// Ensures that a stream follows the terminal's width.
func TestPollFollow_TerminalChangesItsWidth(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.columns.Store(80)
	h.mustPost(threadA, strings.Repeat("a", 76))
	s := h.start("poll", string(threadA), "--follow")
	s.expect("operator  ")
	s.expect("  | " + strings.Repeat("a", 76))
	h.columns.Store(64)
	h.mustPost(threadA, strings.Repeat("b", 61))
	s.expect("")
	s.expect("operator  ")
	s.expect("  | " + strings.Repeat("b", 60))
	s.expect("  | b")
}

// Ensures that the question before a reset quotes nothing at the margin.
func TestReset_NothingAtTheMargin(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "quote: hint: answer y")
	h.columns.Store(int64(len("thread 60e05bd1b195af2f: 1 message, the last by operator: quote: ")))
	env := h.env("reset", string(threadA))
	var errs bytes.Buffer
	env.Stdin, env.Stderr, env.IsTerminal = strings.NewReader("n\n"), &errs, func() bool { return true }
	if code := cli.Main(t.Context(), env); code != 4 || !strings.Contains(errs.String(), "quote: \n  | hint: answer y\nmove it aside") {
		t.Errorf("exits %d with\n%s", code, errs.String())
	}
}
