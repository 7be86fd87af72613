package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sweepCases judge chat sweep, on roots of their own because it touches every
// thread (section 8).
func sweepCases() []testCase {
	return []testCase{
		{
			name:  "sweep/30-days",
			wants: "chat sweep drops messages older than 30 days, a thread with nothing newer as a whole, and does no more the second time, seed: retention.",
			needs: needChat,
			judge: judgeSweep,
		},
		{
			name:  "sweep/dry-run",
			wants: "chat sweep --dry-run names what would be dropped and changes nothing, section 8.",
			needs: needChat,
			judge: judgeDryRun,
		},
		{
			name:  "sweep/max-age",
			wants: "chat sweep --max-age sets another age, section 8.",
			needs: needChat,
			judge: judgeMaxAge,
		},
		{
			name:  "sweep/newest-200",
			wants: "chat sweep keeps the newest 200 messages of a thread, seed: retention.",
			needs: needChat,
			judge: func(t *trial) {
				r, thread := t.scratch(), threadOf(randomToken())
				all := conversation(messageLimit+10, "operator")
				t.placeMessages(r, thread, all)
				t.wantExit(t.chatIn(r, "sweep"), codeDone)
				t.wantKept(r, thread, all[10:])
			},
		},
		{
			name:  "sweep/corrupt",
			wants: "chat sweep names a corrupt thread and leaves it as it is, sections 6 and 8.",
			needs: needChat,
			judge: judgeSweepCorrupt,
		},
		{
			name:  "sweep/foreign-files",
			wants: "chat sweep leaves alone, and is not held up by, what is no thread file, section 8.",
			needs: needChat,
			judge: judgeSweepForeign,
		},
	}
}

// ages places an old thread, a mixed one and a new one, and returns their ids
// and what of the mixed one is new.
func (t *trial) ages(r tree, limit time.Duration) (old, mixed, fresh string, kept []message) {
	old, mixed, fresh = threadOf(randomToken()), threadOf(randomToken()), threadOf(randomToken())
	at := time.Now().Add(-limit)
	stale := conversationUntil(at.Add(-time.Minute), 3, "operator")
	kept = conversationUntil(at.Add(time.Minute), 2, "hermes")
	t.placeMessages(r, old, stale)
	t.placeMessages(r, mixed, slices.Concat(stale, kept))
	t.placeMessages(r, fresh, kept)
	return old, mixed, fresh, kept
}

// wantKept checks the messages of a thread of whatever length.
func (t *trial) wantKept(r tree, thread string, want []message) {
	result := t.chatIn(r, "poll", thread, "--all", "--json")
	t.wantExit(result, codeDone)
	p := t.decoded(result.asked, result.stdout)
	t.wantMessages(p.Messages, want)
	if p.Truncated {
		t.errorf("%s: all messages are shown, and truncated is true", result.asked)
	}
}

func (t *trial) wantGone(r tree, thread string) {
	if _, err := os.Lstat(r.threadFile(thread)); !errors.Is(err, fs.ErrNotExist) {
		t.errorf("the file of thread %s is still there", thread)
	}
}

func judgeSweep(t *trial) {
	r := t.scratch()
	old, mixed, fresh, kept := t.ages(r, retention)
	before := t.read(r, fresh)
	t.wantExit(t.chatIn(r, "sweep"), codeDone)
	t.wantGone(r, old)
	t.wantKept(r, mixed, kept)
	t.unchanged(r, fresh, before)
	swept := t.read(r, mixed)
	t.wantExit(t.chatIn(r, "sweep"), codeDone)
	t.unchanged(r, mixed, swept)
	t.unchanged(r, fresh, before)
}

func judgeDryRun(t *trial) {
	r := t.scratch()
	old, mixed, fresh, _ := t.ages(r, retention)
	before := map[string][]byte{old: t.read(r, old), mixed: t.read(r, mixed), fresh: t.read(r, fresh)}
	result := t.chatIn(r, "sweep", "--dry-run")
	t.wantExit(result, codeDone)
	for thread, data := range before {
		t.unchanged(r, thread, data)
		if named := bytes.Contains(result.stdout, []byte(thread)); named != (thread != fresh) {
			t.errorf("%s names thread %s: %t", result.asked, thread, named)
		}
	}
}

func judgeMaxAge(t *trial) {
	r := t.scratch()
	old, mixed, _, kept := t.ages(r, 2*time.Hour)
	before := t.read(r, old)
	t.wantExit(t.chatIn(r, "sweep"), codeDone)
	t.unchanged(r, old, before)
	t.wantExit(t.chatIn(r, "sweep", "--max-age", "2h"), codeDone)
	t.wantGone(r, old)
	t.wantKept(r, mixed, kept)
}

func judgeSweepCorrupt(t *trial) {
	r, thread := t.scratch(), threadOf(randomToken())
	old, _, _, _ := t.ages(r, retention)
	data := t.placeDamaged(r, thread, damages()["half"])
	result := t.chatIn(r, "sweep")
	t.wantEnded(result)
	if result.code != codeDone && result.code != codeCorrupt {
		t.errorf("%s: exit code %d: %s", result.asked, result.code, result.stderr)
	}
	if !strings.Contains(string(result.stdout)+result.stderr, thread) {
		t.errorf("%s does not name the corrupt thread", result.asked)
	}
	t.unchanged(r, thread, data)
	t.wantGone(r, old)
}

func judgeSweepForeign(t *trial) {
	r := t.scratch()
	names := t.placeForeign(r)
	old, _, _, _ := t.ages(r, retention)
	t.wantExit(t.chatIn(r, "sweep"), codeDone)
	t.wantGone(r, old)
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(r.chatDir(), name)); err != nil {
			t.errorf("%s has gone: %v", name, err)
		}
	}
}

// placeForeign places what is no thread file: other names, and a link, a pipe
// and a directory of a thread file's name. It is for scratch roots, which go
// away with all they hold.
func (t *trial) placeForeign(r tree) []string {
	name := func() string { return threadOf(randomToken()) + ".json" }
	link, pipe, dir := name(), name(), name()
	outside := filepath.Join(r.dir, "outside.json")
	data, err := encodeThread(strings.TrimSuffix(link, ".json"), conversation(1, "operator"))
	t.must(err)
	t.must(os.WriteFile(outside, data, 0o660))
	t.must(os.Symlink(outside, filepath.Join(r.chatDir(), link)))
	t.must(syscall.Mkfifo(filepath.Join(r.chatDir(), pipe), 0o660))
	t.must(os.Mkdir(filepath.Join(r.chatDir(), dir), 0o770))
	t.must(os.WriteFile(filepath.Join(r.chatDir(), "notes.txt"), []byte("{}"), 0o660))
	return []string{link, pipe, dir, "notes.txt"}
}
