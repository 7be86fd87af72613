package sandbox

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMain is the hidden entry of every child, the product's and those that
// tests have of their own, before it runs the tests.
func TestMain(m *testing.M) {
	RunChildIfAsked(os.Args)
	runTestChildIfAsked(os.Args)
	if os.Getenv(surroundingsVar) == hardened {
		hardenSurroundings()
	}
	os.Exit(m.Run())
}

// MustStart returns a Reader that is closed with the test.
func MustStart(t testing.TB, o Options) *Reader {
	t.Helper()
	r, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// MustRoot returns a directory called "docs" with the given files, whose
// directories are made as needed.
func MustRoot(t testing.TB, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "docs")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		MustWrite(t, filepath.Join(root, name), files[name])
	}
	return root
}

// MustWrite writes a file.
func MustWrite(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// must fails the test unless err is nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// paths returns what a listing names.
func paths(l Listing) []string {
	names := make([]string, len(l.Entries))
	for i, entry := range l.Entries {
		names[i] = entry.Path
	}
	return names
}
