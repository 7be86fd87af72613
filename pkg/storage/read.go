package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Poll returns the page of the thread after since, in milliseconds: what a poll
// answers with. An unknown thread is an empty page, and nothing is made on
// disk. A file that is no sound thread is an error with code
// [chat.CodeCorrupt]. Contract: section 5.
func (s *Store) Poll(id chat.ThreadID, since int64) (chat.Page, error) {
	st, err := s.load(id)
	if err != nil {
		return chat.Page{}, err
	}
	if st == nil {
		page, _ := (*chat.Thread)(nil).Page(id, since, s.limits.Load().Page)
		return page, nil
	}
	if page, ok := st.tail.Page(id, since, s.limits.Load().Page); ok {
		return page, nil
	}
	thread, err := s.Thread(id)
	if err != nil {
		return chat.Page{}, err
	}
	page, _ := thread.Page(id, since, s.limits.Load().Page)
	return page, nil
}

// Thread returns the whole thread, or nil when there is none. Errors are those
// of [Store.Poll].
func (s *Store) Thread(id chat.ThreadID) (*chat.Thread, error) {
	thread, _, err := s.readPath(id)
	return thread, err
}

// Exists reports whether the thread has a file, sound or not.
func (s *Store) Exists(id chat.ThreadID) (bool, error) {
	_, err := os.Lstat(s.filePath(id))
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, failure(fmt.Errorf("looking for a thread: %w", err))
	}
	return true, nil
}

// PostsAfter returns the epochs in milliseconds of what browsers wrote to the
// thread after epoch, oldest first; none for an unknown thread.
func (s *Store) PostsAfter(id chat.ThreadID, epoch int64) ([]int64, error) {
	st, err := s.load(id)
	if err != nil || st == nil {
		return nil, err
	}
	return st.tail.PostsAfter(epoch), nil
}

func (s *Store) filePath(id chat.ThreadID) string { return s.path + "/" + string(id) + fileSuffix }

// load returns what is known of the thread's file as it stands now, nil for an
// unknown thread. A file that has not changed is not opened.
func (s *Store) load(id chat.ThreadID) (*state, error) {
	var st unix.Stat_t
	if err := unix.Lstat(s.filePath(id), &st); err != nil {
		return nil, s.statError(id, err)
	}
	if !isRegular(&st) {
		return nil, s.corrupt(id, errNotRegular)
	}
	if known := s.cache.get(id, identityOf(&st)); known != nil {
		return known, known.corrupt
	}
	_, known, err := s.readPath(id)
	return known, err
}

func (s *Store) statError(id chat.ThreadID, err error) error {
	if isMissing(err) {
		s.cache.drop(id)
		return nil
	}
	return s.unreadable(id, "open", err)
}

// unreadable names the path, so that the operator sees whose file it is that
// this process could not read.
func (s *Store) unreadable(id chat.ThreadID, op string, err error) error {
	return failure(fmt.Errorf("reading a thread: %w", &fs.PathError{Op: op, Path: s.filePath(id), Err: err}))
}

// readPath reads the thread's file by its path.
func (s *Store) readPath(id chat.ThreadID) (*chat.Thread, *state, error) {
	fd, err := unix.Open(s.filePath(id), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	return s.readFrom(id, fd, err)
}

// readLocked reads the thread's file in the directory of a held lock.
func (s *Store) readLocked(g *guard, id chat.ThreadID) (*chat.Thread, *state, error) {
	fd, err := g.dir.openAt(fileName(id), unix.O_RDONLY)
	return s.readFrom(id, fd, err)
}

// readFrom takes the outcome of opening the thread's file and closes it.
func (s *Store) readFrom(id chat.ThreadID, fd int, err error) (*chat.Thread, *state, error) {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, nil, s.corrupt(id, errNotRegular)
	}
	if err != nil {
		return nil, nil, s.statError(id, err)
	}
	defer func() { _ = unix.Close(fd) }()
	data, file, err := readRegular(fd)
	if errors.Is(err, errNotRegular) || errors.Is(err, errTooLarge) {
		return nil, nil, s.corrupt(id, err)
	}
	if err != nil {
		return nil, nil, s.unreadable(id, "read", err)
	}
	return s.decode(id, data, file)
}

// decode returns the thread in data and remembers it. Bytes that this program
// wrote and still knows by their file's identity are not decoded again.
func (s *Store) decode(id chat.ThreadID, data []byte, file identity) (*chat.Thread, *state, error) {
	if known := s.cache.get(id, file); known != nil {
		if known.corrupt != nil {
			return nil, known, known.corrupt
		}
		if known.canonical {
			return known.tail.Refill(data), known, nil
		}
	}
	thread, canonical, err := chat.Parse(id, data)
	if err != nil {
		st := &state{identity: file, corrupt: s.corrupt(id, err)}
		s.cache.put(id, st)
		return nil, st, st.corrupt
	}
	return thread, s.remember(id, thread, canonical, file), nil
}

func (s *Store) remember(id chat.ThreadID, thread *chat.Thread, canonical bool, file identity) *state {
	st := s.newState(thread, canonical, file)
	s.cache.put(id, st)
	return st
}

func (s *Store) newState(thread *chat.Thread, canonical bool, file identity) *state {
	return &state{identity: file, tail: thread.Tail(s.limits.Load().Page), canonical: canonical}
}

// corrupt names the file for the operator; the code tells the browser.
func (s *Store) corrupt(id chat.ThreadID, reason error) error {
	return chat.Errorf(chat.CodeCorrupt, "thread %s is corrupt: %s: %w", id, filepath.Join(s.path, fileName(id)), reason)
}
