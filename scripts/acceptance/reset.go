package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// resetCases judge chat reset (section 8).
func resetCases() []testCase {
	return []testCase{
		{
			name:  "reset/keeps-the-old-file",
			wants: "chat reset THREAD --yes moves the file aside, whole, under a name with the thread's id outside the thread directory, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r, thread := t.scratchThread()
				data := t.read(r, thread)
				t.wantExit(t.chatIn(r, "reset", thread, "--yes"), codeDone)
				t.wantGone(r, thread)
				t.wantAside(r, thread, data)
			},
		},
		{
			name:  "reset/corrupt-thread",
			wants: "chat reset moves a corrupt thread aside as it is, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				r, thread := t.scratch(), threadOf(randomToken())
				data := t.placeDamaged(r, thread, damages()["half"])
				t.wantExit(t.chatIn(r, "reset", thread, "--yes"), codeDone)
				t.wantGone(r, thread)
				t.wantAside(r, thread, data)
			},
		},
		{
			name:  "reset/not-without-yes",
			wants: "Away from a terminal chat reset refuses without --yes and waits for no answer, section 8.",
			needs: needChat,
			judge: judgeResetWithoutYes,
		},
		{
			name:  "reset/mistyped",
			wants: "A mistyped flag never resets, section 8.",
			needs: needChat,
			judge: judgeMistypedReset,
		},
		{
			name:  "reset/unknown-thread",
			wants: "chat reset of a thread that is not there exits 3, section 8.",
			needs: needChat,
			judge: func(t *trial) {
				t.wantExit(t.chatIn(t.scratch(), "reset", threadOf(randomToken()), "--yes"), codeUnknown)
			},
		},
		{
			name:  "reset/starts-anew",
			wants: "After chat reset of a corrupt thread the browser posts and polls again, without what was before, section 8.",
			needs: needRoot | needChat,
			judge: judgeResetStartsAnew,
		},
		{
			name:  "reset/twice",
			wants: "Resetting a thread a second time keeps the first file too, section 8.",
			needs: needRoot | needChat,
			judge: judgeResetTwice,
		},
	}
}

// asides returns the files under a root, outside its thread directory, whose
// name holds the thread's id and whose bytes are these.
func (r tree) asides(thread string, data []byte) ([]string, error) {
	var found []string
	err := filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !strings.Contains(entry.Name(), thread) || filepath.Dir(path) == r.chatDir() {
			return nil
		}
		got, err := os.ReadFile(path)
		if err == nil && bytes.Equal(got, data) {
			found = append(found, path)
		}
		return err
	})
	return found, err
}

// wantAside checks that the bytes of a thread were kept in one file, and has
// that removed after the case.
func (t *trial) wantAside(r tree, thread string, data []byte) {
	found, err := r.asides(thread, data)
	t.must(err)
	if len(found) != 1 {
		t.errorf("the old thread was kept in %d files: %q", len(found), found)
	}
	for _, path := range found {
		t.cleanup(func() error { return removeIfThere(path) })
	}
}

func judgeResetWithoutYes(t *trial) {
	r, thread := t.scratchThread()
	data := t.read(r, thread)
	for _, stdin := range []*os.File{nil, t.openPipe(), t.filled("y\nyes\n")} {
		t.wantFailure(t.runChat(t.ctx, chatCall{root: r, args: []string{"reset", thread}, stdin: stdin}))
		t.unchanged(r, thread, data)
	}
}

func judgeMistypedReset(t *trial) {
	r, thread := t.scratchThread()
	data := t.read(r, thread)
	for _, args := range [][]string{
		{"reset", thread, "--yse"},
		{"reset", thread, "--yes", "--forec"},
		{"reset", "--yes"},
		{"reset", thread, threadOf(randomToken()), "--yes"},
		{"reset", thread, "--yes=maybe"},
	} {
		t.wantExit(t.chatIn(r, args...), codeUsage)
		t.unchanged(r, thread, data)
	}
}

func judgeResetStartsAnew(t *trial) {
	token := t.token()
	thread := threadOf(token)
	data := t.placeDamaged(t.tree(), thread, damages()["half"])
	t.wantCorruptAnswers(token)
	t.wantExit(t.chatIn(t.tree(), "reset", thread, "--yes"), codeDone)
	t.wantAside(t.tree(), thread, data)
	t.stayedEmpty(token)
	t.post(token, "anew")
	t.wantTexts(token, "anew")
}

func judgeResetTwice(t *trial) {
	token := t.token()
	thread := threadOf(token)
	var kept [][]byte
	for _, text := range []string{"first", "second"} {
		t.post(token, text)
		kept = append(kept, t.read(t.tree(), thread))
		t.wantExit(t.chatIn(t.tree(), "reset", thread, "--yes"), codeDone)
	}
	for _, data := range kept {
		t.wantAside(t.tree(), thread, data)
	}
}
