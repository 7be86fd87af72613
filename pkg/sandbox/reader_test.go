package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Ensures that nothing is readable unless it is named.
func TestNoRoots(t *testing.T) {
	t.Parallel()
	r := MustStart(t, Options{})
	if l, err := r.List(t.Context(), ""); err != nil || len(l.Entries) != 0 || l.Truncated {
		t.Errorf("List: %+v, %v", l, err)
	}
	if m, err := r.Search(t.Context(), Query{Pattern: "root"}); err != nil || len(m.Matches) != 0 {
		t.Errorf("Search: %+v, %v", m, err)
	}
	for _, path := range []string{"etc/passwd", "/etc/passwd", "etc", "x"} {
		if _, err := r.Read(t.Context(), path, 0, 0); !errors.Is(err, ErrNotReadable) {
			t.Errorf("Read(%q): %v", path, err)
		}
	}
}

// Ensures that a listing is sorted, names what can be read, and nothing else.
func TestList(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{
		"b.md": "12345", "a/x.md": "", "a/.env": "", ".git/config": "", "Z.txt": "", "app.db": "", "tokens/a": "", "ä.md": "",
		"empty/.keep": "",
	})
	must(t, os.Symlink("b.md", filepath.Join(root, "link.md")))
	other := MustRoot(t, nil)
	r := MustStart(t, Options{Roots: []string{root, other}})

	l, err := r.List(t.Context(), "")
	if want := []string{"docs", "docs-2"}; err != nil || !slices.Equal(paths(l), want) || !l.Entries[0].Dir {
		t.Errorf("roots: %+v, %v", l, err)
	}
	want := Listing{Entries: []Entry{
		{Path: "docs/Z.txt"}, {Path: "docs/a", Dir: true}, {Path: "docs/b.md", Size: 5}, {Path: "docs/empty", Dir: true}, {Path: "docs/ä.md"},
	}}
	for _, dir := range []string{"docs", "docs/"} {
		if l, err := r.List(t.Context(), dir); err != nil || !reflect.DeepEqual(l, want) {
			t.Errorf("List(%q) = %+v, %v", dir, l, err)
		}
	}
	for dir, want := range map[string][]string{"docs/a": {"docs/a/x.md"}, "docs/empty": {}, "docs-2": {}} {
		if l, err := r.List(t.Context(), dir); err != nil || !slices.Equal(paths(l), want) {
			t.Errorf("List(%q) = %+v, %v", dir, l, err)
		}
	}
}

// Ensures that a listing is cut where a limit is, and says so only where
// something that could be listed was left out.
func TestListLimits(t *testing.T) {
	t.Parallel()
	files := map[string]string{"z.db": "", "zz.env": ""}
	for i := range 20 {
		files[fmt.Sprintf("f%02d.md", i)] = ""
	}
	root := MustRoot(t, files)
	for _, test := range []struct {
		limits    Limits
		entries   int
		truncated bool
	}{
		{Limits{}, 20, false},
		{Limits{Entries: 20}, 20, false},
		{Limits{Entries: 19}, 19, true},
		{Limits{ResultBytes: 20 * len("docs/f00.md")}, 20, false},
		{Limits{ResultBytes: 20*len("docs/f00.md") - 1}, 19, true},
	} {
		r := MustStart(t, Options{Roots: []string{root}, Limits: test.limits})
		l, err := r.List(t.Context(), "docs")
		if err != nil || len(l.Entries) != test.entries || l.Truncated != test.truncated {
			t.Errorf("%+v: %d entries, truncated %v, %v", test.limits, len(l.Entries), l.Truncated, err)
		}
	}
}

// Ensures that ranges of lines are what was asked for, within the limits, and
// that nothing in the text acts on what shows it.
func TestRead(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{
		"five.txt":  "one\ntwo\nthree\nfour\nfive\n",
		"open.txt":  "one\ntwo",
		"dos.txt":   "\ufeffone\r\ntwo\r\n",
		"empty.txt": "",
		"blank.txt": "\n\n",
		"odd.txt":   "a\x1b[2Jb\n\xff\xfe\ncaf\u00e9 \u202e\U000e0041",
		"long.txt":  strings.Repeat("é", maxLineBytes) + "\nend",
		"many.txt":  strings.Repeat("x\n", 1500),
	})
	r := MustStart(t, Options{Roots: []string{root}})
	for _, test := range []struct {
		path        string
		first, last int
		want        Excerpt
	}{
		{"docs/five.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 5, TotalLines: 5, Text: "one\ntwo\nthree\nfour\nfive"}},
		{"docs/five.txt", 2, 3, Excerpt{FirstLine: 2, LastLine: 3, TotalLines: 5, Text: "two\nthree"}},
		{"docs/five.txt", 5, 0, Excerpt{FirstLine: 5, LastLine: 5, TotalLines: 5, Text: "five"}},
		{"docs/five.txt", 0, 1, Excerpt{FirstLine: 1, LastLine: 1, TotalLines: 5, Text: "one"}},
		{"docs/five.txt", 4, 1 << 40, Excerpt{FirstLine: 4, LastLine: 5, TotalLines: 5, Text: "four\nfive"}},
		{"docs/five.txt", 6, 0, Excerpt{FirstLine: 6, LastLine: 5, TotalLines: 5}},
		{"docs/five.txt", 1 << 40, 1 << 41, Excerpt{FirstLine: 1 << 40, LastLine: 1<<40 - 1, TotalLines: 5}},
		{"docs/open.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 2, TotalLines: 2, Text: "one\ntwo"}},
		{"docs/dos.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 2, TotalLines: 2, Text: "one\ntwo"}},
		{"docs/empty.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 0, TotalLines: 0}},
		{"docs/blank.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 2, TotalLines: 2, Text: "\n"}},
		{"docs/odd.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 3, TotalLines: 3, Text: "a⟦U+001B⟧[2Jb\n⟦0xFF⟧⟦0xFE⟧\ncafé ⟦U+202E⟧⟦U+E0041⟧"}},
		{"docs/long.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 2, TotalLines: 2, Truncated: true,
			Text: strings.Repeat("é", maxLineBytes/2) + "…\nend"}},
		{"docs/many.txt", 0, 0, Excerpt{FirstLine: 1, LastLine: 1000, TotalLines: 1500, Truncated: true,
			Text: strings.TrimSuffix(strings.Repeat("x\n", 1000), "\n")}},
	} {
		test.want.Path = test.path
		got, err := r.Read(t.Context(), test.path, test.first, test.last)
		if err != nil || got != test.want {
			t.Errorf("Read(%q, %d, %d) = %+v, %v\nwant %+v", test.path, test.first, test.last, got, err, test.want)
		}
	}
	for _, lines := range [][2]int{{-1, 0}, {0, -1}, {3, 2}, {-1 << 63, 1}} {
		if _, err := r.Read(t.Context(), "docs/five.txt", lines[0], lines[1]); !errors.Is(err, ErrInvalid) {
			t.Errorf("lines %v: %v", lines, err)
		}
	}
}

// Ensures that size, bytes and kind of a file are bounds, not suggestions.
func TestReadLimits(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{
		"fits.txt": strings.Repeat("x", 1000), "large.txt": strings.Repeat("x", 1001),
		"binary.txt": "text\x00more", "lines.txt": strings.Repeat("123456789\n", 50), "escapes.txt": strings.Repeat("\x01", 900),
	})
	must(t, os.Truncate(filepath.Join(root, "binary.txt"), 900)) // sparse
	r := MustStart(t, Options{Roots: []string{root}, Limits: Limits{FileSize: 1000, ResultBytes: 1000}})
	if e, err := r.Read(t.Context(), "docs/fits.txt", 0, 0); err != nil || len(e.Text) != 1000 || e.Truncated {
		t.Errorf("a file that just fits: %d bytes, %v, %v", len(e.Text), e.Truncated, err)
	}
	if _, err := r.Read(t.Context(), "docs/large.txt", 0, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file over the limit: %v", err)
	}
	if _, err := r.Read(t.Context(), "docs/binary.txt", 0, 0); !errors.Is(err, ErrBinary) {
		t.Errorf("a binary file: %v", err)
	}
	if e, err := r.Read(t.Context(), "docs/escapes.txt", 0, 0); err != nil || e.Text != "" || e.LastLine != 0 || !e.Truncated {
		t.Errorf("a line that grows over the limit: %+v, %v", e, err)
	}
	small := MustStart(t, Options{Roots: []string{root}, Limits: Limits{ResultBytes: 99}})
	if e, err := small.Read(t.Context(), "docs/lines.txt", 11, 0); err != nil || e.LastLine != 20 || !e.Truncated || len(e.Text) != 99 {
		t.Errorf("lines over the limit: %+v, %v", e, err)
	}
}

// Ensures that a search finds what is there, in the order of names, and shows
// the part of a line that matched.
func TestSearch(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{
		"a.md": "alpha\nneedle (1)\r\nomega needle", "b/c.md": "x\nneedle\n", "b/d.txt": "Needle\n", "z.md": "nothing",
		".env": "needle", "app.db": "needle", "bin": "needle\x00", "b/.hidden/x": "needle",
		"long.md": strings.Repeat("é", 3000) + "needle" + strings.Repeat("ü", 3000),
	})
	r := MustStart(t, Options{Roots: []string{root}})
	all := []Match{
		{"docs/a.md", 2, "needle (1)"}, {"docs/a.md", 3, "omega needle"}, {"docs/b/c.md", 2, "needle"},
		{"docs/long.md", 1, "…" + strings.Repeat("é", matchLead/2) + "needle" + strings.Repeat("ü", (maxMatchBytes-matchLead-6)/2) + "…"},
	}
	for _, test := range []struct {
		query Query
		want  []Match
		files int
	}{
		{Query{Pattern: "needle"}, all, 5},
		{Query{Pattern: "needle", Path: "docs"}, all, 5},
		{Query{Pattern: "needle", Path: "docs/b/"}, all[2:3], 2},
		{Query{Pattern: "needle", Path: "docs/a.md"}, all[:2], 1},
		{Query{Pattern: "(?i)^needle$", Regexp: true, Path: "docs/b"}, []Match{all[2], {"docs/b/d.txt", 1, "Needle"}}, 2},
		{Query{Pattern: "needle (1)"}, all[:1], 5},
		{Query{Pattern: `needle \(\d\)`, Regexp: true}, all[:1], 5},
		{Query{Pattern: "("}, all[:1], 5},
		{Query{Pattern: "\n"}, []Match{}, 5},
		{Query{Pattern: "absent"}, []Match{}, 5},
	} {
		got, err := r.Search(t.Context(), test.query)
		if want := (Matches{Matches: test.want, Files: test.files}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Search(%+v) = %+v, %v\nwant %+v", test.query, got, err, want)
		}
	}
	for pattern, isRegexp := range map[string]bool{
		"": false, "(": true, `\1`: true, "a{1001}": true, "(a{100}){100}": true, "((a{10}){10}){100}": true,
		"\xff": true, strings.Repeat("a", 1001): false, strings.Repeat("(", 999): true,
	} {
		if _, err := r.Search(t.Context(), Query{Pattern: pattern, Regexp: isRegexp}); !errors.Is(err, ErrInvalid) {
			t.Errorf("pattern %.20q: %v", pattern, err)
		}
	}
	for path, want := range map[string]error{
		"docs/absent": ErrNotReadable, "docs/.env": ErrNotReadable, "other": ErrNotReadable, "docs/bin": ErrBinary, "docs/app.db": ErrNotReadable,
	} {
		if _, err := r.Search(t.Context(), Query{Pattern: "needle", Path: path}); !errors.Is(err, want) {
			t.Errorf("search of %q: %v, want %v", path, err, want)
		}
	}
}

// Ensures that every bound of a search ends it and is told.
func TestSearchLimits(t *testing.T) {
	t.Parallel()
	files := map[string]string{"zz.bin": "\x00", "zz.db": "needle"}
	for i := range 20 {
		files[fmt.Sprintf("f%02d.md", i)] = "needle\n"
	}
	root := MustRoot(t, files)
	large := MustRoot(t, map[string]string{"large.md": "needle" + strings.Repeat("x", mib), "small.md": "needle"})
	wide := MustRoot(t, map[string]string{"wide.md": strings.Repeat("x", maxSearchedLine) + "needle\nneedle"})
	for name, test := range map[string]struct {
		root           string
		limits         Limits
		matches, files int
		truncated      bool
	}{
		"none":                {root, Limits{}, 20, 20, false},
		"matches, just":       {root, Limits{Matches: 20}, 20, 20, false},
		"matches":             {root, Limits{Matches: 19}, 19, 19, true},
		"files, just":         {root, Limits{SearchFiles: 21}, 20, 20, false},
		"files":               {root, Limits{SearchFiles: 10}, 10, 10, true},
		"bytes":               {root, Limits{SearchBytes: 7 * 5}, 5, 5, true},
		"result bytes":        {root, Limits{ResultBytes: 3 * len("docs/f00.mdneedle")}, 3, 3, true},
		"a file too large":    {large, Limits{}, 1, 1, false},
		"an overlong line":    {wide, Limits{}, 1, 1, true},
		"too large for bytes": {large, Limits{SearchBytes: 10}, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := MustStart(t, Options{Roots: []string{test.root}, Limits: test.limits})
			got, err := r.Search(t.Context(), Query{Pattern: "needle"})
			if err != nil || got.Truncated != test.truncated || len(got.Matches) != test.matches || got.Files != test.files {
				t.Errorf("%d matches in %d files, truncated %v, %v; want %+v",
					len(got.Matches), got.Files, got.Truncated, err, test)
			}
		})
	}
}

// Ensures that a search that runs out of time answers with what it has.
func TestSearchTime(t *testing.T) {
	t.Parallel()
	root := MustRoot(t, map[string]string{"a.md": "needle\n", "b.md": strings.Repeat("lorem ipsum dolor\n", 50_000)})
	r := MustStart(t, Options{Roots: []string{root}, Limits: Limits{Time: 2 * time.Millisecond}})
	got, err := r.Search(t.Context(), Query{Pattern: "n(e|o)+dle( .*)*$", Regexp: true})
	if err != nil || !got.Truncated || got.Files > 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Ensures that requests made at the same time each get their own answer, across
// replacements of the child.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for i := range 10 {
		files[fmt.Sprintf("%d.md", i)] = fmt.Sprintf("file %d", i)
	}
	r := MustStart(t, Options{Roots: []string{MustRoot(t, files)}, Limits: Limits{Requests: 7}})
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			for range 5 {
				e, err := r.Read(context.Background(), fmt.Sprintf("docs/%d.md", i), 0, 0)
				if err != nil || e.Text != fmt.Sprintf("file %d", i) {
					t.Errorf("file %d: %+v, %v", i, e, err)
				}
			}
		})
	}
	wg.Wait()
}

// Ensures that a reader works hard without the one thing it cannot have, a
// further thread: garbage is collected, and no child ends on the way.
func TestHardWork(t *testing.T) {
	t.Parallel()
	r := MustStart(t, Options{
		Roots:  []string{MustRoot(t, map[string]string{"a.md": strings.Repeat("lorem ipsum dolor\n", 20_000)})},
		Limits: Limits{Requests: 1 << 20, Time: time.Minute, Memory: minMemory, ResultBytes: maxResult, Lines: 1 << 20},
	})
	child := r.child
	before := threads(t, child.cmd.Process.Pid)
	for i := range 40 {
		if _, err := r.Read(t.Context(), "docs/a.md", 1+i, 0); err != nil {
			t.Fatal(err)
		}
		if i%20 != 0 {
			continue
		}
		if _, err := r.Search(t.Context(), Query{Pattern: "ipsun|dolox", Regexp: true}); err != nil {
			t.Fatal(err)
		}
	}
	if r.child != child {
		t.Error("the child was replaced")
	}
	if after := threads(t, child.cmd.Process.Pid); !slices.Equal(after, before) {
		t.Errorf("threads %v became %v", before, after)
	}
}

// Ensures that denied paths beneath a root are named without starting anything,
// and that roots are refused for the reasons that Start has.
func TestOptions_DeniedBeneath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	got, err := Options{Roots: []string{dir}, Deny: []string{secret, "/elsewhere"}}.DeniedBeneath()
	if err != nil || !slices.Equal(got, []string{secret}) {
		t.Errorf("DeniedBeneath = %q, %v", got, err)
	}
	for _, root := range []string{secret, "/", "relative"} {
		if _, err := (Options{Roots: []string{root}, Deny: []string{secret}}).DeniedBeneath(); err == nil {
			t.Errorf("the root %s is not refused", root)
		}
	}
}
