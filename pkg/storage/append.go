package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Post is a message to append.
type Post struct {
	Author chat.Author
	Text   string
	// Create allows the message to be the first of a new thread. Without it an
	// unknown thread is an error with code [chat.CodeNotFound].
	Create bool
	// Admit, if set, is asked before the message starts a new thread, when no
	// other writer can start it any more. Its error is returned as it is.
	Admit func() error
	// IfLast, unless empty, is the id that the thread's newest message must
	// have; another one is an error with code [chat.CodeConflict].
	IfLast string
}

// Receipt says what became of a Post.
type Receipt struct {
	Thread  chat.ThreadID
	Message chat.Message
	// Created reports whether the message started the thread.
	Created bool
	// Threads is how many threads there are now, when the message started one.
	Threads int
}

// Append adds a message to the thread and returns when it is durable: file
// synced, renamed into place, directory synced. In the same step it drops what
// the retention does not keep. An error means that nothing was acknowledged;
// the thread then still is as it was, or whole with the message in it.
// Contract: section 4.
//
// Besides those of [Post] the codes are [chat.CodeCorrupt], [chat.CodeThreadLimit]
// and [chat.CodeStorage].
func (s *Store) Append(ctx context.Context, id chat.ThreadID, post Post) (Receipt, error) {
	g, err := s.lockThread(ctx, id, s.opts.LockWait)
	if err != nil {
		return Receipt{}, err
	}
	receipt, err := s.appendAndUnlock(ctx, g, id, post)
	if err != nil {
		return Receipt{}, err
	}
	// The lock is not needed here: a later writer's sync covers this rename too.
	if err := s.settle(g.dir); err != nil {
		return Receipt{}, err
	}
	return receipt, nil
}

// appendAndUnlock lets go of the lock even if it panics: a daemon survives that,
// and the thread would be locked for every process until the daemon ends.
func (s *Store) appendAndUnlock(ctx context.Context, g *guard, id chat.ThreadID, post Post) (Receipt, error) {
	defer g.unlock()
	return s.appendLocked(ctx, g, id, post)
}

func (s *Store) appendLocked(ctx context.Context, g *guard, id chat.ThreadID, post Post) (Receipt, error) {
	old, known, err := s.readLocked(g, id)
	if err != nil {
		return Receipt{}, err
	}
	if err := s.admit(g, id, old, post); err != nil {
		return Receipt{}, err
	}
	message, err := s.newMessage(g, id, old, post)
	if err != nil {
		return Receipt{}, err
	}
	next, err := old.Append(id, message, s.now(), s.limits.Load().Retention)
	if err != nil {
		return Receipt{}, failure(err)
	}
	receipt := Receipt{Thread: id, Message: message, Created: old == nil}
	if receipt.Created {
		err = s.replace(g, id, next, identity{}, s.placeNew(ctx, g, &receipt.Threads))
	} else {
		err = s.replace(g, id, next, known.identity, g.dir.rename)
	}
	if err != nil {
		return Receipt{}, err
	}
	return receipt, nil
}

// admit checks the conditions of a post against the thread as it stands.
func (s *Store) admit(g *guard, id chat.ThreadID, old *chat.Thread, post Post) error {
	last, ok := old.Last()
	switch {
	case old == nil && (!post.Create || post.IfLast != ""):
		return notFound(id)
	case old == nil:
		return s.admitThread(g, post)
	case post.IfLast != "" && !ok:
		return chat.Errorf(chat.CodeConflict, "thread %s has no message, and so not %s", id, post.IfLast)
	case post.IfLast != "" && post.IfLast != last.ID:
		return chat.Errorf(chat.CodeConflict, "the last message of thread %s is %s by %s, not %s", id, last.ID, last.Author, post.IfLast)
	}
	return nil
}

// admitThread checks whether the post may start a thread.
func (s *Store) admitThread(g *guard, post Post) error {
	if post.Admit != nil {
		if err := post.Admit(); err != nil {
			return err
		}
	}
	// Counted again when the thread is put in place; this look only saves a
	// write that would be refused.
	_, err := s.checkRoom(g)
	return err
}

// checkRoom counts the threads and refuses a new one when the limit is reached
// (section 4).
func (s *Store) checkRoom(g *guard) (threads int, err error) {
	names, err := g.dir.names(isThreadName)
	if err != nil {
		return 0, failure(fmt.Errorf("counting threads: %w", err))
	}
	if len(names) >= s.limits.Load().Threads {
		return 0, chat.Errorf(chat.CodeThreadLimit, "there are %d threads, as many as this server keeps", len(names))
	}
	return len(names), nil
}

// placeNew renames a new thread into place under the lock that makes counting
// and renaming one step, so that two creators never exceed the limit together.
// It sets threads to how many there are then.
func (s *Store) placeNew(ctx context.Context, g *guard, threads *int) func(from, to string) error {
	return func(from, to string) error {
		unlock, err := s.lockShared(ctx, g.dir, creationByte)
		if err != nil {
			return err
		}
		defer unlock()
		others, err := s.checkRoom(g)
		if err != nil {
			return err
		}
		*threads = others + 1
		return g.dir.rename(from, to)
	}
}

func (s *Store) newMessage(g *guard, id chat.ThreadID, old *chat.Thread, post Post) (chat.Message, error) {
	var floor int64
	if old.Len() == 0 {
		marks, err := s.readMarks(g.dir)
		if err != nil {
			return chat.Message{}, err
		}
		floor = marks.floorOf(id)
	}
	m := chat.Message{Epoch: old.NextEpoch(s.now(), floor), Author: post.Author, Text: post.Text}
	for {
		var err error
		if m.ID, err = chat.NewID(m.Epoch, s.opts.Random); err != nil {
			return chat.Message{}, failure(err)
		}
		if !old.HasID(m.ID) {
			return m, nil
		}
	}
}

// replace writes the thread beside its file and puts it in place in one step.
// before is the identity of the file that it replaces.
func (s *Store) replace(g *guard, id chat.ThreadID, thread *chat.Thread, before identity, place func(from, to string) error) error {
	name, data := fileName(id), thread.Encode()
	if len(data) > maxFileSize {
		return failure(fmt.Errorf("thread %s would be too large: %w", id, errTooLarge))
	}
	temp, file, err := s.writeBeside(g.dir, name, data, before)
	if err != nil {
		return err
	}
	st := s.newState(thread, true, file)
	s.cache.expect(id, st)
	defer s.cache.unexpect(id)
	if err := s.putInPlace(g.dir, temp, name, place); err != nil {
		return err
	}
	s.cache.put(id, st)
	return nil
}

// replaceFile writes data to a new file, syncs it and renames it to name. The
// rename is durable once the directory is synced, which is left to the caller.
func (s *Store) replaceFile(dir *directory, name string, data []byte) error {
	temp, _, err := s.writeBeside(dir, name, data, identity{})
	if err != nil {
		return err
	}
	return s.putInPlace(dir, temp, name, dir.rename)
}

// writeBeside writes and syncs a new file that is to be renamed to name, and
// returns its name and the identity that it keeps.
func (s *Store) writeBeside(dir *directory, name string, data []byte, before identity) (temp string, file identity, err error) {
	temp = tempName(name)
	if file, err = s.writeTemp(dir, temp, data, before); err != nil {
		return "", identity{}, s.discard(dir, temp, name, err)
	}
	return temp, file, nil
}

func (s *Store) putInPlace(dir *directory, temp, name string, place func(from, to string) error) error {
	err := s.step("rename")
	if err == nil {
		err = place(temp, name)
	}
	if err != nil {
		return s.discard(dir, temp, name, err)
	}
	return nil
}

// discard removes a temporary file and returns why it did not become name.
func (*Store) discard(dir *directory, temp, name string, err error) error {
	_ = dir.remove(temp) // best effort: the sweep removes what stays behind
	if _, coded := errors.AsType[*chat.Error](err); coded {
		return err
	}
	return failure(fmt.Errorf("writing %s: %w", name, err))
}

// tempName returns a fresh name for a file that will be renamed to name.
func tempName(name string) string { return "." + name + "." + rand.Text() + tempSuffix }

// writeTemp writes and syncs a new file and returns the identity that it keeps
// when it is renamed.
func (s *Store) writeTemp(dir *directory, name string, data []byte, before identity) (file identity, err error) {
	if err := s.step("create"); err != nil {
		return identity{}, err
	}
	fd, err := dir.openAt(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return identity{}, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := s.step("write"); err != nil {
		return identity{}, err
	}
	if err := writeAll(fd, data); err != nil {
		return identity{}, err
	}
	if file, err = s.dress(dir, name, fd, before); err != nil {
		return identity{}, err
	}
	if err := s.step("sync file"); err != nil {
		return identity{}, err
	}
	return file, s.timed(func() error { return unix.Fsync(fd) })
}

// dress gives a new file the mode and group that every writer of the directory
// needs, whatever this process's umask and groups, and a time after its
// predecessor's.
func (s *Store) dress(dir *directory, name string, fd int, before identity) (identity, error) {
	if err := s.step("set mode"); err != nil {
		return identity{}, err
	}
	if err := unix.Fchmod(fd, fileMode); err != nil {
		return identity{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return identity{}, err
	}
	if st.Gid != dir.gid {
		if err := unix.Fchown(fd, -1, int(dir.gid)); err != nil {
			s.warnings.once(s.opts.Logger, "a thread file cannot be given the group of its directory; others of that group cannot write to it", "gid", dir.gid, "error", err)
		}
	}
	file := identityOf(&st)
	if file.mtime > before.mtime {
		return file, nil
	}
	file.mtime = before.mtime + 1000 // 1 µs, which every file system in use can store
	return file, dir.setModified(name, file.mtime)
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
