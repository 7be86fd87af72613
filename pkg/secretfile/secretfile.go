// Package secretfile keeps a random key in a file of its own, which is made once
// however many programs start at the same time, and survives restarts.
package secretfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Size is the length of a key in bytes.
const Size = 32

// Modes of a key's file and of a directory that is made for it.
const (
	FileMode fs.FileMode = 0o600
	DirMode  fs.FileMode = 0o700
)

// Load returns the key in the file at path. If there is no file it makes one with
// a fresh key; of several that do so at once all get the key of the first. A file
// that is no regular file, has another length, or can be read by anyone but its
// owner is an error: a key that others may know, or half of one, is worse than
// none.
func Load(path string) ([]byte, error) {
	key, err := read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the key file: %w", err)
	}
	return read(path)
}

func read(path string) ([]byte, error) {
	// O_NONBLOCK keeps a named pipe in the key's place from stopping the start.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the key file: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("looking at the key file: %w", err)
	}
	if err := usable(path, info); err != nil {
		return nil, err
	}
	key := make([]byte, Size)
	if _, err := io.ReadFull(file, key); err != nil {
		return nil, fmt.Errorf("reading the key file %s: %w", path, err)
	}
	return key, nil
}

func usable(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("the key file %s is not a regular file", path)
	case info.Size() != Size:
		return fmt.Errorf("the key file %s has %d bytes, not %d\nhint: put the file back from a backup; a new key makes what was protected by the old one unusable", path, info.Size(), Size)
	case info.Mode().Perm()&^FileMode != 0:
		return fmt.Errorf("the key file %s has mode %#o and may be known to others\nhint: chmod %#o %s", path, info.Mode().Perm(), FileMode, path)
	}
	return nil
}

// create puts a whole key under the name or fails with [fs.ErrExist]. The key is
// written and synced under another name first, so that nobody ever reads half of
// it, and linked, which unlike a rename replaces nothing.
func create(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, DirMode); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(temporary.Name())) }()
	if err := fill(temporary); err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// fill writes a fresh key to the file, makes it durable and closes it.
func fill(file *os.File) error {
	key := make([]byte, Size)
	_, _ = rand.Read(key) // it never fails
	_, err := file.Write(key)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
