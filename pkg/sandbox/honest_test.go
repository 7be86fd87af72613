package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/untrusted"
)

// Ensures that the parent's distrust never turns on an honest child: whatever a
// file holds and whatever is asked, the answer is accepted.
func FuzzHonestAnswers(f *testing.F) {
	for _, text := range []string{
		"one\ntwo\r\n", "\ufeff\x1b[2J\u202e", "é\u200d\u200dé\n\ufe0f1\ufe0f", "\xff\xc3\n\xc3", "a\u2028b\u0085c", strings.Repeat("é\ufe0f", 300),
	} {
		f.Add([]byte(text), "[a-z]+", 1, 0, 40, 50)
	}
	f.Fuzz(func(t *testing.T, text []byte, pattern string, first, last, lines, bytes int) {
		root := t.TempDir()
		must(t, os.WriteFile(filepath.Join(root, "a.md"), text, 0o644))
		limits, err := Limits{Lines: 1 + lines&63, ResultBytes: 1 + bytes&4095, FileSize: 1 << 16}.withDefaults()
		must(t, err)
		roots, err := resolveRoots([]string{root}, nil)
		must(t, err)
		trees, err := openRoots(setup{Roots: roots})
		must(t, err)
		tree := &forest{trees: trees, limits: limits}
		path := roots[0].Name + "/a.md"
		for i, req := range []request{
			{Op: opRead, Path: path, FirstLine: first, LastLine: last},
			{Op: opSearch, Path: path, Pattern: pattern, Regexp: true, BudgetMS: 1000},
			{Op: opSearch, Pattern: pattern, BudgetMS: 1000},
			{Op: opList, Path: roots[0].Name},
		} {
			req.ID = uint64(i)
			resp := tree.serve(req)
			if err := vet(limits, roots, req, resp); err != nil && utf8.ValidString(pattern) {
				t.Errorf("%+v of %q: %v: %+v", req, text, err, resp)
			}
		}
	})
}

// Ensures that a line is cut between code points and around what matters.
func TestClip(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line         string
		start, width int
		want         string
		cut          bool
	}{
		{"", 0, 5, "", false},
		{"12345", 3, 5, "12345", false},
		{"123456", 0, 5, "12345…", true},
		{"123456", 1, 5, "…23456", true},
		{"123456", 5, 5, "…23456", true},
		{"12345678", 2, 3, "…345…", true},
		{"ééé", 0, 3, "é…", true},
		{"ééé", 3, 3, "…é…", true},
		{"\xff\xff\xff\xff\xff\xff", 2, 2, "…⟦0xFF⟧⟦0xFF⟧…", true},
		{"\x80\x80\x80\x80\x80\x80\x80", 5, 2, "…⟦0x80⟧⟦0x80⟧", true},
	} {
		got, cut := clip([]byte(test.line), test.start, test.width)
		if got != test.want || cut != test.cut || untrusted.Visible(got) != got {
			t.Errorf("clip(%q, %d, %d) = %q, %v, want %q", test.line, test.start, test.width, got, cut, test.want)
		}
	}
}
