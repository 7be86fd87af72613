package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/permission"
)

// Survey is what a look at all threads has found.
type Survey struct {
	// Threads is how many there are, Bytes the size of their files.
	Threads int
	Bytes   int64
	// Newest is the greatest epoch of any message in milliseconds and
	// NewestThread the thread that has it; 0 and "" where there is no message.
	Newest       int64
	NewestThread chat.ThreadID
	// Faults are the threads that could not be read.
	Faults []Fault
	// Closed are the threads whose file the group of the directory may not read,
	// so that they are lost to others who share it.
	Closed []chat.ThreadID
}

// Survey looks at every thread and changes nothing, not even beside writers.
func (s *Store) Survey(ctx context.Context) (Survey, error) {
	var survey Survey
	ids, err := s.Threads()
	if err != nil || len(ids) == 0 {
		return survey, err
	}
	var dir unix.Stat_t
	if err := unix.Stat(s.path, &dir); err != nil {
		return survey, failure(&fs.PathError{Op: "stat", Path: s.path, Err: err})
	}
	survey.Threads = len(ids)
	for _, id := range ids {
		if ctx.Err() != nil {
			return survey, context.Cause(ctx)
		}
		s.surveyThread(&survey, id, dir.Gid)
	}
	return survey, nil
}

func (s *Store) surveyThread(survey *Survey, id chat.ThreadID, gid uint32) {
	var st unix.Stat_t
	if unix.Lstat(s.filePath(id), &st) == nil {
		survey.Bytes += st.Size
		if isClosed(&st, gid) {
			survey.Closed = append(survey.Closed, id)
		}
	}
	summary, ok, err := s.Summary(id)
	if err != nil {
		survey.Faults = append(survey.Faults, Fault{Thread: id, Err: err})
	}
	if ok && summary.Last.Epoch > survey.Newest {
		survey.Newest, survey.NewestThread = summary.Last.Epoch, id
	}
}

// isClosed reports whether the group may not read a file.
func isClosed(st *unix.Stat_t, gid uint32) bool { return st.Gid != gid || st.Mode&unix.S_IRGRP == 0 }

// CheckAccess reports whether this process may read and write threads, or make
// their directory where it is missing. It asks the kernel and touches nothing.
// The error is an [fs.PathError] with the path that refuses.
func (s *Store) CheckAccess() error {
	if err := permission.CheckDir(s.path, permission.Read|permission.Write|permission.Search); err != nil {
		return err
	}
	err := permission.Check(s.path+"/"+lockName, permission.Read|permission.Write)
	if isMissing(err) {
		return nil
	}
	return err
}

// TryWrite reports whether a file can be written, locked and synced in the
// directory now. The file has no name and leaves nothing behind. The error is
// [errors.ErrUnsupported] where the file system has no such files.
func TryWrite(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, fileMode)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		return errors.ErrUnsupported
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: dir, Err: err}
	}
	file := os.NewFile(uintptr(fd), dir)
	defer func() { _ = file.Close() }()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		return &fs.PathError{Op: "lock", Path: dir, Err: err}
	}
	const page = 4096
	if _, err := file.Write(make([]byte, page)); err != nil {
		return err
	}
	return file.Sync()
}

// SyncsDirectories reports whether the file system can sync the directory, as
// the promise of [Store.Append] needs.
func SyncsDirectories(dir string) (bool, error) {
	file, err := openDir(dir)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	err = file.Sync()
	if isUnsupported(err) {
		return false, nil
	}
	return err == nil, err
}

// MessageBytes is the most that a message with a text of that many code points
// takes on disk: JSON needs six bytes for a control character, and the other
// members are short.
func MessageBytes(codePoints int) int64 {
	const perCodePoint, members = 6, 256
	return int64(codePoints)*perCodePoint + members
}
