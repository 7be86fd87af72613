package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// fileWriters is how many writers the bare loop has.
const fileWriters = 8

// fileFloor is the bare loop of write, fsync, rename and fsync of the directory
// that durable posts are compared with.
type fileFloor struct {
	dir   string
	files int // how many names the writers replace
}

// newFileFloor makes a directory with as many files as the store that is
// compared has threads.
func newFileFloor(dir string, files int) (fileFloor, error) {
	f := fileFloor{dir: dir, files: files}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return f, fmt.Errorf("making the directory of the bare loop: %w", err)
	}
	for i := range files {
		if err := os.WriteFile(f.path(i), nil, 0o600); err != nil {
			return f, fmt.Errorf("making the files of the bare loop: %w", err)
		}
	}
	return f, nil
}

func (f fileFloor) path(i int) string { return filepath.Join(f.dir, strconv.Itoa(i)) }

// pace returns how many files of that size the loop makes durable in a second.
func (f fileFloor) pace(d time.Duration, size int) (float64, error) {
	dir, err := os.Open(f.dir)
	if err != nil {
		return 0, fmt.Errorf("opening the directory of the bare loop: %w", err)
	}
	defer func() { _ = dir.Close() }()
	data := make([]byte, size)
	return pace(fileWriters, d, func(writer, i int) error {
		target := f.path((i*fileWriters + writer) % f.files)
		return replaceFile(dir, f.path(-writer-1), target, data)
	})
}

// replaceFile is one turn of the loop.
func replaceFile(dir *os.File, temp, target string, data []byte) error {
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, target); err != nil {
		return err
	}
	return dir.Sync()
}
