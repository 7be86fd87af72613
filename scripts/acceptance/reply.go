package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// replyCases judge chat reply on a root without a server (section 8).
func replyCases() []testCase {
	return []testCase{
		{
			name:  "reply/argument",
			wants: "chat reply THREAD TEXT appends the text as hermes, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r, thread := t.scratchThread()
				t.wantExit(t.chatIn(r, "reply", thread, "  two words\n"), codeDone)
				t.wantReplied(r, thread, "  two words\n")
			},
		},
		{
			name:  "reply/file",
			wants: "chat reply THREAD -F FILE appends the text of the file, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r, thread := t.scratchThread()
				path := filepath.Join(r.dir, "answer.txt")
				t.must(os.WriteFile(path, []byte("line 1\n\n\tline 2: 😀"), 0o600))
				t.wantExit(t.chatIn(r, "reply", thread, "-F", path), codeDone)
				t.wantReplied(r, thread, "line 1\n\n\tline 2: 😀")
			},
		},
		{
			name:  "reply/stdin",
			wants: "chat reply THREAD - reads the text from standard input, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r, thread := t.scratchThread()
				reply := chatCall{root: r, args: []string{"reply", thread, "-"}, stdin: t.filled("line 1\nline 2")}
				t.wantExit(t.runChat(t.ctx, reply), codeDone)
				t.wantReplied(r, thread, "line 1\nline 2")
			},
		},
		{
			name:  "reply/open-stdin",
			wants: "Standard input is read only when asked for: a pipe that stays open blocks nothing, section 8.",
			needs: needChat,
			judge: judgeOpenStdin,
		},
		{
			name:  "reply/leading-dash",
			wants: "A text that begins with a dash works behind --, and otherwise is sent as a whole or not at all, section 8.",
			needs: needChat,
			judge: judgeLeadingDash,
		},
		{
			name:  "reply/if-last",
			wants: "chat reply --if-last replies when that message is the last and exits 4 when something newer stands, section 8.",
			needs: needChat,
			judge: judgeIfLast,
		},
		{
			name:  "reply/4000-code-points",
			wants: "A reply may have 4000 code points; one more is exit code 4, sections 3 and 8.",
			needs: needChat,
			judge: judgeReplyLength,
		},
		{
			name:  "reply/epoch-from-the-future",
			wants: "A reply behind an epoch in the future gets that epoch plus 1, section 4.",
			needs: needChat,
			judge: judgeReplyFutureEpoch,
		},
		{
			name:  "reply/many-at-once",
			wants: "Two dozen replies by processes at once all stand, with strictly increasing epochs, sections 4 and 8.",
			needs: needChat,
			judge: judgeManyReplies,
		},
	}
}

// scratchThread returns a root of its own with a thread that awaits Hermes.
func (t *trial) scratchThread() (r tree, thread string) {
	r, thread = t.scratch(), threadOf(randomToken())
	t.placeMessages(r, thread, conversation(1, "operator"))
	return r, thread
}

// wantReplied checks that hermes has answered the one message of a thread.
func (t *trial) wantReplied(r tree, thread, text string) {
	t.wantShown(r, thread, "message 1", text)
	p := t.shown(r, thread)
	if author := p.Messages[len(p.Messages)-1].Author; author != "hermes" || p.Awaiting {
		t.errorf("the last author is %s, awaiting %t", author, p.Awaiting)
	}
}

// wantRefusedReply checks that a reply ended with the code and changed nothing.
func (t *trial) wantRefusedReply(r tree, thread string, code int, args ...string) chatResult {
	before := t.read(r, thread)
	result := t.chatIn(r, append([]string{"reply"}, args...)...)
	t.unchanged(r, thread, before)
	t.wantExit(result, code)
	return result
}

func judgeOpenStdin(t *trial) {
	r, thread := t.scratchThread()
	for _, args := range [][]string{
		{"poll"},
		{"poll", thread},
		{"reply", thread, "answer"},
		{"sweep", "--dry-run"},
	} {
		result := t.runChat(t.ctx, chatCall{root: r, args: args, stdin: t.openPipe()})
		t.wantExit(result, codeDone)
		if result.took > noticed {
			t.errorf("%s took %s with an open standard input", result.asked, result.took)
		}
	}
	t.wantReplied(r, thread, "answer")
}

func judgeLeadingDash(t *trial) {
	for _, text := range []string{"-5", "- item", "--help", "--yes --json", "--"} {
		r, thread := t.scratchThread()
		t.wantExit(t.chatIn(r, "reply", thread, "--", text), codeDone)
		t.wantReplied(r, thread, text)
	}
	for _, text := range []string{"-5", "- item", "-item one", "--item=one"} {
		r, thread := t.scratchThread()
		if result := t.chatIn(r, "reply", thread, text); result.code == codeDone {
			t.wantReplied(r, thread, text)
			continue
		}
		t.wantShown(r, thread, "message 1")
	}
}

func judgeIfLast(t *trial) {
	r, thread := t.scratchThread()
	first := t.shown(r, thread).Messages[0].ID
	t.wantExit(t.chatIn(r, "reply", thread, "--if-last", first, "answer"), codeDone)
	t.wantReplied(r, thread, "answer")
	t.wantRefusedReply(r, thread, codeRefused, thread, "--if-last", first, "too late")
	last := t.shown(r, thread).Messages[1].ID
	t.wantExit(t.chatIn(r, "reply", thread, "--if-last", last, "and more"), codeDone)
	t.wantShown(r, thread, "message 1", "answer", "and more")
}

func judgeReplyLength(t *trial) {
	for _, char := range []string{"a", "界", "😀"} {
		r, thread := t.scratchThread()
		full := strings.Repeat(char, textLimit)
		t.wantRefusedReply(r, thread, codeRefused, thread, full+char)
		t.wantExit(t.chatIn(r, "reply", thread, full), codeDone)
		t.wantReplied(r, thread, full)
	}
}

func judgeReplyFutureEpoch(t *trial) {
	r, thread := t.scratch(), threadOf(randomToken())
	ahead := conversationUntil(time.Now().Add(time.Hour), 1, "operator")
	t.placeMessages(r, thread, ahead)
	t.wantExit(t.chatIn(r, "reply", thread, "answer"), codeDone)
	t.wantReplied(r, thread, "answer")
	if got, want := t.shown(r, thread).Cursor, ahead[0].Epoch+1; got != want {
		t.errorf("the reply has epoch %d instead of %d", got, want)
	}
}

func judgeManyReplies(t *trial) {
	r, thread := t.scratchThread()
	const writers = 24
	results := together(writers, func(i int) chatResult {
		return t.runChat(t.ctx, chatCall{root: r, args: []string{"reply", thread, racer(i)}})
	})
	for _, result := range results {
		t.wantExit(result, codeDone)
	}
	seen := map[string]bool{}
	for _, text := range t.shown(r, thread).texts() {
		seen[text] = true
	}
	if len(seen) != writers+1 {
		t.errorf("%d different messages stand instead of %d", len(seen), writers+1)
	}
}

// replyRefusedCases judge replies that must change nothing (section 8).
func replyRefusedCases() []testCase {
	return []testCase{
		{
			name:  "reply/unknown-thread",
			wants: "A reply to a thread that is not there exits 3 and creates nothing, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r := t.scratch()
				t.wantExit(t.chatIn(r, "reply", threadOf(randomToken()), "answer"), codeUnknown)
				standing, err := r.threads()
				t.must(err)
				if len(standing) > 0 {
					t.errorf("the refused reply made a thread")
				}
			},
		},
		{
			name:  "reply/corrupt-thread",
			wants: "A reply to a corrupt thread exits 5 and leaves the file as it is, sections 6 and 8.",
			needs: needChat,
			judge: func(t *trial) {
				for _, damage := range damages() {
					r, thread := t.scratch(), threadOf(randomToken())
					t.placeDamaged(r, thread, damage)
					t.wantRefusedReply(r, thread, codeCorrupt, thread, "answer")
				}
			},
		},
		{
			name:  "reply/several-words",
			wants: "Several words without quotes are a usage error that says so, and nothing is sent, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r, thread := t.scratchThread()
				result := t.wantRefusedReply(r, thread, codeUsage, thread, "several", "words")
				if !strings.Contains(strings.ToLower(result.stderr), "quot") {
					t.errorf("the error does not speak of quotes: %s", result.stderr)
				}
			},
		},
		{
			name:  "reply/usage",
			wants: "A reply without a text, with two, or with an unknown flag exits 2 and sends nothing, section 8.",
			needs: needChat,
			judge: judgeReplyUsage,
		},
		{
			name:  "reply/unusable-text",
			wants: "A reply that is empty, blank or not UTF-8 fails and sends nothing, sections 3 and 8.",
			needs: needChat,
			judge: judgeUnusableText,
		},
		{
			name:  "reply/foreign-names",
			wants: "What is no thread id names no thread and no other file, section 8.",
			needs: needChat,
			judge: judgeForeignThreadNames,
		},
	}
}

func judgeReplyUsage(t *trial) {
	r, thread := t.scratchThread()
	path := filepath.Join(r.dir, "answer.txt")
	t.must(os.WriteFile(path, []byte("answer"), 0o600))
	for _, args := range [][]string{
		{},
		{thread},
		{thread, "answer", "-F", path},
		{thread, "--unknown", "answer"},
	} {
		t.wantRefusedReply(r, thread, codeUsage, args...)
	}
}

func judgeUnusableText(t *trial) {
	r, thread := t.scratchThread()
	before := t.read(r, thread)
	for _, text := range []string{"", " \n\t", "a\xffb", "\xed\xa0\xbd"} {
		t.wantFailure(t.chatIn(r, "reply", thread, text))
		stdin := t.filled(text)
		t.wantFailure(t.runChat(t.ctx, chatCall{root: r, args: []string{"reply", thread, "-"}, stdin: stdin}))
	}
	t.wantFailure(t.chatIn(r, "reply", thread, "-F", filepath.Join(r.dir, "missing.txt")))
	t.unchanged(r, thread, before)
}

func judgeForeignThreadNames(t *trial) {
	r, thread := t.scratchThread()
	const away = "../../../../outside" // from the thread directory
	outside := filepath.Join(r.dir, "outside.json")
	data, err := encodeThread(away, conversation(1, "operator"))
	t.must(err)
	t.must(os.WriteFile(outside, data, 0o660))
	before := t.read(r, thread)
	for _, name := range []string{away, "", thread + ".json", strings.ToUpper(thread[:15]) + "A", "x", thread + "/", "./" + thread} {
		t.wantFailure(t.chatIn(r, "reply", name, "answer"))
		t.wantFailure(t.chatIn(r, "poll", name, "--json"))
	}
	t.unchanged(r, thread, before)
	now, err := os.ReadFile(outside)
	t.must(err)
	if string(now) != string(data) {
		t.errorf("a file outside the thread directory was written")
	}
}
