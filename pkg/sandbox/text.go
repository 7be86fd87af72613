package sandbox

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/untrusted"
)

// ellipsis marks where a line was cut.
const ellipsis = "…"

// readText reads a whole file, of size bytes a moment ago and of at most limit,
// that holds no NUL. A byte order mark is dropped.
func readText(file *os.File, size, limit int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(file, limit+1)); err != nil {
		return nil, ErrNotReadable
	}
	text := b.Bytes()
	if int64(len(text)) > limit {
		return nil, ErrTooLarge
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, ErrBinary
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

// cutLine returns the first line of text, without its end, and what follows.
func cutLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// countLines counts as cutLine cuts: a line feed at the end begins no line.
func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// clip returns the bytes of line from about start on, at most width of them,
// made visible, with an ellipsis at each end that was cut. It never cuts a code
// point in two, which would make two invalid ones of it.
func clip(line []byte, start, width int) (text string, cut bool) {
	end := len(line)
	if end <= width {
		return untrusted.Visible(string(line)), false
	}
	start = runeStart(line, min(start, end-width))
	end = runeStart(line, start+width)
	text = untrusted.Visible(string(line[start:end]))
	if start > 0 {
		text = ellipsis + text
	}
	if end < len(line) {
		text += ellipsis
	}
	return text, true
}

// runeStart moves an offset back to the beginning of the code point it is in.
func runeStart(line []byte, offset int) int {
	for back := offset; back > 0 && offset-back < utf8.UTFMax; back-- {
		if back == len(line) || utf8.RuneStart(line[back]) {
			return back
		}
	}
	return offset
}
