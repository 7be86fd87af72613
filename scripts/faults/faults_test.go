package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// Ensures that the command line is checked before anything is started.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-list"}, exitKept, "kill "},
		{[]string{"-list", "-run", "^disk$"}, exitKept, "disk "},
		{[]string{"-help"}, exitKept, "-seed"},
		{[]string{"-unknown"}, exitUsage, "not defined"},
		{[]string{"word"}, exitUsage, "word"},
		{[]string{"-run", "("}, exitUsage, "-run"},
		{[]string{"-run", "nothing"}, exitUsage, "hint: -list"},
		{[]string{"-scale", "0"}, exitUsage, "-scale"},
		{[]string{"-duration", "-1s"}, exitUsage, "-duration"},
		{[]string{"-bin", "/does/not/exist"}, exitFailed, "/does/not/exist"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), test.args, &out, &out); code != test.code || !strings.Contains(out.String(), test.says) {
			t.Errorf("%q: exit code %d instead of %d: %s", test.args, code, test.code, out.String())
		}
	}
}

// Ensures that a trial which lost, doubled or broke something fails the run, and
// so does one that could not be judged, while cut and refused requests do not.
func TestReport_Verdict(t *testing.T) {
	t.Parallel()
	e := newLedger().offer("", "operator", "word")
	sound := func() *report {
		return &report{name: "x", verdict: newVerdict(), counts: counts{refused: map[string]int{}}}
	}
	for name, test := range map[string]struct {
		spoil func(*report)
		fails bool
	}{
		"sound":    {func(*report) {}, false},
		"cut":      {func(r *report) { r.counts.unknown = 7; r.verdict.standing[e] = true }, false},
		"refused":  {func(r *report) { r.counts.refused["storage"] = 1 }, false},
		"lost":     {func(r *report) { r.verdict.lost[e] = "it" }, true},
		"doubled":  {func(r *report) { r.verdict.doubled[e] = "it" }, true},
		"phantom":  {func(r *report) { r.verdict.phantom[e] = "it" }, true},
		"foreign":  {func(r *report) { r.verdict.foreign = []string{"it"} }, true},
		"bound":    {func(r *report) { r.failures = []string{"it"} }, true},
		"internal": {func(r *report) { r.counts.refused["internal"] = 1 }, true},
		"unjudged": {func(r *report) { r.verdict = nil }, true},
	} {
		r := sound()
		test.spoil(r)
		if err := verdictOf([]*report{sound(), r}); (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
		var out bytes.Buffer
		if err := printTable(&out, []*report{r}); err != nil || strings.Contains(out.String(), "FAILED") != test.fails {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if details := r.details(); strings.Contains(details, "FAILED") != test.fails {
			t.Errorf("%s: the details are\n%s", name, details)
		}
	}
}

// Ensures that a request which nobody can have heard is told from one that was
// cut off, whose message may stand.
func TestResults(t *testing.T) {
	t.Parallel()
	if code := codeOfFailure(&net.OpError{Op: "dial", Err: os.ErrInvalid}); code != codeUnreached {
		t.Errorf("a failed connect is %q", code)
	}
	for _, err := range []error{&net.OpError{Op: "read", Err: os.ErrInvalid}, context.DeadlineExceeded, errors.New("EOF")} {
		if code := codeOfFailure(err); code != "" {
			t.Errorf("%v is %q", err, code)
		}
	}
	if r := resultOfReply(exec.CommandContext(t.Context(), "sh", "-c", "exit 4").Run(), 0); r.code != "exit 4" {
		t.Errorf("exit code 4 is %+v", r)
	}
	if r := resultOfReply(exec.CommandContext(t.Context(), "sh", "-c", "kill -9 $$").Run(), 0); !r.cut() {
		t.Errorf("a killed command is %+v", r)
	}
	for body, want := range map[string]string{`{"code":"storage"}`: "storage", "<html>": "500"} {
		if code := codeOfRefusal(500, []byte(body)); code != want {
			t.Errorf("%s is %q", body, code)
		}
	}
}

// Ensures that a tally counts each request once, by its kind and code.
func TestTally(t *testing.T) {
	t.Parallel()
	tally := newTally()
	for i := range 100 {
		tally.note(posts, result{served: true, took: time.Duration(100-i) * time.Millisecond})
	}
	tally.note(posts, result{code: "storage"})
	tally.note(polls, result{})
	c := tally.counts()
	if c.offered != 102 || c.served != 100 || c.unknown != 1 || c.refusals() != "storage 1" {
		t.Errorf("counts %+v", c)
	}
	if p := tally.percentile(posts, 0.99); p != 100*time.Millisecond {
		t.Errorf("99 %% took %v", p)
	}
	if served, refused := tally.of(posts); served != 100 || refused != 1 {
		t.Errorf("%d posts served, %d refused", served, refused)
	}
	if p := tally.percentile(replies, 0.5); p != 0 {
		t.Errorf("no reply took %v", p)
	}
}

// Ensures that parties differ, and that each number has the same one in every
// run.
func TestNewParty(t *testing.T) {
	t.Parallel()
	if a, b := newParty(1, 70000), newParty(1, 70000); a != b || a.from != "10.1.17.112" {
		t.Errorf("%v, %v", a, b)
	}
	if _, err := chat.ParseToken(string(newParty(1<<63, 1).token)); err != nil {
		t.Error(err)
	}
	if newParty(1, 2).token == newParty(2, 1).token || newParty(1, 1).token == newParty(1, 2).token {
		t.Error("two parties have one token")
	}
}

// Ensures that the entry of the vDSO is found behind arguments and environment,
// and that a stack which is cut short is not read beyond its end.
func TestFindVDSO(t *testing.T) {
	t.Parallel()
	words := []uint64{2, 100, 101, 0, 200, 0, 3, 33, auxVDSO, 4096, 6, 33, auxNull, 0}
	var stack []byte
	for _, w := range words {
		stack = binary.LittleEndian.AppendUint64(stack, w)
	}
	if offset, found := findVDSO(stack); !found || offset != 8*8 {
		t.Errorf("offset %d, %v", offset, found)
	}
	for n := range 8*10 - 1 {
		if _, found := findVDSO(stack[:n]); found {
			t.Errorf("found in %d bytes", n)
		}
	}
	if _, found := findVDSO(append(stack[:8*6:8*6], stack[8*12:]...)); found {
		t.Error("found where there is none")
	}
}
