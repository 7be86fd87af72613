package blob_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/workspace/blob"
)

func mustOpen(t *testing.T) (*blob.Dir, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "data")
	dir, err := blob.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir, root
}

// mustKeep keeps a file of ann's.
func mustKeep(t *testing.T, dir *blob.Dir, name, text string) {
	t.Helper()
	staged, err := dir.Stage("staged-" + name)
	if err == nil {
		_, err = io.WriteString(staged, text)
	}
	if err == nil {
		err = staged.Keep("ann", name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Ensures that bytes come back as they were kept, in files and folders that nobody
// else can read, and that nothing stays staged.
func TestKeep(t *testing.T) {
	t.Parallel()
	dir, root := mustOpen(t)
	staged, err := dir.Stage("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(staged, "hello"); err != nil {
		t.Fatal(err)
	}
	if staged.Size() != 5 || staged.Digest() != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Errorf("size %d, digest %s", staged.Size(), staged.Digest())
	}
	if err := staged.Keep("ann", "1"); err != nil {
		t.Fatal(err)
	}
	if err := staged.Discard(); err != nil {
		t.Errorf("discarding what was kept: %v", err)
	}
	file, err := dir.Open("ann", "1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil || string(text) != "hello" {
		t.Errorf("read %q, %v", text, err)
	}
	for path, mode := range map[string]os.FileMode{"files": 0o700, "staging": 0o700, "files/ann": 0o700, "files/ann/1": 0o600} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(root, "staging")); err != nil || len(left) != 0 {
		t.Errorf("staged are %v, %v", left, err)
	}
	if err := errors.Join(dir.Remove("ann", "1"), dir.Remove("ann", "1")); err != nil {
		t.Error(err)
	}
	if _, err := dir.Open("ann", "1"); !errors.Is(err, blob.ErrMissing) {
		t.Errorf("what was removed gives %v", err)
	}
}

// Ensures that discarded bytes are gone, and that discarding twice does nothing.
func TestDiscard(t *testing.T) {
	t.Parallel()
	dir, root := mustOpen(t)
	staged, err := dir.Stage("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(staged.Discard(), staged.Discard()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "staging")); err != nil || len(left) != 0 {
		t.Errorf("staged are %v, %v", left, err)
	}
}

// Ensures that no name leads out of the directory, and that what is no plain file
// in its own folder is refused without waiting for it.
func TestOpen_RefusesWhatIsUnsafe(t *testing.T) {
	t.Parallel()
	dir, root := mustOpen(t)
	mustKeep(t, dir, "1", "hers")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "files", "ann")
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(folder, "link")),
		os.Symlink("1", filepath.Join(folder, "inner")),
		os.Mkdir(filepath.Join(folder, "dir"), 0o700),
		unix.Mkfifo(filepath.Join(folder, "pipe"), 0o600),
		os.Symlink("ann", filepath.Join(root, "files", "bob")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, place := range [][2]string{
		{"ann", "link"}, {"ann", "inner"}, {"ann", "dir"}, {"ann", "pipe"}, {"bob", "1"},
		{"ann", "../../staging"}, {"..", "staging"}, {"", "1"}, {"ann", ""}, {"ann", "."}, {"ann", "a/b"},
	} {
		if _, err := dir.Open(place[0], place[1]); !errors.Is(err, blob.ErrUnsafe) {
			t.Errorf("%q gives %v", place, err)
		}
	}
	if _, err := dir.Stage("../a"); !errors.Is(err, blob.ErrUnsafe) {
		t.Errorf("staging outside gives %v", err)
	}
	staged, err := dir.Stage("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := staged.Keep("bob", "2"); !errors.Is(err, blob.ErrUnsafe) {
		t.Errorf("keeping in a folder that is a link gives %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "staging")); err != nil || len(left) != 0 {
		t.Errorf("staged are %v, %v", left, err)
	}
}

// Ensures that only bytes that are old and that nothing refers to are swept.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir, root := mustOpen(t)
	now := time.Now()
	mustKeep(t, dir, "known", "x")
	mustKeep(t, dir, "orphan", "x")
	mustKeep(t, dir, "fresh", "x")
	for _, name := range []string{"old", "new"} {
		if _, err := dir.Stage(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"files/ann/known", "files/ann/orphan", "staging/old"} {
		old := now.Add(-blob.SweepAge - time.Minute)
		if err := os.Chtimes(filepath.Join(root, path), old, old); err != nil {
			t.Fatal(err)
		}
	}
	known := func(_ context.Context, owner, name string) (bool, error) {
		return owner == "ann" && name == "known", nil
	}
	removed, err := dir.Sweep(t.Context(), now, known)
	if err != nil || removed != 2 {
		t.Errorf("removed %d, %v", removed, err)
	}
	for path, stays := range map[string]bool{"files/ann/known": true, "files/ann/fresh": true, "staging/new": true, "files/ann/orphan": false, "staging/old": false} {
		if _, err := os.Stat(filepath.Join(root, path)); (err == nil) != stays {
			t.Errorf("%s: %v", path, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dir.Sweep(cancelled, now, known); !errors.Is(err, context.Canceled) {
		t.Errorf("a sweep that is stopped gives %v", err)
	}
	failing := errors.New("the database is gone")
	old := now.Add(-2 * blob.SweepAge)
	if err := os.Chtimes(filepath.Join(root, "files/ann/known"), old, old); err != nil {
		t.Fatal(err)
	}
	_, err = dir.Sweep(t.Context(), now, func(context.Context, string, string) (bool, error) { return false, failing })
	if !errors.Is(err, failing) {
		t.Errorf("a failing question gives %v", err)
	}
}
