package storage

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

// Locks are bytes of the lock file, taken as open file description locks: they
// belong to whoever opened the file, end with the process however it dies, and
// the file under them is never replaced. Each thread has a byte of its own.
const (
	creationByte int64 = 0 // making a thread: counting and renaming are one step
	marksByte    int64 = 1
	firstThread  int64 = 16
)

// threadByte spreads the 64-bit thread ids over the 63-bit file offsets. Four
// ids share a byte; threads that meet there merely take turns.
func threadByte(id chat.ThreadID) int64 {
	n, err := strconv.ParseUint(string(id), 16, 64)
	if err != nil {
		panic(fmt.Sprintf("storage: %q is not a thread id", id))
	}
	return firstThread + int64(n>>2)
}

// guard is a held lock of a thread, in a directory that was current when it was
// taken.
type guard struct {
	dir    *directory
	unlock func()
}

// lockThread takes the thread's lock and waits for it at most for the given
// time.
func (s *Store) lockThread(ctx context.Context, id chat.ThreadID, wait time.Duration) (*guard, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errLockWait)
	defer cancel()
	for {
		dir, err := s.writableDir()
		if err != nil {
			return nil, err
		}
		unlock, err := s.lockByte(ctx, dir, threadByte(id))
		if err != nil {
			return nil, err
		}
		if dir.isCurrent() {
			return &guard{dir: dir, unlock: unlock}, nil
		}
		unlock()
	}
}

// lockByte takes one byte of the directory's lock file, first among this
// process's goroutines and then among processes.
func (s *Store) lockByte(ctx context.Context, dir *directory, offset int64) (unlock func(), err error) {
	leave, err := s.local.lock(ctx, offset)
	if err != nil {
		return nil, failure(err)
	}
	if err := dir.lockRange(ctx, offset); err != nil {
		leave()
		return nil, failure(err)
	}
	return func() { dir.unlockRange(offset); leave() }, nil
}

// lockShared takes a byte that writers of all threads share, and waits for it
// only as long as a write waits for its thread.
func (s *Store) lockShared(ctx context.Context, dir *directory, offset int64) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.LockWait, errLockWait)
	defer cancel()
	return s.lockByte(ctx, dir, offset)
}

var errLockWait = errors.New("another writer holds the lock")

// Polling keeps the wait interruptible; a holder keeps a lock for the time of
// one write.
const (
	firstLockPoll = 200 * time.Microsecond
	maxLockPoll   = 5 * time.Millisecond
)

func (d *directory) lockRange(ctx context.Context, offset int64) error {
	for pause := firstLockPoll; ; pause = min(2*pause, maxLockPoll) {
		err := d.setLock(unix.F_WRLCK, offset)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("locking: %w", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func (d *directory) unlockRange(offset int64) {
	// Unlocking a range of an open file cannot fail but for lack of kernel
	// memory, and then closing the file releases it.
	_ = d.setLock(unix.F_UNLCK, offset)
}

func (d *directory) setLock(kind int16, offset int64) error {
	defer runtime.KeepAlive(d.lock)
	lock := unix.Flock_t{Type: kind, Whence: 0, Start: offset, Len: 1}
	for {
		err := unix.FcntlFlock(d.lock.Fd(), unix.F_OFD_SETLK, &lock)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// keyedLocks are mutexes by key, for the goroutines of one Store, which share a
// lock file description and so would not exclude each other.
type keyedLocks struct {
	mu   sync.Mutex
	held map[int64]*keyedLock
}

type keyedLock struct {
	token chan struct{} // holds one value while the lock is free
	users int           // holder and waiters
}

func newKeyedLocks() *keyedLocks { return &keyedLocks{held: make(map[int64]*keyedLock)} }

func (k *keyedLocks) lock(ctx context.Context, key int64) (unlock func(), err error) {
	k.mu.Lock()
	l := k.held[key]
	if l == nil {
		l = &keyedLock{token: make(chan struct{}, 1)}
		l.token <- struct{}{}
		k.held[key] = l
	}
	l.users++
	k.mu.Unlock()
	select {
	case <-l.token:
		return func() { l.token <- struct{}{}; k.leave(key, l) }, nil
	case <-ctx.Done():
		k.leave(key, l)
		return nil, context.Cause(ctx)
	}
}

func (k *keyedLocks) leave(key int64, l *keyedLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(k.held, key)
	}
}
