package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Ensure every case has a name of its own and says in one sentence what it wants
// and where the contract says so.
func TestCasesAreNamed(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+$`)
	wants := regexp.MustCompile(`^\S[^\n]*, (section \d|sections \d(, \d)* and \d|seed: \w+)\.$`)
	seen := map[string]bool{}
	for _, c := range allCases() {
		if seen[c.name] {
			t.Errorf("%s stands twice", c.name)
		}
		seen[c.name] = true
		if !name.MatchString(c.name) {
			t.Errorf("%s is not of the form topic/case", c.name)
		}
		if !wants.MatchString(c.wants) {
			t.Errorf("%s wants %q", c.name, c.wants)
		}
	}
}

// Ensure no case passes a server and a command that do nothing right.
func TestEveryCaseCanFail(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	opts, err := parseOptions([]string{"-base", server.URL, "-root", t.TempDir(), "-chat", "true", "-new-threads", "3"}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(opts.target.tree().chatDir(), 0o770); err != nil {
		t.Fatal(err)
	}
	for _, c := range allCases() {
		if len(judge(t.Context(), opts.target, c)) == 0 {
			t.Errorf("%s passes", c.name)
		}
	}
	if left, err := opts.target.tree().threads(); err != nil || len(left) > 0 {
		t.Errorf("%d threads are left behind: %v", len(left), err)
	}
}

// Ensure the command line is checked before anything is written.
func TestUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-list"}, exitPassed, "roundtrip/post-reply-poll"},
		{[]string{"-list", "-run", "^post/created$"}, exitPassed, "post/created"},
		{[]string{"-unknown"}, exitUsage, "not defined"},
		{[]string{"word"}, exitUsage, "word"},
		{[]string{"-base", "http://chat.example"}, exitUsage, "-remote"},
		{[]string{"-base", "127.0.0.1:8640"}, exitUsage, "-base"},
		{[]string{"-base", "http://127.0.0.1:8640/path"}, exitUsage, "-base"},
		{[]string{"-root", "/does/not/exist"}, exitUsage, "-root"},
		{[]string{"-chat", "/does/not/exist"}, exitUsage, "-chat"},
		{[]string{"-space", "../other"}, exitUsage, "-space"},
		{[]string{"-new-threads", "40"}, exitUsage, "-new-threads"},
		{[]string{"-run", "("}, exitUsage, "-run"},
		{[]string{"-base", "http://127.0.0.1:1"}, exitFailed, "does not answer"},
	} {
		var out bytes.Buffer
		if code := run(context.Background(), test.args, &out, &out); code != test.code {
			t.Errorf("%q: exit code %d instead of %d: %s", test.args, code, test.code, out.String())
		}
		if !strings.Contains(out.String(), test.says) {
			t.Errorf("%q says %q, not %q", test.args, out.String(), test.says)
		}
	}
}

// Ensure a run prints a line per case and closes with the score.
func TestReport(t *testing.T) {
	cases := []testCase{
		{name: "a/passes", judge: func(*trial) {}},
		{name: "b/fails", wants: "It wants more.", judge: func(t *trial) { t.fatalf("it got %d", 1) }},
		{name: "c/panics", wants: "It wants more.", judge: func(*trial) { panic("oh") }},
		{name: "d/needs", needs: needRoot | needChat},
	}
	var out bytes.Buffer
	got := judgeAll(t.Context(), &target{}, cases, &out)
	if want := (score{passed: 1, failed: 2, skipped: 1}); got != want {
		t.Errorf("the score is %v", got)
	}
	want := `ok   a/passes
FAIL b/fails
     wanted: It wants more.
     - it got 1
FAIL c/panics
     wanted: It wants more.
     - the judge panicked: oh
--   d/needs: not judged (needs -root and -chat)
`
	if out.String() != want {
		t.Errorf("the report is\n%s", out.String())
	}
	if got.String() != "1 passed, 2 failed, 1 skipped" {
		t.Errorf("the closing line is %q", got)
	}
}

// Ensure a body is read as one object with exactly the expected members.
func TestDecodeExactly(t *testing.T) {
	for body, good := range map[string]bool{
		`{"id":"a","epoch":1}`:           true,
		` {"epoch":1,"id":""} `:          true,
		`{"id":"a"}`:                     false,
		`{"id":"a","epoch":1,"more":2}`:  false,
		`{"id":"a","epoch":1,"epoch":1}`: false,
		`{"ID":"a","epoch":1}`:           false,
		`{"id":null,"epoch":1}`:          false,
		`{"id":"a","epoch":"1"}`:         false,
		`{"id":"a","epoch":1.5}`:         false,
		`{"id":"a","epoch":1}{}`:         false,
		`{"id":"a","epoch":1`:            false,
		`[{"id":"a","epoch":1}]`:         false,
		``:                               false,
	} {
		var m message
		if err := decodeExactly([]byte(body), &m, "id", "epoch"); (err == nil) != good {
			t.Errorf("%s: %v", body, err)
		}
	}
}
