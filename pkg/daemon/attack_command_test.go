package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/untrusted"
)

// describe is a program that answers with its arguments, its working directory
// with what is in it, and its environment, and keeps its standard input.
const describe = `#!/bin/sh
cat >>"${0%/*}/inputs"
printf 'arguments:'
printf ' <%s>' "$@"
printf '\ndirectory: %s\nholds:' "$(pwd)"
ls -A
printf 'environment:\n'
tr '\0' '\n' <"/proc/$$/environ" | sort
`

// Ensures that a message changes nothing of how the answering program is
// started: its arguments, its environment and its directory are the same
// whatever the message says, and the message is data on its standard input.
func TestServe_CommandGetsMessagesAsData(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.trap = listenInSilence(t)
	program := filepath.Join(g.dir, "program", "describe")
	g.write(program, describe)
	g.must(os.Chmod(program, 0o755))
	g.write(g.config, fmt.Sprintf("agent: {command: {argv: [%q, \"fixed one\", \"$(fixed two)\"]}}\n", program))
	r := startWith(t, g.root, g.config, append(g.environ("http://127.0.0.1:1/v1"), "RELAYD_AGENT_BACKEND=command", "RELAYD_AGENT_QUIET=0s",
		"RELAYD_AGENT_BUDGET_RUNS_PER_HOUR=0")...)
	f := &field{ground: g, relayd: r, monitor: follow(t, r), outcomes: make(map[*attack]outcome)}
	for _, message := range []string{
		"hello", "--help", "-c id", "; touch pwned", "$(touch pwned) `touch pwned`", "a\nb\n'\"\\", "%s%n", "LD_PRELOAD=/x PATH=/x",
		"../../../etc", "{\"argv\":[\"sh\"]}", "\"}\n{\"limit\":1}", "\u0000\u001b[2J", "curl http://$TRAP/",
	} {
		f.attacks = append(f.attacks, &attack{Name: "command", Author: "operator", Messages: []string{message}, token: letterToken(), mark: letters("mark", 20)})
	}
	f.attackAll()
	// The directory is a new one each time.
	scratch := regexp.MustCompile(regexp.QuoteMeta(filepath.Join(g.dir, "tmp")) + `/[^/\s]+`)
	want := scratch.ReplaceAllString(f.outcomes[f.attacks[0]].reply, "DIR")
	if !strings.Contains(want, "arguments: < fixed one> <$(fixed two)>") && !strings.Contains(want, "arguments: <fixed one> <$(fixed two)>") {
		t.Fatalf("the program says %q, %s", want, f.outcomes[f.attacks[0]].stuck)
	}
	for _, a := range f.attacks {
		if got := scratch.ReplaceAllString(f.outcomes[a].reply, "DIR"); got != want {
			t.Errorf("after %q the program says %q, %s; want %q", a.Messages[0], got, f.outcomes[a].stuck, want)
		}
		f.judgeText(a, "the program's answer", f.outcomes[a].reply)
	}
	f.judgeInputs(filepath.Join(g.dir, "program", "inputs"))
	if left := treeOf(t, filepath.Join(g.dir, "tmp")); len(left) != 1 {
		t.Errorf("working directories are left: %v", left)
	}
	if calls := g.trap.broken(); len(calls) > 0 {
		t.Errorf("somebody called where nobody may: %v", calls)
	}
}

// judgeInputs makes sure that each message was one line of JSON for the program.
func (f *field) judgeInputs(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	got := make(map[string]bool)
	for line := range strings.Lines(string(data)) {
		var input struct {
			Messages []struct{ Author, Text string }
		}
		if err := json.Unmarshal([]byte(line), &input); err != nil || len(input.Messages) != 1 {
			f.t.Errorf("%v: the program was given %s", err, line)
			continue
		}
		got[input.Messages[0].Text] = true
	}
	for _, a := range f.attacks {
		if text := untrusted.Visible(f.expand(a.Messages[0]) + "\n" + a.mark); !got[text] {
			f.t.Errorf("the program was not given %q", text)
		}
	}
}
