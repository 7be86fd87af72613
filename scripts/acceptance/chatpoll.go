package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// hostileText would move a terminal's cursor, turn its text around and hide
// words from its reader.
const hostileText = "a\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[1A\rb\u009b2Jc\u202ed\u2066e\U000e0041f\x7f\u0085g"

// listingCases judge chat poll without a thread (section 8).
func listingCases() []testCase {
	return []testCase{
		{
			name:  "chat-poll/none-awaiting",
			wants: "chat poll without a thread that awaits exits 0 and lists nothing, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r := t.scratch()
				t.placeMessages(r, threadOf(randomToken()), conversation(1, "hermes"))
				t.wantExit(t.chatIn(r, "poll"), codeDone)
				if listed := t.awaiting(r); len(listed) > 0 {
					t.errorf("chat poll lists %v", listed)
				}
			},
		},
		{
			name:  "chat-poll/oldest-first",
			wants: "chat poll lists exactly the threads that await Hermes, oldest first, section 8.",
			needs: needChat,
			judge: judgeOldestFirst,
		},
		{
			name:  "chat-poll/corrupt-beside",
			wants: "A corrupt thread and foreign files do not keep chat poll from listing the others, section 8.",
			needs: needChat,
			judge: judgeListingBesideCorrupt,
		},
	}
}

// chatPollCases judge chat poll of one thread (section 8).
func chatPollCases() []testCase {
	return []testCase{
		{
			name:  "chat-poll/unknown-thread",
			wants: "chat poll of a thread that is not there exits 3, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r := t.scratch()
				t.wantExit(t.chatIn(r, "poll", threadOf(randomToken())), codeUnknown)
				t.wantExit(t.chatIn(r, "poll", threadOf(randomToken()), "--json"), codeUnknown)
			},
		},
		{
			name:  "chat-poll/corrupt-thread",
			wants: "chat poll of a corrupt thread exits 5 and leaves the file as it is, sections 6 and 8.",
			needs: needChat,
			judge: func(t *trial) {
				for _, damage := range damages() {
					r, thread := t.scratch(), threadOf(randomToken())
					data := t.placeDamaged(r, thread, damage)
					t.wantExit(t.chatIn(r, "poll", thread), codeCorrupt)
					t.unchanged(r, thread, data)
				}
			},
		},
		{
			name:  "chat-poll/foreign-files",
			wants: "A link, a pipe and a directory of a thread file's name are no threads: none is followed or blocks, section 8.",
			needs: needChat,
			judge: judgeForeignFiles,
		},
		{
			name:  "chat-poll/pages",
			wants: "chat poll THREAD --since pages like the HTTP poll, sections 5 and 8.",
			needs: needChat,
			judge: judgeChatPages,
		},
		{
			name:  "chat-poll/all",
			wants: "chat poll THREAD --all shows every message, section 8.",
			needs: needChat,
			judge: judgeChatAll,
		},
		{
			name:  "chat-poll/cursor-file",
			wants: "With --cursor-file a reader sees each message once, and two files are two readers, section 8.",
			needs: needChat,
			judge: judgeCursorFile,
		},
		{
			name:  "chat-poll/untrusted-text",
			wants: "Control, escape, bidi and tag characters are made visible for humans and escaped in JSON, section 8.",
			needs: needChat,
			judge: judgeUntrustedText,
		},
	}
}

func judgeOldestFirst(t *trial) {
	r := t.scratch()
	var want []string
	for i := range 5 {
		thread := threadOf(randomToken())
		age := time.Duration(10-i) * time.Hour
		t.placeMessages(r, thread, conversationUntil(time.Now().Add(-age), 2, []string{"operator", "agent"}[i%2]))
		want = append(want, thread)
		t.placeMessages(r, threadOf(randomToken()), conversationUntil(time.Now().Add(-age), 2, "hermes"))
	}
	if got := t.awaiting(r); !slices.Equal(got, want) {
		t.errorf("chat poll lists %v instead of %v", got, want)
	}
}

func judgeListingBesideCorrupt(t *trial) {
	r, thread := t.scratchThread()
	t.placeDamaged(r, threadOf(randomToken()), damages()["half"])
	t.placeForeign(r)
	result := t.chatIn(r, "poll", "--json")
	t.wantEnded(result)
	if result.code != codeDone && result.code != codeCorrupt {
		t.errorf("%s: exit code %d: %s", result.asked, result.code, result.stderr)
	}
	if !slices.Contains(t.threadsIn(result.stdout), thread) {
		t.errorf("the sound thread is not listed: %s", clip(result.stdout))
	}
}

func judgeForeignFiles(t *trial) {
	r := t.scratch()
	for _, name := range t.placeForeign(r) {
		thread := strings.TrimSuffix(name, ".json")
		t.wantFailure(t.chatIn(r, "poll", thread, "--json"))
		t.wantFailure(t.chatIn(r, "reply", thread, "answer"))
	}
	standing, err := r.threads()
	t.must(err)
	if len(standing) > 0 {
		t.errorf("%d files were replaced by threads", len(standing))
	}
}

func judgeChatPages(t *trial) {
	r, thread := t.scratch(), threadOf(randomToken())
	all := conversation(120, "operator")
	t.placeMessages(r, thread, all)
	t.wantMessages(t.shown(r, thread).Messages, all[70:])
	var got []message
	since := int64(1)
	for range 3 {
		result := t.chatIn(r, "poll", thread, "--since", strconv.FormatInt(since, 10), "--json")
		t.wantExit(result, codeDone)
		p := t.page(result.asked, result.stdout, thread, since)
		got, since = append(got, p.Messages...), p.Cursor
	}
	t.wantMessages(got, all)
}

func judgeChatAll(t *trial) {
	r, thread := t.scratch(), threadOf(randomToken())
	all := conversation(120, "operator")
	t.placeMessages(r, thread, all)
	t.wantKept(r, thread, all)
}

func judgeCursorFile(t *trial) {
	r, thread := t.scratchThread()
	one, other := filepath.Join(r.dir, "one"), filepath.Join(r.dir, "other")
	t.wantNew(r, thread, one, "message 1")
	t.wantNew(r, thread, one)
	t.wantExit(t.chatIn(r, "reply", thread, "answer"), codeDone)
	t.wantNew(r, thread, one, "answer")
	t.wantNew(r, thread, other, "message 1", "answer")
	t.wantNew(r, thread, one)
	t.wantNew(r, thread, other)
	t.wantShown(r, thread, "message 1", "answer")
}

// wantNew checks what a reader with a cursor file sees.
func (t *trial) wantNew(r tree, thread, cursorFile string, want ...string) {
	result := t.chatIn(r, "poll", thread, "--cursor-file", cursorFile, "--json")
	t.wantExit(result, codeDone)
	if got := t.decoded(result.asked, result.stdout).texts(); !slices.Equal(got, want) {
		t.errorf("the reader of %s sees %q instead of %q", filepath.Base(cursorFile), got, want)
	}
}

func judgeUntrustedText(t *trial) {
	r, thread := t.scratch(), threadOf(randomToken())
	messages := conversation(1, "operator")
	messages[0].Text = hostileText
	t.placeMessages(r, thread, messages)
	t.wantTame(t.chatIn(r, "poll"))
	t.wantTame(t.chatIn(r, "poll", thread))
	t.wantTame(t.chatIn(r, "poll", thread, "--all"))
	result := t.chatIn(r, "poll", thread, "--json")
	t.wantExit(result, codeDone)
	t.wantNoControls(result)
	t.wantShown(r, thread, hostileText)
}

// wantTame checks output for humans.
func (t *trial) wantTame(result chatResult) {
	t.wantExit(result, codeDone)
	t.wantNoControls(result)
	for _, c := range string(result.stdout) {
		if unicode.Is(unicode.Cf, c) {
			t.errorf("%s prints %U as it is", result.asked, c)
		}
	}
}

// wantNoControls checks that nothing but line breaks and tabs controls the
// terminal.
func (t *trial) wantNoControls(result chatResult) {
	for _, c := range string(result.stdout) {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			t.errorf("%s prints %U as it is", result.asked, c)
		}
	}
}
