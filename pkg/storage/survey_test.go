package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Ensures that a survey counts every thread and its bytes, finds the newest
// message, and names what cannot be read or is closed to the group.
func TestSurvey(t *testing.T) {
	t.Parallel()
	opts := testOptions(t.TempDir())
	s := Open(opts)
	if survey, err := s.Survey(t.Context()); err != nil || survey.Threads != 0 {
		t.Errorf("of nothing: %+v, %v", survey, err)
	}
	mustPost(t, s, testThread, "a")
	other := chat.Token("other").Thread()
	mustPost(t, s, other, "b")
	newest := mustPost(t, s, other, "c")
	corrupt := chat.Token("corrupt").Thread()
	if err := errors.Join(os.WriteFile(s.filePath(corrupt), []byte("{"), 0o660), os.Chmod(s.filePath(corrupt), 0o600)); err != nil {
		t.Fatal(err)
	}
	survey, err := s.Survey(t.Context())
	if err != nil || survey.Threads != 3 || survey.NewestThread != other || survey.Newest != newest.Message.Epoch {
		t.Errorf("survey = %+v, %v", survey, err)
	}
	if len(survey.Faults) != 1 || survey.Faults[0].Thread != corrupt || !survey.Faults[0].IsCorrupt() {
		t.Errorf("faults = %+v", survey.Faults)
	}
	if len(survey.Closed) != 1 || survey.Closed[0] != corrupt {
		t.Errorf("closed = %v", survey.Closed)
	}
	var bytes int64
	for _, id := range []chat.ThreadID{testThread, other, corrupt} {
		info, err := os.Stat(s.filePath(id))
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	if survey.Bytes != bytes {
		t.Errorf("%d bytes, want %d", survey.Bytes, bytes)
	}
}

// Ensures that no message that the limits allow takes more room than is reckoned
// with.
func TestMessageBytes(t *testing.T) {
	t.Parallel()
	for _, char := range []string{"\x01", "x", "界", "😀", `"`} {
		s := Open(testOptions(t.TempDir()))
		text := ""
		for range 100 {
			text += char
		}
		mustPost(t, s, testThread, text)
		info, err := os.Stat(s.filePath(testThread))
		if err != nil || info.Size() > MessageBytes(100) {
			t.Errorf("%q: %d bytes, want at most %d; %v", char, info.Size(), MessageBytes(100), err)
		}
	}
}

// Ensures that a trial of writing leaves nothing, not even a time, and fails where
// nothing can be written.
func TestTryWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := TryWrite(dir); err != nil {
		t.Errorf("TryWrite = %v", err)
	}
	after, err := os.Stat(dir)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the directory changed: %v, %v", after.ModTime(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	// Root is told that there are no such files, and others that they may not.
	if err := TryWrite("/proc"); !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("TryWrite(/proc) = %v", err)
	}
	if err := TryWrite(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("TryWrite of nothing = %v", err)
	}
}

// Ensures that what is not of this host, or lost with its power, is known by name.
func TestFileSystemOf(t *testing.T) {
	t.Parallel()
	for magic, want := range map[int64]FileSystem{
		unix.NFS_SUPER_MAGIC:  {Name: "nfs", IsRemote: true},
		unix.SMB2_SUPER_MAGIC: {Name: "smb", IsRemote: true},
		unix.FUSE_SUPER_MAGIC: {Name: "fuse", IsRemote: true},
		unix.TMPFS_MAGIC:      {Name: "tmpfs", IsMemory: true},
		unix.EXT4_SUPER_MAGIC: {},
	} {
		if got := kindOf(magic); got != want {
			t.Errorf("kindOf(%#x) = %+v, want %+v", magic, got, want)
		}
	}
	st := unix.Statfs_t{Bavail: 3, Bfree: 5, Blocks: 7, Frsize: 10, Bsize: 100, Files: 11, Ffree: 13}
	if got, want := fileSystem(&st), (FileSystem{Free: 30, Inodes: 11, FreeInodes: 13}); got != want {
		t.Errorf("the room is %+v, want %+v", got, want)
	}
	if f, err := FileSystemOf(t.TempDir()); err != nil || f.Free <= 0 {
		t.Errorf("FileSystemOf = %+v, %v", f, err)
	}
	if _, err := FileSystemOf("/nonexistent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FileSystemOf of nothing = %v", err)
	}
}

// Ensures that inotify's limits are named, and that a directory is watched where
// they allow it.
func TestTryWatch(t *testing.T) {
	t.Parallel()
	if err := TryWatch(t.TempDir()); err != nil {
		t.Errorf("TryWatch = %v", err)
	}
	refused, ok := errors.AsType[*WatchError](TryWatch("/nonexistent"))
	if !ok || refused.Sysctl != "" || !errors.Is(refused, fs.ErrNotExist) {
		t.Errorf("TryWatch of nothing = %v", refused)
	}
	if got := watchError(unix.ENOSPC).Sysctl; got != "fs.inotify.max_user_watches" {
		t.Errorf("sysctl = %s", got)
	}
	if got := watchError(unix.EMFILE).Sysctl; got != "fs.inotify.max_user_instances" {
		t.Errorf("sysctl = %s", got)
	}
}

// Ensures that a file counts as closed to the group when the group may not read it,
// or when it is another group's.
func TestIsClosed(t *testing.T) {
	t.Parallel()
	for want, st := range map[bool]unix.Stat_t{false: {Gid: 1, Mode: 0o640}, true: {Gid: 2, Mode: 0o640}} {
		if got := isClosed(&st, 1); got != want {
			t.Errorf("group %d, mode %o: closed is %t", st.Gid, st.Mode, got)
		}
	}
	if !isClosed(&unix.Stat_t{Gid: 1, Mode: 0o604}, 1) {
		t.Error("a file that the group may not read is open")
	}
}

// Ensures that a pipe in the place of the thread directory is an error, and that
// nobody waits for its writer.
func TestStore_PipeInPlaceOfTheDirectory(t *testing.T) {
	t.Parallel()
	s := Open(testOptions(t.TempDir()))
	if err := os.MkdirAll(filepath.Dir(s.Path()), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(s.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Threads(); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("threads: %v", err)
	}
	if _, err := SyncsDirectories(s.Path()); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("syncs: %v", err)
	}
	if err := s.Probe(); err == nil {
		t.Error("a probe succeeds")
	}
}
