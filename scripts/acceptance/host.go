package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// hostCases judge the files under the server's root (sections 1, 4 and 8).
func hostCases() []testCase {
	return []testCase{
		{
			name:  "host/one-file-per-thread",
			wants: "A thread is the file spaces/SPACE/data/chat/THREAD.json, section 1.",
			needs: needRoot,
			judge: func(t *trial) {
				token := t.token()
				t.post(token, "where is it")
				if !bytes.Contains(t.read(t.tree(), threadOf(token)), []byte("where is it")) {
					t.errorf("the thread's file does not hold its text")
				}
			},
		},
		{
			name:  "host/modes",
			wants: "Thread files are 0660 and their directory 2770, of one group, so that daemon and operator can both write, section 8.",
			needs: needRoot,
			judge: func(t *trial) {
				token := t.token()
				t.post(token, "hello")
				t.wantShared(t.tree(), threadOf(token))
			},
		},
		{
			name:  "host/replaced-not-rewritten",
			wants: "A thread file is replaced as a whole, never written in place, section 4.",
			needs: needRoot,
			judge: judgeReplaced,
		},
		{
			name:  "host/link-not-followed",
			wants: "A link in the place of a thread file is neither read nor written through, section 8.",
			needs: needRoot,
			judge: judgeLink,
		},
		{
			name:  "host/pipe-does-not-block",
			wants: "A pipe or a directory in the place of a thread file blocks no one, section 8.",
			needs: needRoot,
			judge: judgePipe,
		},
	}
}

// wantShared checks that all of one group can write a thread.
func (t *trial) wantShared(r tree, thread string) {
	dir, err := os.Stat(r.chatDir())
	t.must(err)
	if got := dir.Mode() & (fs.ModePerm | fs.ModeSetgid); got != 0o770|fs.ModeSetgid {
		t.errorf("the thread directory has the mode %v instead of 2770", got)
	}
	file, err := os.Lstat(r.threadFile(thread))
	t.must(err)
	if file.Mode() != 0o660 {
		t.errorf("the thread file has the mode %v instead of 0660", file.Mode())
	}
	if groupOf(dir) != groupOf(file) {
		t.errorf("the thread file has the group %d, its directory %d", groupOf(file), groupOf(dir))
	}
}

func groupOf(info fs.FileInfo) uint32 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Gid
	}
	return 0
}

func judgeReplaced(t *trial) {
	token := t.token()
	t.post(token, "first")
	path := t.tree().threadFile(threadOf(token))
	f, err := os.Open(path)
	t.must(err)
	defer func() { _ = f.Close() }()
	before := t.read(t.tree(), threadOf(token))
	t.post(token, "second")
	after, err := io.ReadAll(f)
	t.must(err)
	if !bytes.Equal(before, after) {
		t.errorf("the file that was there has been written in place")
	}
	old, err := f.Stat()
	t.must(err)
	now, err := os.Stat(path)
	t.must(err)
	if os.SameFile(old, now) {
		t.errorf("the same file stands after a post")
	}
}

func judgeLink(t *trial) {
	token, other := t.token(), t.token()
	secret := "secret " + randomHex(8)
	t.post(other, secret)
	outside := filepath.Join(t.scratch().dir, "outside.json")
	data, err := encodeThread(threadOf(token), []message{newMessage(time.Now().Add(-time.Hour), "operator", secret)})
	t.must(err)
	t.must(os.WriteFile(outside, data, 0o660))
	t.must(os.Symlink(outside, t.tree().threadFile(threadOf(token))))
	poll := t.do(t.pollCall(token, ""))
	post := t.postBody(token, textBody("hello"))
	if slices.ContainsFunc([]answer{poll, post}, func(a answer) bool { return strings.Contains(string(a.body), secret) }) {
		t.errorf("the link was followed: %s", clip(poll.body))
	}
	now, err := os.ReadFile(outside)
	t.must(err)
	if !bytes.Equal(now, data) {
		t.errorf("the file behind the link was written")
	}
}

// judgePipe needs no check of the answers, whose status the contract does not
// say: they have to come within a call's time-out.
func judgePipe(t *trial) {
	pipe, dir, other := t.token(), t.token(), t.token()
	t.must(syscall.Mkfifo(t.tree().threadFile(threadOf(pipe)), 0o660))
	t.must(os.Mkdir(t.tree().threadFile(threadOf(dir)), 0o770))
	for _, token := range []string{pipe, dir} {
		t.do(t.pollCall(token, ""))
		t.postBody(token, textBody("hello"))
	}
	t.post(other, "hello")
}
