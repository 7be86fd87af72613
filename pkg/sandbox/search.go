package sandbox

import (
	"errors"
	"time"
)

const (
	// maxSearchedLine is how much of a line is looked at: with it a pattern's
	// cost bounds how late a search notices that its time is up.
	maxSearchedLine = 16 * kib
	// maxMatchBytes is how much of a matching line is shown, and matchLead how
	// much of that stands before the match.
	maxMatchBytes = 400
	matchLead     = 100
)

// errEnough ends a walk that has reached a limit.
var errEnough = errors.New("a limit is reached")

// search is one search under way. Its results are counted against the limits
// as they come.
type search struct {
	forest   *forest
	match    matcher
	deadline time.Time
	result   *Matches
	opened   int   // files
	bytes    int64 // read from them
	room     int   // bytes left in the result
}

// search serves opSearch.
func (f *forest) search(req request) (*Matches, error) {
	match, err := compile(req.Pattern, req.Regexp)
	if err != nil {
		return nil, err
	}
	at, err := parsePath(req.Path)
	if err != nil {
		return nil, err
	}
	s := &search{
		forest:   f,
		match:    match,
		deadline: time.Now().Add(time.Duration(req.BudgetMS) * time.Millisecond),
		result:   &Matches{Matches: []Match{}},
		room:     f.limits.ResultBytes,
	}
	err = s.start(at)
	if errors.Is(err, errEnough) {
		s.result.Truncated = true
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return s.result, nil
}

// start searches all roots, a directory or a single file. Only the last tells
// why it cannot be searched.
func (s *search) start(at location) error {
	if at.root == "" {
		for _, t := range s.forest.trees {
			if err := s.tree(location{root: t.name}); err != nil {
				return err
			}
		}
		return nil
	}
	err := s.tree(at)
	if !errors.Is(err, ErrNotReadable) || len(at.names) == 0 {
		return err
	}
	last := len(at.names) - 1
	dir, err := s.forest.walk(location{root: at.root, names: at.names[:last]})
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.file(dir, at.names[last])
}

// tree searches the directory at a location.
func (s *search) tree(at location) error {
	dir, err := s.forest.walk(at)
	if err != nil {
		return err
	}
	return s.directory(dir)
}

// directory searches what is in dir, in the order of names, and closes it. What
// cannot be read is passed over.
func (s *search) directory(dir *directory) error {
	defer dir.Close()
	names, complete, err := dir.list()
	if err != nil {
		return err
	}
	s.result.Truncated = s.result.Truncated || !complete
	for _, name := range names {
		if s.isLate() {
			return errEnough
		}
		if err := s.entry(dir, name); errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

func (s *search) entry(dir *directory, name string) error {
	info, ok := dir.lookup(name)
	if !ok {
		return ErrNotReadable
	}
	if !info.IsDir() {
		return s.file(dir, name)
	}
	sub, err := dir.enter(name)
	if err != nil {
		return err
	}
	return s.directory(sub)
}

// file searches one file.
func (s *search) file(dir *directory, name string) error {
	file, size, err := s.forest.open(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if s.opened >= s.forest.limits.SearchFiles || s.bytes+size > s.forest.limits.SearchBytes {
		return errEnough
	}
	s.opened++
	text, err := readText(file, size, s.forest.limits.FileSize)
	s.bytes += int64(len(text))
	if err != nil {
		return err
	}
	if err := s.lines(dir.path(name), text); err != nil {
		return err
	}
	s.result.Files++
	return nil
}

func (s *search) lines(path string, text []byte) error {
	for number := 1; len(text) > 0; number++ {
		if s.isLate() {
			return errEnough
		}
		var line []byte
		line, text = cutLine(text)
		if len(line) > maxSearchedLine {
			line = line[:runeStart(line, maxSearchedLine)]
			s.result.Truncated = true
		}
		at := s.match(line)
		if at < 0 {
			continue
		}
		if !s.add(path, number, line, at) {
			return errEnough
		}
	}
	return nil
}

// add records a match, or says by false that there is no room for it.
func (s *search) add(path string, number int, line []byte, at int) bool {
	shown, _ := clip(line, max(0, at-matchLead), maxMatchBytes)
	s.room -= len(path) + len(shown)
	if len(s.result.Matches) >= s.forest.limits.Matches || s.room < 0 {
		return false
	}
	s.result.Matches = append(s.result.Matches, Match{Path: path, Line: number, Text: shown})
	return true
}

func (s *search) isLate() bool { return !time.Now().Before(s.deadline) }
