package storage

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// opened counts how often files of a directory were opened while f ran, as the
// kernel saw it.
func opened(t *testing.T, dir string, f func()) int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	f()
	buffer := make([]byte, 1<<16)
	n, err := unix.Read(fd, buffer)
	if err == unix.EAGAIN { //nolint:errorlint // a system call returns the bare number
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return n / unix.SizeofInotifyEvent
}

// Ensures that a poll of an unchanged thread opens no file, that one of an
// unknown thread neither opens nor makes any, and that a change by another
// process is seen at once.
func TestPoll_OpensNothingWhenUnchanged(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	for i := range 60 {
		mustPost(t, s, testThread, fmt.Sprint(i))
	}
	poll := func(since int64) chat.Page {
		page, err := s.Poll(testThread, since)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	tail := poll(0).Cursor
	n := opened(t, s.path, func() {
		for range 100 {
			poll(0)
			poll(tail)
			if _, err := s.Poll("df0790f236013511", 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 {
		t.Errorf("unchanged polls opened %d files", n)
	}
	if n := opened(t, s.path, func() { poll(1) }); n == 0 {
		t.Error("the measure does not see an open")
	}
	other := Open(testOptions(s.opts.Root))
	defer func() { _ = other.Close() }()
	mustPost(t, other, testThread, "from elsewhere")
	if messages := poll(tail).Messages(); len(messages) != 1 || messages[0].Text != "from elsewhere" {
		t.Errorf("after another writer: %v", messages)
	}
}

// Ensures that who sees a new file before its writer is back from the rename, as
// a watcher of the directory does, knows it without opening it, and that a
// rename that fails is not taken for done.
func TestPoll_KnowsAFileAsSoonAsItStands(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "first")
	g, err := s.lockThread(t.Context(), testThread, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer g.unlock()
	old, known, err := s.readLocked(g, testThread)
	if err != nil {
		t.Fatal(err)
	}
	next, err := old.Append(testThread, chat.Message{ID: "MSG-1", Epoch: old.LastEpoch() + 1, Author: chat.Hermes, Text: "second"}, s.now(), s.limits.Load().Retention)
	if err != nil {
		t.Fatal(err)
	}
	messages := func() (count int) {
		n := opened(t, s.path, func() {
			st, err := s.load(testThread)
			if err != nil {
				t.Fatal(err)
			}
			count = st.tail.Len()
		})
		if n != 0 {
			t.Errorf("%d files were opened", n)
		}
		return count
	}
	err = s.replace(g, testThread, next, known.identity, func(string, string) error { return unix.EIO })
	if got := messages(); err == nil || got != 1 || len(s.cache.expected) != 0 {
		t.Errorf("after a failure: %v, %d messages, %d states expected", err, got, len(s.cache.expected))
	}
	err = s.replace(g, testThread, next, known.identity, func(from, to string) error {
		if err := g.dir.rename(from, to); err != nil {
			return err
		}
		if got := messages(); got != 2 {
			t.Errorf("%d messages before the writer is back, want 2", got)
		}
		return nil
	})
	if got := messages(); err != nil || got != 2 || len(s.cache.expected) != 0 {
		t.Errorf("after the rename: %v, %d messages, %d states expected", err, got, len(s.cache.expected))
	}
}

// Ensures that polls of unknown threads leave nothing behind, on disk or in
// memory.
func TestPoll_CreatesNothing(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	for i := range 10000 {
		page, err := s.Poll(chat.Token(fmt.Sprint(i)).Thread(), 42)
		if err != nil || !page.Empty() || page.Cursor != 42 || page.Awaiting {
			t.Fatalf("page = %+v, %v", page, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.opts.Root, "spaces")); !os.IsNotExist(err) {
		t.Errorf("polls made a directory: %v", err)
	}
	if len(s.cache.states) != 0 {
		t.Errorf("%d states are remembered", len(s.cache.states))
	}
}

// Ensures that a page that lies before the cached tail is read from the file.
func TestPoll_OldPagesOfALongThread(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	for i := range 173 {
		mustPost(t, s, testThread, fmt.Sprint(i))
	}
	n, cursor := 0, int64(1)
	for truncated := true; truncated; {
		page, err := s.Poll(testThread, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages() {
			if m.Text != fmt.Sprint(n) {
				t.Fatalf("message %d is %q", n, m.Text)
			}
			n++
		}
		cursor, truncated = page.Cursor, page.Truncated
	}
	if n != 173 {
		t.Errorf("%d messages, want 173", n)
	}
}

// corruptions are contents that are no sound thread.
func corruptions() map[string]string {
	return map[string]string{
		"empty": "", "half": `{"thread":"60e05bd1b195af2f","messages":[{"id":"MSG`,
		"zeros": strings.Repeat("\x00", 4096), "foreign": `{"thread":"df0790f236013511","messages":[]}`,
	}
}

// Ensures that a corrupt thread is reported by whatever touches it and stays as
// it is, byte for byte, while other threads work (plur-ai/plur#795).
func TestCorrupt_IsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for name, content := range corruptions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t)
			mustPost(t, s, "df0790f236013511", "sound")
			if err := os.WriteFile(s.filePath(testThread), []byte(content), 0o660); err != nil {
				t.Fatal(err)
			}
			before := sha256.Sum256([]byte(content))
			for range 2 { // the second time from the cache
				_, pollErr := s.Poll(testThread, 0)
				_, postErr := s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "x", Create: true})
				_, replyErr := s.Append(t.Context(), testThread, Post{Author: chat.Hermes, Text: "x"})
				_, _, summaryErr := s.Summary(testThread)
				for _, err := range []error{pollErr, postErr, replyErr, summaryErr} {
					if chat.CodeOf(err) != chat.CodeCorrupt || !strings.Contains(err.Error(), s.filePath(testThread)) {
						t.Errorf("error = %v, want corrupt with the file's name", err)
					}
					if n := strings.Count(err.Error(), "corrupt"); n != 1 {
						t.Errorf("error %q says it %d times", err, n)
					}
				}
			}
			s.limits.Load().Retention.MaxAge = time.Nanosecond
			report, err := s.Sweep(t.Context(), SweepOptions{})
			if err != nil || len(report.Corrupt) != 1 || report.Corrupt[0].Thread != testThread {
				t.Errorf("sweep = %+v, %v", report, err)
			}
			data, err := os.ReadFile(s.filePath(testThread))
			if err != nil || sha256.Sum256(data) != before {
				t.Errorf("the file was changed: %v", err)
			}
			mustPost(t, s, "df0790f236013511", "still works")
			if waiting, corrupt, err := s.Awaiting(); err != nil || len(waiting) != 1 || len(corrupt) != 1 {
				t.Errorf("awaiting = %v, %v, %v", waiting, corrupt, err)
			}
		})
	}
}

// Ensures that a file which was cut while it was read is never taken for the one
// whose size it had before.
func TestReadRegular_ShortRead(t *testing.T) {
	t.Parallel()
	const path = "/sys/kernel/uevent_seqnum" // holds less than the size it states
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("%s: %v", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	data, file, err := readRegular(fd)
	if err != nil || file.size != int64(len(data)) {
		t.Errorf("%d bytes of a file of %d, %v", len(data), file.size, err)
	}
}

// Ensures that links, pipes, directories and foreign names in the thread
// directory are no threads, are neither followed nor waited for, and are never
// replaced.
func TestForeignEntries_AreNoThreads(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "sound")
	secret := filepath.Join(t.TempDir(), "secret")
	entries := map[chat.ThreadID]func(path string) error{
		"0000000000000001": func(path string) error { return os.Symlink(s.filePath(testThread), path) },
		"0000000000000002": func(path string) error { return os.Symlink(secret, path) },
		"0000000000000003": func(path string) error { return unix.Mkfifo(path, 0o660) },
		"0000000000000004": func(path string) error { return os.Mkdir(path, 0o770) },
	}
	for id, make := range entries {
		if err := make(s.filePath(id)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"README.json", "60E05BD1B195AF2F.json", "60e05bd1b195af2f.json.bak", "x"} {
		if err := os.WriteFile(filepath.Join(s.path, name), []byte("x"), 0o660); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.Threads(); err != nil || len(ids) != 1 {
		t.Errorf("threads = %v, %v", ids, err)
	}
	for id := range entries {
		if _, err := s.Poll(id, 0); chat.CodeOf(err) != chat.CodeCorrupt {
			t.Errorf("poll of %s = %v, want corrupt", id, err)
		}
		if _, err := s.Thread(id); chat.CodeOf(err) != chat.CodeCorrupt {
			t.Errorf("reading all of %s = %v, want corrupt", id, err)
		}
		if _, err := s.Append(t.Context(), id, Post{Author: chat.Operator, Text: "x", Create: true}); chat.CodeOf(err) != chat.CodeCorrupt {
			t.Errorf("post to %s = %v, want corrupt", id, err)
		}
		before, _ := os.Lstat(s.filePath(id))
		if before.Mode().IsRegular() {
			t.Errorf("%s was replaced", id)
		}
	}
	s.limits.Load().Retention.MaxAge = time.Hour
	if _, err := s.Sweep(t.Context(), SweepOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(secret); !os.IsNotExist(err) {
		t.Errorf("a link was followed: %v", err)
	}
}

// Ensures that the cache stays within its budget and answers all the same.
func TestCache_KeepsToItsBudget(t *testing.T) {
	t.Parallel()
	const budget = 20000
	s := mustOpen(t, func(o *Options) { o.CacheBytes = budget })
	for round := range 2 {
		for i := range 100 {
			id := chat.Token(fmt.Sprint(i)).Thread()
			if round == 0 {
				mustPost(t, s, id, fmt.Sprint("thread ", i))
			}
			page, err := s.Poll(id, 0)
			if err != nil || page.Messages()[0].Text != fmt.Sprint("thread ", i) {
				t.Fatalf("thread %d: %v", i, err)
			}
			if s.cache.size > budget {
				t.Fatalf("the cache holds %d bytes", s.cache.size)
			}
		}
	}
	if n := len(s.cache.states); n < 10 || n > 60 {
		t.Errorf("%d threads are cached", n)
	}
}

// Ensures that threads wait in the order in which they began to.
func TestAwaiting_LongestFirst(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	ids := []chat.ThreadID{"00000000000000aa", "00000000000000bb", "00000000000000cc"}
	for _, id := range ids {
		mustPost(t, s, id, "first")
		clock.t = clock.t.Add(time.Minute)
	}
	if _, err := s.Append(t.Context(), ids[0], Post{Author: chat.Hermes, Text: "answer"}); err != nil {
		t.Fatal(err)
	}
	clock.t = clock.t.Add(time.Minute)
	since := mustPost(t, s, ids[0], "again").Message.Epoch
	clock.t = clock.t.Add(time.Minute)
	mustPost(t, s, ids[0], "and again")
	if _, err := s.Append(t.Context(), ids[2], Post{Author: chat.Hermes, Text: "answer"}); err != nil {
		t.Fatal(err)
	}
	waiting, _, err := s.Awaiting()
	if err != nil || len(waiting) != 2 || waiting[0].Thread != ids[1] {
		t.Fatalf("awaiting = %+v, %v", waiting, err)
	}
	if w := waiting[1]; w.Thread != ids[0] || w.Unanswered != 2 || w.Messages != 4 || w.Since != since || w.Last.Text != "and again" {
		t.Errorf("summary = %+v", w)
	}
}

// Ensures that a thread that the system does not let be read keeps no other from
// being listed, and that its error names the file.
func TestAwaiting_UnreadableThread(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "one")
	mustPost(t, s, "df0790f236013511", "two")
	s.cache.drop(testThread)
	file, err := os.OpenFile(s.filePath(testThread), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	// A lease stands in for another owner, whom root would not mind.
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("the file system has no leases: %v", err)
	}
	waiting, faults, err := s.Awaiting()
	if err != nil || len(waiting) != 1 || len(faults) != 1 {
		t.Fatalf("awaiting = %+v, %+v, %v", waiting, faults, err)
	}
	if f := faults[0]; f.Thread != testThread || f.IsCorrupt() || !strings.Contains(f.Err.Error(), s.filePath(testThread)) {
		t.Errorf("fault = %+v", f)
	}
}

// Ensures that a file that does not fit into memory ends no process, however
// often it is met (https://github.com/marktext/marktext/issues/4852).
func TestCorrupt_TooLarge(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, "df0790f236013511", "sound")
	mustPost(t, s, testThread, "x")
	if err := os.Truncate(s.filePath(testThread), 1<<40); err != nil {
		t.Skip("the file system has no files of that size")
	}
	_, pollErr := s.Poll(testThread, 0)
	_, postErr := s.Append(t.Context(), testThread, Post{Author: chat.Operator, Text: "x"})
	for _, err := range []error{pollErr, postErr} {
		if chat.CodeOf(err) != chat.CodeCorrupt || !strings.Contains(err.Error(), s.filePath(testThread)) {
			t.Errorf("error = %v, want corrupt with the file's name", err)
		}
	}
	if report, err := s.Sweep(t.Context(), SweepOptions{}); err != nil || len(report.Corrupt) != 1 {
		t.Errorf("sweep = %+v, %v", report, err)
	}
	if _, err := s.Reset(t.Context(), testThread); err != nil {
		t.Errorf("Reset = %v", err)
	}
}

// Ensures that a file that gave fewer bytes than it promised is not taken for
// the one that it was.
func TestReadRegular_EndsTooEarly(t *testing.T) {
	t.Parallel()
	// Files of sysfs promise a page.
	file, err := os.Open("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = file.Close() }()
	data, got, err := readRegular(int(file.Fd()))
	if err != nil || got.size != int64(len(data)) {
		t.Errorf("%d bytes, size %d, %v", len(data), got.size, err)
	}
}
