package main

import "strings"

// usageCases judge how the chat command is called (section 8).
func usageCases() []testCase {
	return []testCase{
		{
			name:  "usage/mistakes",
			wants: "An unknown command, flag or value exits 2 with a message that begins with \"chat: \", section 8.",
			needs: needChat,
			judge: judgeUsageMistakes,
		},
		{
			name:  "usage/help",
			wants: "The help exits 0 and tells every exit code, section 8.",
			needs: needChat,
			judge: judgeHelp,
		},
	}
}

func judgeUsageMistakes(t *trial) {
	r, thread := t.scratchThread()
	data := t.read(r, thread)
	for _, args := range [][]string{
		{"rply", thread, "answer"},
		{"poll", "--unknown"},
		{"poll", thread, "another"},
		{"poll", thread, "--since", "-1"},
		{"poll", thread, "--since", "1.5"},
		{"poll", thread, "--since", "now"},
		{"poll", "--wait", "soon"},
		{"poll", "--wait"},
		{"sweep", "--max-age", "old"},
		{"sweep", "--max-age", "-1h"},
		{"sweep", thread},
	} {
		result := t.chatIn(r, args...)
		t.wantEnded(result)
		if result.code != codeUsage {
			t.errorf("%s: exit code %d instead of %d", result.asked, result.code, codeUsage)
		}
		if !strings.HasPrefix(result.stderr, "chat: ") {
			t.errorf("%s says %q", result.asked, result.stderr)
		}
	}
	t.unchanged(r, thread, data)
}

func judgeHelp(t *trial) {
	result := t.chatIn(t.scratch(), "--help")
	t.wantExit(result, codeDone)
	for _, code := range []string{"0", "1", "2", "3", "4", "5", "6"} {
		if !strings.Contains(string(result.stdout), code) {
			t.errorf("the help does not tell exit code %s", code)
		}
	}
}
