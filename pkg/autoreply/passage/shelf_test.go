package passage_test

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/sandbox"
)

// shelf is a reader of files in memory.
type shelf struct {
	mu    sync.Mutex
	files map[string]string
	fail  map[string]error // by path: what Read, or List for a directory, fails with
	step  int              // lines in one excerpt
	lists int
	reads int
}

func (s *shelf) List(_ context.Context, dir string) (sandbox.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if err := s.fail[dir]; err != nil {
		return sandbox.Listing{}, err
	}
	entries := map[string]sandbox.Entry{}
	for name, text := range s.files {
		rest, ok := strings.CutPrefix(name, dir)
		if rest = strings.TrimPrefix(rest, "/"); !ok || dir != "" && rest == name[len(dir):] {
			continue
		}
		first, _, below := strings.Cut(rest, "/")
		entry := sandbox.Entry{Path: path.Join(dir, first), Dir: below}
		if !below {
			entry.Size = int64(len(text))
		}
		entries[entry.Path] = entry
	}
	var listing sandbox.Listing
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		listing.Entries = append(listing.Entries, entries[name])
	}
	return listing, nil
}

func (s *shelf) Read(_ context.Context, name string, first, _ int) (sandbox.Excerpt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if err := s.fail[name]; err != nil {
		return sandbox.Excerpt{}, err
	}
	lines := strings.Split(strings.TrimSuffix(s.files[name], "\n"), "\n")
	last := len(lines)
	if s.step > 0 {
		last = min(last, first+s.step-1)
	}
	excerpt := sandbox.Excerpt{Path: name, FirstLine: first, LastLine: last, TotalLines: len(lines), Truncated: last < len(lines)}
	if shown := lines[first-1 : last]; len(shown[0]) > 4000 {
		excerpt.LastLine = first - 1 // as the reader does when not even one line fits
	} else {
		excerpt.Text = strings.Join(shown, "\n")
	}
	return excerpt, nil
}

// set replaces a file.
func (s *shelf) set(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = text
}

// counts returns how often was listed and read.
func (s *shelf) counts() (lists, reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.reads
}

// MustSearch returns where the passages found are.
func MustSearch(t testing.TB, x *passage.Index, question string) []string {
	t.Helper()
	found, err := x.Search(t.Context(), question, 3)
	if err != nil {
		t.Fatalf("Search(%q): %v", question, err)
	}
	var places []string
	for _, p := range found {
		places = append(places, fmt.Sprintf("%s:%d-%d", p.Path, p.First, p.Last))
	}
	return places
}

// newIndex returns an index that is closed with the test.
func newIndex(t testing.TB, o passage.Options) *passage.Index {
	t.Helper()
	x := passage.New(o)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}
