// Package blob keeps the bytes of the library's files on disk, one file each in
// the folder of its owner.
//
// Bytes arrive in a staging folder. Once they are whole and synced they are
// renamed into their owner's folder, so that a crash leaves them whole, or
// staged and to be swept. What is read back is a plain file in its folder or it
// is refused: who can write to the data directory still cannot make the server
// hand out another file (workspace contract, sections 9.5 and 9.6).
package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	filesName   = "files"
	stagingName = "staging"
	dirMode     = 0o700
	fileMode    = 0o600
)

// What [Dir.Open] says of bytes that cannot be read.
var (
	// ErrMissing says that the bytes are gone.
	ErrMissing = errors.New("the stored file is missing")
	// ErrUnsafe says that what is there is no plain file in its folder.
	ErrUnsafe = errors.New("the stored file is no plain file in its folder")
)

// Dir is a directory of blobs. Its methods may be called concurrently.
type Dir struct{ root *os.Root }

// Open opens the directory with its two folders and makes what is not there,
// with mode 0700. The caller closes it.
func Open(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("making the directory of files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of files: %w", err)
	}
	for _, name := range []string{filesName, stagingName} {
		if err := makeDir(root, name); err != nil {
			return nil, errors.Join(fmt.Errorf("making the folder %s: %w", name, err), root.Close())
		}
	}
	return &Dir{root: root}, nil
}

// Close lets go of the directory. Files that were opened stay open.
func (d *Dir) Close() error { return d.root.Close() }

func makeDir(root *os.Root, name string) error {
	if err := root.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// place is where a blob is. Owner and name are ids of this program and never
// paths; what is not plain is refused.
func place(owner, name string) (string, error) {
	for _, part := range []string{owner, name} {
		if part == "" || part == "." || part == ".." || path.Base(part) != part {
			return "", fmt.Errorf("%q is no name: %w", part, ErrUnsafe)
		}
	}
	return path.Join(filesName, owner, name), nil
}

// Open opens the bytes of a file. It returns [ErrMissing] when there are none,
// and [ErrUnsafe] when what is there is a link or anything else but a plain
// file.
func (d *Dir) Open(owner, name string) (*os.File, error) {
	at, err := place(owner, name)
	if err != nil {
		return nil, err
	}
	info, err := d.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening %s: %w", at, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w: %w", at, ErrUnsafe, err)
	}
	if err := d.checkFolder(owner); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("opening %s: %w", at, ErrUnsafe)
	}
	// Without O_NONBLOCK a pipe that took the file's place would hang here.
	file, err := d.root.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", at, err)
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = ErrUnsafe
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", at, err), file.Close())
	}
	return file, nil
}

// checkFolder refuses an owner's folder that became a link.
func (d *Dir) checkFolder(owner string) error {
	info, err := d.root.Lstat(path.Join(filesName, owner))
	if err != nil {
		return fmt.Errorf("looking at the folder of an owner: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the folder of an owner: %w", ErrUnsafe)
	}
	return nil
}

// Remove removes the bytes of a file if there are any.
func (d *Dir) Remove(owner, name string) error {
	at, err := place(owner, name)
	if err != nil {
		return err
	}
	if err := d.root.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", at, err)
	}
	return nil
}

// Staged are bytes that are being written. Whoever stages them either keeps or
// discards them.
type Staged struct {
	dir  *Dir
	at   string
	file *os.File
	hash hash.Hash
	size int64
	done sync.Once
}

// Stage begins new bytes under a name that is not used yet.
func (d *Dir) Stage(name string) (*Staged, error) {
	if path.Base(name) != name {
		return nil, fmt.Errorf("staging %q: %w", name, ErrUnsafe)
	}
	at := path.Join(stagingName, name)
	file, err := d.root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return nil, fmt.Errorf("staging a file: %w", err)
	}
	return &Staged{dir: d, at: at, file: file, hash: sha256.New()}, nil
}

// Write adds bytes.
func (s *Staged) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.hash.Write(p[:n])
	s.size += int64(n)
	return n, err
}

// Size returns how many bytes were written.
func (s *Staged) Size() int64 { return s.size }

// Digest returns the SHA-256 of the bytes in hex.
func (s *Staged) Digest() string { return hex.EncodeToString(s.hash.Sum(nil)) }

// Discard removes the bytes unless they were kept. It may be called twice.
func (s *Staged) Discard() error {
	var err error
	s.done.Do(func() { err = errors.Join(s.file.Close(), s.dir.root.Remove(s.at)) })
	return err
}

// Keep makes the bytes durable as those of a file. Afterwards [Dir.Remove]
// takes them away again.
func (s *Staged) Keep(owner, name string) (err error) {
	s.done.Do(func() { err = s.keep(owner, name) })
	if err != nil {
		return fmt.Errorf("keeping a file: %w", err)
	}
	return nil
}

func (s *Staged) keep(owner, name string) error {
	at, err := place(owner, name)
	// The bytes must be on the disk before their name is, or a crash would leave
	// an empty file under it.
	err = errors.Join(err, s.file.Sync(), s.file.Close())
	if err == nil {
		err = s.rename(owner, at)
	}
	if err != nil {
		return errors.Join(err, s.dir.root.Remove(s.at))
	}
	return s.dir.sync(path.Join(filesName, owner))
}

func (s *Staged) rename(owner, at string) error {
	folder := path.Join(filesName, owner)
	if err := makeDir(s.dir.root, folder); err != nil {
		return err
	}
	if err := s.dir.checkFolder(owner); err != nil {
		return err
	}
	if err := s.dir.sync(filesName); err != nil {
		return err
	}
	return s.dir.root.Rename(s.at, at)
}

func (d *Dir) sync(folder string) error {
	f, err := d.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
