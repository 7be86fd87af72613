package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/cli"
)

// Ensures that each message that awaits hermes is streamed once, as it comes,
// with how many wait by then, and that an interrupted stream is a success.
func TestPollFollow_StreamsEachAwaitingMessageOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "a1")
	h.mustPost(threadA, "a2")
	s := h.start("poll", "--follow", "--json")
	s.expect(`"unanswered":1,"messages":2,"last":{"id":"`)
	s.expect(`"text":"a2"`)
	h.mustPost(threadB, "b1")
	s.expect(`"text":"b1"`)
	h.mustPost(threadA, "a3")
	s.expect(`"unanswered":3,"messages":3,"last":{"id":"`)
	if _, _, code := h.run("reply", string(threadA), "answer"); code != 0 {
		t.Fatalf("reply exits %d", code)
	}
	h.mustPost(threadA, "a4")
	s.expect(`"unanswered":1,"messages":5,"last":{"id":"`)
	if code := s.interrupt(); code != 0 {
		t.Errorf("an interrupted stream exits %d, want 0", code)
	}
}

// Ensures that the stream for people has its header once and a row a message.
func TestPollFollow_StreamsRows(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := h.start("poll", "--follow")
	h.mustPost(threadA, "one\nmore")
	s.expect("THREAD            WAITING  UNANSWERED  LAST BY   TEXT")
	s.expect("one…")
	h.mustPost(threadB, "two")
	s.expect(string(threadB))
	s.interrupt()
}

// Ensures that a thread which does not exist yet is waited for, and that none
// of its messages is left out even when more than a page come at once.
func TestPollFollow_LosesNothingOfANewThread(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadB, "first of another")
	inbox := h.start("poll", "--follow", "--json")
	inbox.expect("first of another")
	s := h.start("poll", string(threadA), "--follow", "--json")
	var want []string
	for range 120 {
		want = append(want, h.mustPost(threadA, "hello").ID)
	}
	for _, id := range want {
		s.expect(id)
	}
	for _, id := range want {
		inbox.expect(id)
	}
}

// Ensures that a stream of a thread shows what stands, then what comes, each
// message under its own header.
func TestPollFollow_StreamsAThread(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	s := h.start("poll", string(threadA), "--follow", "--cursor-file", filepath.Join(h.root, "cursor"))
	s.expect("operator  ")
	s.expect("  | one")
	last := h.mustPost(threadA, "two")
	s.expect("")
	s.expect(last.ID)
	s.expect("  | two")
	if code := s.interrupt(); code != 0 {
		t.Errorf("an interrupted stream exits %d, want 0", code)
	}
	h.mustPost(threadA, "three")
	stdout, _, _ := h.run("poll", string(threadA), "--cursor-file", filepath.Join(h.root, "cursor"))
	if strings.Contains(stdout, "two") || !strings.Contains(stdout, "three") {
		t.Errorf("behind the stream's cursor stands:\n%s", stdout)
	}
}

// Ensures that a stream that begins with the whole thread does not repeat it.
func TestPollFollow_AllOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	s := h.start("poll", string(threadA), "--all", "--follow", "--json")
	s.expect(`"text":"one"`)
	h.mustPost(threadA, "two")
	s.expect(`"text":"two"`)
}

// Ensures that a stream that ends in a corrupt thread says so by its code, and
// that the stream of all threads outlives it.
func TestPollFollow_CorruptThread(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "one")
	h.mustPost(threadB, "two")
	inbox := h.start("poll", "--follow", "--json")
	inbox.expect(`"text":"one"`)
	inbox.expect(`"text":"two"`)
	s := h.start("poll", string(threadA), "--follow", "--json")
	s.expect(`"text":"one"`)
	if err := os.WriteFile(filepath.Join(h.store.Path(), string(threadA)+".json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-s.code; code != 5 {
		t.Errorf("the thread's stream exits %d, want 5", code)
	}
	h.mustPost(threadB, "three")
	inbox.expect(`"text":"three"`)
}

// Ensures that a wait that was interrupted before anything came is no success,
// and not the end of the time either.
func TestPollWait_Interrupted(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if err := h.store.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := h.env("poll", "--wait", "1h")
	var errs bytes.Buffer
	env.Stderr = &errs
	if code := cli.Main(ctx, env); code != 1 || errs.String() != "chat: interrupted before anything came\n" {
		t.Errorf("exits %d with %q", code, errs.String())
	}
}
