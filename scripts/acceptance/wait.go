package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// noticed is how soon a waiting reader must see a message.
const noticed = 3 * time.Second

// waitCases judge chat poll when it waits (section 8).
func waitCases() []testCase {
	return []testCase{
		{
			name:  "wait/nothing",
			wants: "chat poll --wait exits 6 when its time is over, and not before, section 8.",
			needs: needChat,
			judge: judgeWaitNothing,
		},
		{
			name:  "wait/something-already",
			wants: "chat poll --wait returns at once when there is something, section 8.",
			needs: needChat,
			judge: judgeSomethingAlready,
		},
		{
			name:  "wait/reply-by-another-process",
			wants: "chat poll THREAD --wait sees what another process appends, section 8.",
			needs: needChat,
			judge: judgeWaitForReply,
		},
		{
			name:  "wait/thread",
			wants: "chat poll --wait sees a thread that begins to await, section 8.",
			needs: needChat,
			judge: judgeWaitForThread,
		},
		{
			name:  "wait/post",
			wants: "chat poll --wait sees what a browser posts, section 8.",
			needs: needRoot | needChat,
			judge: judgeWaitForPost,
		},
		{
			name:  "wait/follow",
			wants: "chat poll THREAD --follow --json prints one object a line, each message once, in order, section 8.",
			needs: needRoot | needChat,
			judge: judgeFollow,
		},
	}
}

func (t *trial) wantPrompt(result chatResult) {
	t.wantExit(result, codeDone)
	if result.took > noticed {
		t.errorf("%s took %s", result.asked, result.took.Round(time.Millisecond))
	}
}

// wantOnly checks that a call printed a page with one message.
func (t *trial) wantOnly(result chatResult, text string) {
	t.wantPrompt(result)
	if got := t.decoded(result.asked, result.stdout).texts(); !slices.Equal(got, []string{text}) {
		t.errorf("%s shows %q instead of %q alone", result.asked, got, text)
	}
}

// wantOnlyThread checks that a call listed one thread.
func (t *trial) wantOnlyThread(result chatResult, thread string) {
	t.wantPrompt(result)
	if got := t.threadsIn(result.stdout); !slices.Equal(got, []string{thread}) {
		t.errorf("%s lists %v instead of %s alone", result.asked, got, thread)
	}
}

func judgeSomethingAlready(t *trial) {
	r, thread := t.scratchThread()
	t.wantOnlyThread(t.chatIn(r, "poll", "--wait", "6s", "--json"), thread)
	t.wantOnly(t.chatIn(r, "poll", thread, "--wait", "6s", "--json"), "message 1")
}

func judgeWaitNothing(t *trial) {
	const wait = 300 * time.Millisecond
	r, thread := t.scratch(), threadOf(randomToken())
	answered := conversation(2, "hermes")
	t.placeMessages(r, thread, answered)
	for _, args := range [][]string{
		{"poll", "--wait", wait.String()},
		{"poll", thread, "--since", strconv.FormatInt(answered[1].Epoch, 10), "--wait", wait.String()},
	} {
		result := t.chatIn(r, args...)
		t.wantExit(result, codeNothing)
		if result.took < wait || result.took > wait+noticed {
			t.errorf("%s took %s", result.asked, result.took.Round(time.Millisecond))
		}
	}
}

// during starts a call of the chat command, does something a moment later, and
// returns what came of the call.
func (t *trial) during(c chatCall, do func()) chatResult {
	results := make(chan chatResult, 1)
	go func() { results <- t.runChat(t.ctx, c) }()
	select {
	case early := <-results:
		return early
	case <-time.After(300 * time.Millisecond):
		do()
		return <-results
	}
}

func judgeWaitForReply(t *trial) {
	r, thread := t.scratchThread()
	since := strconv.FormatInt(t.shown(r, thread).Cursor, 10)
	waiting := chatCall{root: r, args: []string{"poll", thread, "--since", since, "--wait", "6s", "--json"}}
	result := t.during(waiting, func() { t.wantExit(t.chatIn(r, "reply", thread, "answer"), codeDone) })
	t.wantOnly(result, "answer")
}

func judgeWaitForThread(t *trial) {
	r, thread := t.scratch(), threadOf(randomToken())
	waiting := chatCall{root: r, args: []string{"poll", "--wait", "6s", "--json"}}
	result := t.during(waiting, func() { t.placeMessages(r, thread, conversation(1, "operator")) })
	t.wantOnlyThread(result, thread)
}

func judgeWaitForPost(t *trial) {
	token := t.token()
	first := t.post(token, "first")
	waiting := chatCall{root: t.tree(), args: []string{
		"poll", threadOf(token), "--since", strconv.FormatInt(first.Epoch, 10), "--wait", "6s", "--json",
	}}
	result := t.during(waiting, func() { t.post(token, "second") })
	t.wantOnly(result, "second")
}

func judgeFollow(t *trial) {
	token := t.token()
	t.post(token, "racer 0")
	ctx, cancel := context.WithTimeout(t.ctx, chatTimeout)
	cmd := t.command(ctx, chatCall{root: t.tree(), args: []string{"poll", threadOf(token), "--follow", "--json"}})
	stdout, err := cmd.StdoutPipe()
	t.must(err)
	t.must(cmd.Start())
	t.cleanup(func() error {
		cancel()
		_ = cmd.Wait() // says only that it was stopped
		return nil
	})
	lines := linesOf(stdout)
	for i := range 4 {
		if i > 0 {
			t.post(token, racer(i))
		}
		t.wantLine(lines, racer(i))
	}
	t.must(cmd.Process.Signal(os.Interrupt))
	t.wantEnd(lines)
}

// linesOf returns the lines of a stream, until it ends.
func linesOf(stream io.Reader) <-chan string {
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stream); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// wantLine ends the case unless the next line is one JSON object that shows the
// text of one racer and no other's.
func (t *trial) wantLine(lines <-chan string, text string) {
	select {
	case line, ok := <-lines:
		if !ok {
			t.fatalf("the stream ended before %q", text)
		}
		if _, err := decodeObject([]byte(line)); err != nil {
			t.errorf("the line %q: %v", line, err)
		}
		if strings.Count(line, "racer") != 1 || !strings.Contains(line, `"`+text+`"`) {
			t.errorf("the line %q is not about %q alone", line, text)
		}
	case <-time.After(noticed):
		t.fatalf("%q did not come within %s", text, noticed)
	}
}

// wantEnd checks that a stream ends, with no line more.
func (t *trial) wantEnd(lines <-chan string) {
	select {
	case line, ok := <-lines:
		if ok {
			t.errorf("the line %q came after the last message", line)
		}
	case <-time.After(noticed):
		t.errorf("the stream did not end within %s of an interrupt", noticed)
	}
}
