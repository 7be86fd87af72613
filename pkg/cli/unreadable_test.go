package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensures that a thread that cannot be read hides none of the others, is named
// with what helps, and lets no list pass for a whole one.
func TestPoll_UnreadableThread(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	h.mustPost(threadB, "two")
	h.mustPost(threadC, "three")
	if err := os.WriteFile(filepath.Join(h.store.Path(), string(threadC)+".json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.mustAllow(threadC)
	h.mustForbid(threadA)
	for _, args := range [][]string{{"poll"}, {"poll", "--json"}, {"poll", "--wait", "1h"}} {
		stdout, stderr, code := h.run(args...)
		if code != 1 || !strings.Contains(stdout, "two") {
			t.Errorf("%v: exits %d with %q", args, code, stdout)
		}
		for _, want := range []string{
			"chat: reading a thread: open " + h.store.Path() + "/" + string(threadA) + ".json: permission denied\nhint: ",
			"chat: thread " + string(threadC) + " is corrupt: ",
		} {
			if strings.Count(stderr, want) != 1 {
				t.Errorf("%v: standard error lacks %q:\n%s", args, want, stderr)
			}
		}
	}
	stdout, _, _ := h.run("poll", "--json")
	for _, want := range []string{
		`"corrupt":[{"thread":"` + string(threadC) + `","error":"`,
		`"unreadable":[{"thread":"` + string(threadA) + `","error":"reading a thread: open `,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s lacks %s", stdout, want)
		}
	}
}

// Ensures that a list with nothing but what cannot be read is none that came to
// nothing.
func TestPollWait_UnreadableThread(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadB, "one")
	h.mustForbid(threadB)
	if stdout, _, code := h.run("poll", "--wait", "1ms"); code != 1 {
		t.Errorf("exits %d with %q", code, stdout)
	}
}

// Ensures that a stream goes on beside a thread that it cannot read, warns of it
// once each time, and neither loses nor repeats a message of it when it can be
// read again.
func TestPollFollow_UnreadableThread(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	h.mustPost(threadB, "two")
	h.mustForbid(threadA)
	s := h.start("poll", "--follow", "--json")
	s.expect(`"text":"two"`)
	h.mustPost(threadB, "three")
	s.expect(`"text":"three"`)
	h.mustAllow(threadA)
	h.mustPost(threadB, "four")
	s.expect(`"text":"one"`)
	s.expect(`"text":"four"`)
	h.mustForbid(threadA)
	h.mustPost(threadB, "five")
	s.expect(`"text":"five"`)
	h.mustAllow(threadA)
	h.mustPost(threadB, "six")
	s.expect(`"text":"six"`)
	s.interrupt()
	if n := strings.Count(s.errs.String(), "permission denied"); n != 2 {
		t.Errorf("%d warnings, want 2:\n%s", n, s.errs)
	}
}

// Ensures that a stream does not open a thread of which it has shown all.
func TestPollFollow_OpensNothingThatIsOld(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	h.mustForbid(threadA)
	h.mustAllow(threadA)
	s := h.start("poll", "--follow", "--json")
	s.expect(`"text":"one"`)
	if err := os.Chmod(filepath.Join(h.store.Path(), string(threadA)+".json"), 0); err != nil {
		t.Fatal(err)
	}
	h.mustPost(threadB, "two")
	s.expect(`"text":"two"`)
	s.interrupt()
	if s.errs.Len() > 0 {
		t.Errorf("it warns:\n%s", s.errs)
	}
}
