package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
)

const (
	lockName   = ".lock"
	marksName  = ".marks.json"
	fileSuffix = ".json"
	tempSuffix = ".tmp"
	fileMode   = 0o660
)

func fileName(id chat.ThreadID) string { return string(id) + fileSuffix }

// threadOf returns the thread whose file has that name.
func threadOf(name string) (chat.ThreadID, bool) {
	stem, ok := strings.CutSuffix(name, fileSuffix)
	if !ok {
		return "", false
	}
	id, err := chat.ParseThreadID(stem)
	return id, err == nil
}

// identity tells one state of a file from every other. Writers see to it that
// the time of a thread's file strictly increases, so a reused inode cannot pass
// for the old file.
type identity struct {
	device uint64
	inode  uint64
	size   int64
	mtime  int64 // ns
}

func identityOf(st *unix.Stat_t) identity {
	return identity{device: st.Dev, inode: st.Ino, size: st.Size, mtime: st.Mtim.Nano()}
}

func isRegular(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }

// directory is an open thread directory with the lock file that belongs to it.
// Its methods act on that very directory even when it was moved away.
type directory struct {
	path   string
	file   *os.File
	lock   *os.File
	self   identity
	locked identity
	gid    uint32
	sync   *syncGroup
}

// openDir opens a directory. Opening a pipe that stands in its place would wait
// for a writer, for ever.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

func openDirectory(path string, sync func(*os.File) error) (*directory, error) {
	file, err := openDir(path)
	if err != nil {
		return nil, failure(fmt.Errorf("opening the thread directory: %w", err))
	}
	d := &directory{path: path, file: file}
	d.sync = newSyncGroup(func() error { return sync(file) })
	if err := d.openLock(); err != nil {
		return nil, errors.Join(failure(err), file.Close())
	}
	return d, nil
}

func (d *directory) openLock() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.file.Fd()), &st); err != nil {
		return fmt.Errorf("reading the thread directory's attributes: %w", err)
	}
	d.self, d.gid = identityOf(&st), st.Gid
	fd, err := d.openAt(lockName, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		// The path lets the operator see whose file it is.
		return fmt.Errorf("locking threads: %w", &fs.PathError{Op: "open", Path: d.path + "/" + lockName, Err: err})
	}
	d.lock = os.NewFile(uintptr(fd), lockName)
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("reading the lock file's attributes: %w", err)
	}
	if !isRegular(&st) {
		return fmt.Errorf("%s/%s is not a regular file", d.path, lockName)
	}
	d.locked = identityOf(&st)
	// Only the owner can mend the mode that the umask left and the group that a
	// directory without the setgid bit gave; for anybody else they are right
	// already or the open above would have failed.
	if st.Gid != d.gid {
		_ = unix.Fchown(fd, -1, int(d.gid))
	}
	if st.Mode&0o777 != fileMode {
		_ = unix.Fchmod(fd, fileMode)
	}
	return nil
}

// isCurrent reports whether the directory and its lock file still are what the
// path leads to.
func (d *directory) isCurrent() bool {
	var st unix.Stat_t
	if unix.Stat(d.path, &st) != nil || st.Dev != d.self.device || st.Ino != d.self.inode {
		return false
	}
	return d.stat(lockName, &st) == nil && st.Dev == d.locked.device && st.Ino == d.locked.inode
}

func (d *directory) close() error { return errors.Join(d.lock.Close(), d.file.Close()) }

// openAt opens a name of the directory. It follows no link and never blocks on
// a pipe.
func (d *directory) openAt(name string, flags int) (int, error) {
	defer runtime.KeepAlive(d.file)
	return unix.Openat(int(d.file.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, fileMode)
}

func (d *directory) stat(name string, st *unix.Stat_t) error {
	defer runtime.KeepAlive(d.file)
	return unix.Fstatat(int(d.file.Fd()), name, st, unix.AT_SYMLINK_NOFOLLOW)
}

func (d *directory) rename(from, to string) error {
	defer runtime.KeepAlive(d.file)
	return unix.Renameat(int(d.file.Fd()), from, int(d.file.Fd()), to)
}

func (d *directory) remove(name string) error {
	defer runtime.KeepAlive(d.file)
	return unix.Unlinkat(int(d.file.Fd()), name, 0)
}

// setModified sets the modification time of a name, in ns, and leaves the access
// time alone.
func (d *directory) setModified(name string, mtime int64) error {
	defer runtime.KeepAlive(d.file)
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	return unix.UtimesNanoAt(int(d.file.Fd()), name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// names lists the directory afresh: entries whose name passes keep and which
// are regular files.
func (d *directory) names(keep func(string) bool) ([]string, error) {
	return regularNames(d.path, keep)
}

// regularNames lists the regular files at path whose name passes keep. Links,
// pipes and directories are none, whatever their name.
func regularNames(path string, keep func(string) bool) ([]string, error) {
	file, err := openDir(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var names []string
	for {
		entries, err := file.ReadDir(256)
		for _, e := range entries {
			if keep(e.Name()) && e.Type().IsRegular() {
				names = append(names, e.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func isThreadName(name string) bool {
	_, ok := threadOf(name)
	return ok
}

// read returns the bytes of a regular file of the directory.
func (d *directory) read(name string) ([]byte, error) {
	fd, err := d.openAt(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	data, _, err := readRegular(fd)
	return data, err
}

// errNotRegular is the state of a thread's name that a link, a pipe or a
// directory has taken.
var errNotRegular = errors.New("it is not a regular file")

// maxFileSize bounds what is read into memory, in bytes. No thread within limits
// that make sense comes near it; whoever made such a file did not write threads.
const maxFileSize = 256 << 20

var errTooLarge = fmt.Errorf("it is larger than %d bytes", maxFileSize)

// ReadRegular returns the bytes of a regular file, of which it reads no more than a
// few hundred MiB. It is for files beside the threads that an administrator may
// have put there: a pipe or a device in such a place, which might never end, or
// never begin, is an error at once.
func ReadRegular(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	data, _, err := readRegular(fd)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, nil
}

func readRegular(fd int) ([]byte, identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, identity{}, err
	}
	if !isRegular(&st) {
		return nil, identity{}, errNotRegular
	}
	if st.Size > maxFileSize {
		return nil, identity{}, errTooLarge
	}
	data := make([]byte, st.Size)
	for n := 0; n < len(data); {
		got, err := unix.Read(fd, data[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, identity{}, err
		}
		if got == 0 {
			// Thread files are replaced, never cut; whoever cut this one left
			// what a parser will call corrupt. The size that it had would pass it
			// off as the file that was there before.
			st.Size = int64(n)
			return data[:n], identityOf(&st), nil
		}
		n += got
	}
	return data, identityOf(&st), nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func isUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)
}
