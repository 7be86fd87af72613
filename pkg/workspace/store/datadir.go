package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Names in the data directory.
const (
	// FileName is the database's (section 1.1). SQLite keeps two more beside it,
	// with "-wal" and "-shm" appended and the same mode.
	FileName = "workspace.sqlite3"
	// KeyName is the file of the key for secrets (section 9.2).
	KeyName = "workspace.key"
	// lockName is the file whose lock is held while the schema is migrated.
	lockName = "workspace.lock"
)

// Modes in the data directory (section 9.2).
const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
	// maxDirMode lets an installation give its group a look at the directory.
	maxDirMode fs.FileMode = 0o750
)

// prepareDir makes the data directory and an empty database in it, unless they
// are there, and refuses those that others may use.
//
// A database that is there is never opened here: closing it again would drop the
// locks that this process may hold on it.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	if err := checkMode(dir, maxDirMode); err != nil {
		return err
	}
	path := filepath.Join(dir, FileName)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return checkMode(path, fileMode)
	}
	if err != nil {
		return fmt.Errorf("making the database: %w", err)
	}
	return errors.Join(file.Close(), syncDir(dir))
}

func checkMode(path string, most fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("looking at the data: %w", err)
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	if mode := info.Mode().Perm(); mode&^most != 0 {
		return fmt.Errorf("%s has mode %#o and is open to others\nhint: chmod %#o %s", path, mode, mode&most, path)
	}
	return nil
}

// lockDir takes the lock of the data directory, so that of several programs that
// start at once one migrates. It returns what lets go of it.
func lockDir(dir string) (unlock func() error, err error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the data directory: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the data directory: %w", err), file.Close())
	}
	return file.Close, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
