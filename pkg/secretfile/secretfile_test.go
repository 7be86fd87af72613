package secretfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/newos4/relay/pkg/secretfile"
)

// Ensures that a key is made once with the mode of a secret, in a directory that
// is made for it, and read again by the next start.
func TestLoad_MakesOneKeyAndKeepsIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "workspace", "csrf.key")
	first, err := secretfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != secretfile.Size || bytes.Equal(first, make([]byte, secretfile.Size)) {
		t.Errorf("the key is %x", first)
	}
	second, err := secretfile.Load(path)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second start reads %x, %v; the first made %x", second, err, first)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// Ensures that all of many starts at once use one key.
func TestLoad_Race(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "csrf.key")
	keys := make([][]byte, 50)
	var starts sync.WaitGroup
	for i := range keys {
		starts.Go(func() {
			key, err := secretfile.Load(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	starts.Wait()
	for _, key := range keys {
		if !bytes.Equal(key, keys[0]) {
			t.Fatalf("two starts got different keys")
		}
	}
}

// Ensures that a key which is damaged, or which others may know, is refused and
// left as it is.
func TestLoad_Refuses(t *testing.T) {
	t.Parallel()
	whole := bytes.Repeat([]byte{7}, secretfile.Size)
	for name, test := range map[string]struct {
		make func(path string) error
		want string
	}{
		"empty":       {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "has 0 bytes"},
		"short":       {func(p string) error { return os.WriteFile(p, whole[1:], 0o600) }, "has 31 bytes"},
		"long":        {func(p string) error { return os.WriteFile(p, append(whole[:32:32], '\n'), 0o600) }, "has 33 bytes"},
		"open":        {func(p string) error { return os.WriteFile(p, whole, 0o640) }, "hint: chmod 0600"},
		"a directory": {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
		"a pipe":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "not a regular file"},
		"a link":      {func(p string) error { return os.Symlink("elsewhere", p) }, "opening the key file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			if err := test.make(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if key, err := secretfile.Load(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load gives %x, %v; want an error with %q", key, err, test.want)
			}
			if after, err := os.Lstat(path); err != nil || after.Size() != before.Size() || after.Mode() != before.Mode() {
				t.Errorf("the file is now %v, %v", after, err)
			}
		})
	}
}

// Ensures that a directory which cannot be made is told.
func TestLoad_NoDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secretfile.Load(filepath.Join(file, "key")); err == nil {
		t.Error("a key was made below a file")
	}
}
