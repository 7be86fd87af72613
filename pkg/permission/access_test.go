package permission

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs f with the eyes of a user whom the kernel refuses, where the tests
// run as root.
func asNobody(f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread has another user to the file system from here on. It ends
		// with the goroutine that holds it.
		runtime.LockOSThread()
		const nobody = 65534
		_, _ = unix.SetfsuidRetUid(nobody)
		f()
	}()
	<-done
}

// mustDir makes a directory with exactly that mode below one that all may pass.
func mustDir(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o711), os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
	return path
}

// Ensures that the kernel is asked for what this very user may do, and that a
// directory which is missing passes only where it could be made.
func TestCheckDir(t *testing.T) {
	t.Parallel()
	open, closed := mustDir(t, 0o777), mustDir(t, 0o555)
	file := filepath.Join(open, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		for path, want := range map[string]error{
			open:                            nil,
			filepath.Join(open, "a", "b"):   nil,
			closed:                          syscall.EACCES,
			filepath.Join(closed, "a", "b"): syscall.EACCES,
			file:                            syscall.ENOTDIR,
			filepath.Join(file, "a"):        syscall.ENOTDIR,
		} {
			if err := CheckDir(path, Read|Write|Search); !errors.Is(err, want) {
				t.Errorf("CheckDir(%s) = %v, want %v", path, err, want)
			}
		}
		if err := CheckDir(closed, Read|Search); err != nil {
			t.Errorf("CheckDir to read = %v", err)
		}
	})
	for _, path := range []string{filepath.Join(open, "a"), filepath.Join(closed, "a")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made: %v", path, err)
		}
	}
}

// Ensures that what a closed directory holds is not taken for open, whatever its
// own mode.
func TestEverybody(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]uint32{0o711: Read | Write, 0o700: 0, 0o710: 0} {
		dir := mustDir(t, 0o700)
		file := filepath.Join(dir, "file")
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(file, 0o666), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		if got, err := Everybody(file, Read|Write); err != nil || got != want {
			t.Errorf("in a directory of mode %o: %o, %v, want %o", mode, got, err, want)
		}
	}
	if _, err := Everybody("/nonexistent/file", Read); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}
