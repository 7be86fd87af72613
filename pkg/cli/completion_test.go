package cli_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree returns what stands below dir: modes, sizes and times by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Ensures that a completion changes and makes nothing on disk, leaves out what it
// cannot read without a word, and shows nothing that was written.
func TestCompletion_OnlyReads(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mustPost(threadA, "secret\tone\n:0")
	h.mustPost(threadB, "secret two")
	if err := os.WriteFile(filepath.Join(h.store.Path(), string(threadC)+".json"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.mustForbid(threadA)
	h.mustAllow(threadC)
	before := tree(t, h.root)
	for _, args := range [][]string{{"poll", ""}, {"reply", ""}, {"reset", ""}, {"reply", string(threadB), ""}, {""}, {"--"}} {
		stdout, stderr, code := h.run(append([]string{"__complete"}, args...)...)
		if code != 0 || strings.Contains(stdout, "secret") || strings.Contains(stdout, string(threadA)) {
			t.Errorf("%q: exits %d with\n%s", args, code, stdout)
		}
		if offered := strings.Contains(stdout, string(threadB)); offered != (len(args) == 2 && args[1] == "") {
			t.Errorf("%q: thread %s offered: %t", args, threadB, offered)
		}
		// The scripts drop the one line that says which kind of proposals these are.
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "Completion ended with directive: ") {
			t.Errorf("%q: standard error has\n%s", args, stderr)
		}
	}
	if after := tree(t, h.root); !maps.Equal(before, after) {
		t.Errorf("the files changed from\n%v to\n%v", before, after)
	}
}
