package storage

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// Options say where the threads are and what bounds them.
type Options struct {
	// Root and Space name the directory: <Root>/spaces/<Space>/data/chat.
	Root  string
	Space string
	Bounds
	// LockWait bounds how long a write waits for each lock that another process
	// holds; 0 means 10 s.
	LockWait time.Duration
	// CacheBytes bounds the memory for threads that were read; 0 means 16 MiB.
	CacheBytes int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Random is the source of message ids; nil means crypto/rand.
	Random io.Reader
	// Logger gets what no caller is told; nil means none.
	Logger *slog.Logger
	// Synced is told how long each sync of a file or a directory took; nil is
	// not told.
	Synced func(time.Duration)
}

// Bounds are what can be changed while a Store is in use.
type Bounds struct {
	// Retention bounds a thread's messages on append and sweep.
	Retention chat.Retention
	// Threads is how many threads may exist before a new one is refused.
	Threads int
	// Page is how many messages a poll returns at most.
	Page int
}

const (
	defaultLockWait   = 10 * time.Second
	defaultCacheBytes = 16 << 20
)

// Store gives access to the threads. Its methods may be called concurrently,
// and any number of Stores in any number of processes may share a directory.
type Store struct {
	opts   Options // but for the bounds
	limits atomic.Pointer[Bounds]
	path   string // of the thread directory
	cache  *cache
	local  *keyedLocks
	step   stepFunc

	dirMu sync.Mutex
	dir   *directory

	warnings warnings
}

// stepFunc is told each change of the disk before it is made and may fail it.
// Tests use it to crash or to fail at every step.
type stepFunc func(step string) error

// Open returns a Store. It touches nothing: the directory is made by the first
// write, and until then every thread is unknown.
func Open(opts Options) *Store {
	if opts.LockWait == 0 {
		opts.LockWait = defaultLockWait
	}
	if opts.CacheBytes == 0 {
		opts.CacheBytes = defaultCacheBytes
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Random == nil {
		opts.Random = rand.Reader
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Synced == nil {
		opts.Synced = func(time.Duration) {}
	}
	s := &Store{
		opts:  opts,
		path:  filepath.Join(opts.Root, "spaces", opts.Space, "data", "chat"),
		cache: newCache(opts.CacheBytes),
		local: newKeyedLocks(),
		step:  func(string) error { return nil },
	}
	s.Configure(opts.Bounds)
	return s
}

// Configure replaces the bounds. What is under way may still go by the old ones.
func (s *Store) Configure(bounds Bounds) { s.limits.Store(&bounds) }

// Bounds returns the bounds that hold now.
func (s *Store) Bounds() Bounds { return *s.limits.Load() }

// Prepare makes the thread directory if it is missing, so that a daemon can
// report an unusable root before it serves.
func (s *Store) Prepare() error {
	_, err := s.writableDir()
	return err
}

// Close releases the files that the Store holds open. No method may be running
// or be called later.
func (s *Store) Close() error {
	s.dirMu.Lock()
	defer s.dirMu.Unlock()
	if s.dir == nil {
		return nil
	}
	err := s.dir.close()
	s.dir = nil
	return err
}

// Path returns the thread directory, for messages to the operator.
func (s *Store) Path() string { return s.path }

// now returns the clock in epoch milliseconds.
func (s *Store) now() int64 { return s.opts.Now().UnixMilli() }

// writableDir returns the open thread directory and makes what is missing of
// it. A directory that was moved away or replaced is noticed and left behind.
func (s *Store) writableDir() (*directory, error) {
	s.dirMu.Lock()
	defer s.dirMu.Unlock()
	if s.dir != nil && s.dir.isCurrent() {
		return s.dir, nil
	}
	// A writer may still be at work in the old directory, so it is not closed
	// here; its descriptors go when the last reference does.
	s.dir = nil
	if err := s.makeDirs(s.path); err != nil {
		return nil, err
	}
	dir, err := openDirectory(s.path, s.directorySync())
	if err != nil {
		return nil, err
	}
	s.dir = dir
	return dir, nil
}

func (s *Store) directorySync() func(*os.File) error {
	return func(f *os.File) error {
		if err := s.step("sync directory"); err != nil {
			return err
		}
		err := s.timed(f.Sync)
		if isUnsupported(err) {
			s.warnings.once(s.opts.Logger, "the file system cannot sync directories; a power loss may undo the newest messages", "path", s.path)
			return nil
		}
		return err
	}
}

// timed syncs and tells how long it took.
func (s *Store) timed(sync func() error) error {
	started := time.Now()
	err := sync()
	s.opts.Synced(time.Since(started))
	return err
}

// makeDirs makes path and its missing parents below the root with mode 2770,
// whatever the umask, and syncs each parent. The root itself is made like any
// other directory.
func (s *Store) makeDirs(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return failure(fmt.Errorf("%s is not a directory", path))
	}
	if err == nil || path == filepath.Dir(path) {
		return nil
	}
	if path == filepath.Clean(s.opts.Root) {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return failure(fmt.Errorf("making the root: %w", err))
		}
		return nil
	}
	if err := s.makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	return s.makeDir(path)
}

func (s *Store) makeDir(path string) error {
	if err := s.step("make directory"); err != nil {
		return failure(err)
	}
	err := os.Mkdir(path, 0o770)
	if err == nil {
		err = share(path)
	}
	// Another process may have been faster, and need not have come to sync it.
	if err != nil && !os.IsExist(err) {
		return failure(fmt.Errorf("making the thread directory: %w", err))
	}
	parent, err := openDir(filepath.Dir(path))
	if err != nil {
		return failure(fmt.Errorf("syncing a new directory: %w", err))
	}
	defer func() { _ = parent.Close() }()
	if err := s.directorySync()(parent); err != nil {
		return failure(fmt.Errorf("syncing a new directory: %w", err))
	}
	return nil
}

// sharedMode is that of the directories that are made: what is made in them has
// their group.
const sharedMode = fs.ModeSetgid | 0o770

// share gives a new directory that mode, whatever the umask. Mostly it has it
// already, by its parent. It is not set anew then, because systemd's
// RestrictSUIDSGID= refuses every call that names the bit.
func share(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode()&(fs.ModePerm|fs.ModeSetgid) == sharedMode {
		return nil
	}
	return os.Chmod(path, sharedMode)
}

// failure marks err as a failure of the storage, which a client is told without
// its details.
func failure(err error) error {
	return chat.Errorf(chat.CodeStorage, "%w", err)
}

// warnings logs each distinct message once.
type warnings struct {
	mu   sync.Mutex
	told map[string]bool
}

func (w *warnings) once(logger *slog.Logger, message string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[message] {
		return
	}
	if w.told == nil {
		w.told = make(map[string]bool)
	}
	w.told[message] = true
	logger.Warn(message, args...) //nolint:sloglint // the callers' messages are static; this is their one way out
}
