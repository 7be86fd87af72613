package sandbox

import (
	"fmt"
	"strings"
)

// maxLineBytes is how much of a line a Read shows.
const maxLineBytes = 4 * kib

// read serves opRead.
func (f *forest) read(req request) (*Excerpt, error) {
	first, last := max(req.FirstLine, 1), req.LastLine
	if req.FirstLine < 0 || req.LastLine < 0 || last > 0 && last < first {
		return nil, fmt.Errorf("%w: the line range %d to %d is empty", ErrInvalid, req.FirstLine, req.LastLine)
	}
	text, path, err := f.load(req.Path)
	if err != nil {
		return nil, err
	}
	excerpt := &Excerpt{Path: path, FirstLine: first, LastLine: first - 1, TotalLines: countLines(text)}
	if last == 0 || last > excerpt.TotalLines {
		last = excerpt.TotalLines
	}
	for range min(first-1, excerpt.TotalLines) {
		_, text = cutLine(text)
	}
	f.fill(excerpt, text, last)
	return excerpt, nil
}

// fill appends lines to the excerpt until last or a limit is reached.
func (f *forest) fill(excerpt *Excerpt, text []byte, last int) {
	var b strings.Builder
	for excerpt.LastLine < last {
		var line []byte
		line, text = cutLine(text)
		shown, cut := clip(line, 0, maxLineBytes)
		if excerpt.LastLine >= excerpt.FirstLine {
			shown = "\n" + shown
		}
		if excerpt.LastLine-excerpt.FirstLine+1 >= f.limits.Lines || b.Len()+len(shown) > f.limits.ResultBytes {
			excerpt.Truncated = true
			break
		}
		b.WriteString(shown)
		excerpt.LastLine++
		excerpt.Truncated = excerpt.Truncated || cut
	}
	excerpt.Text = b.String()
}

// load returns the text of the file at path.
func (f *forest) load(path string) ([]byte, string, error) {
	at, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	if len(at.names) == 0 {
		return nil, "", ErrNotReadable
	}
	last := len(at.names) - 1
	dir, err := f.walk(location{root: at.root, names: at.names[:last]})
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	file, size, err := f.open(dir, at.names[last])
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }()
	text, err := readText(file, size, f.limits.FileSize)
	return text, at.String(), err
}
