package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Reset moves the thread's file aside, whatever it holds, so that the thread
// starts anew with its next message. The file is kept: Reset returns its new
// path, in a directory of its own, under a name that holds the thread's id and
// the time. An unknown thread is an error with code [chat.CodeNotFound].
// Contract: section 8.
func (s *Store) Reset(ctx context.Context, id chat.ThreadID) (string, error) {
	// Without this look an unknown thread would make the directory.
	exists, err := s.Exists(id)
	if err != nil {
		return "", err
	}
	if !exists {
		return "", notFound(id)
	}
	g, err := s.lockThread(ctx, id, s.opts.LockWait)
	if err != nil {
		return "", err
	}
	defer g.unlock()
	var st unix.Stat_t
	if err := g.dir.stat(fileName(id), &st); err != nil {
		if isMissing(err) {
			return "", notFound(id)
		}
		return "", failure(fmt.Errorf("resetting a thread: %w", err))
	}
	if err := s.mark(ctx, g, id, s.lastKnownEpoch(g, id, &st)); err != nil {
		return "", err
	}
	return s.moveAside(g, id)
}

func notFound(id chat.ThreadID) error {
	return chat.Errorf(chat.CodeNotFound, "there is no thread %s", id)
}

// lastKnownEpoch returns an epoch, in milliseconds, at or behind which every
// cursor of the thread lies. A corrupt file, which has the attributes st, may
// hold no epoch any more; then the time at which it was written stands in. It is
// searched for epochs all the same; what looks like one but lies in the future is
// not believed.
func (s *Store) lastKnownEpoch(g *guard, id chat.ThreadID, st *unix.Stat_t) int64 {
	thread, _, err := s.readLocked(g, id)
	if err == nil {
		return thread.LastEpoch()
	}
	last := min(st.Mtim.Nano()/int64(time.Millisecond), s.now())
	data, err := g.dir.read(fileName(id))
	if err != nil {
		return last
	}
	// An unescaped quote cannot stand inside a JSON string, so this finds members
	// and not what somebody wrote.
	member := regexp.MustCompile(`[{,]"epoch":([0-9]{1,15})`)
	credible := s.now() + chat.MaxClockSkew.Milliseconds()
	for _, match := range member.FindAllSubmatch(data, -1) {
		if epoch, err := strconv.ParseInt(string(match[1]), 10, 64); err == nil && epoch <= credible {
			last = max(last, epoch)
		}
	}
	return last
}

func (s *Store) moveAside(g *guard, id chat.ThreadID) (string, error) {
	aside := filepath.Join(filepath.Dir(s.path), "chat-reset")
	if err := s.makeDirs(aside); err != nil {
		return "", err
	}
	target, err := openDir(aside)
	if err != nil {
		return "", failure(fmt.Errorf("opening the directory of reset threads: %w", err))
	}
	defer func() { _ = target.Close() }()
	name, err := s.freeName(target, id)
	if err != nil {
		return "", err
	}
	if err := s.step("move aside"); err != nil {
		return "", failure(err)
	}
	if err := unix.Renameat(int(g.dir.file.Fd()), fileName(id), int(target.Fd()), name); err != nil {
		return "", failure(fmt.Errorf("moving thread %s aside: %w", id, err))
	}
	s.cache.drop(id)
	// The new name first: at no moment of a power loss is the file in neither.
	if err := errors.Join(s.directorySync()(target), s.settle(g.dir)); err != nil {
		return "", failure(fmt.Errorf("syncing a reset: %w", err))
	}
	return filepath.Join(aside, name), nil
}

// freeName returns a name that nothing has in the directory of reset threads.
// The thread's lock keeps others from taking it.
func (s *Store) freeName(dir *os.File, id chat.ThreadID) (string, error) {
	stem := string(id) + s.opts.Now().UTC().Format(".20060102T150405.000Z")
	name := stem + fileSuffix
	for n := 2; ; n++ {
		var st unix.Stat_t
		err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if isMissing(err) {
			return name, nil
		}
		if err != nil {
			return "", failure(fmt.Errorf("naming a reset thread: %w", err))
		}
		name = fmt.Sprintf("%s-%d%s", stem, n, fileSuffix)
	}
}
