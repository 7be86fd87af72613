package passage

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The size of a passage. One ends with the paragraph that makes it long enough,
// at the latest where it would be too long.
const (
	enoughRunes = 400
	maxRunes    = 1200
	maxLines    = 24
)

// section is a passage and the headings that it stands under.
type section struct {
	Passage
	headings string
}

// splitter cuts one file into sections.
type splitter struct {
	path     string
	markdown bool
	trail    []string // the headings that are open, one for each level
	fenced   bool     // inside a block of code, where a blank line or "#" means nothing

	first    int // the number of lines[0]
	lines    []string
	runes    int
	bodied   bool // lines hold more than headings and blank lines
	headings string
	sections []section
}

// split returns the sections of a file: paragraphs that stand together under a
// heading. Only Markdown has headings. What holds no letter and no digit is left
// out.
func split(name string, lines []string) []section {
	ext := strings.ToLower(path.Ext(name))
	s := &splitter{path: name, markdown: ext == ".md" || ext == ".markdown"}
	for i, line := range lines {
		s.add(i+1, line)
	}
	s.flush()
	return s.sections
}

// add takes the line with number n.
func (s *splitter) add(n int, line string) {
	trimmed := strings.TrimSpace(line)
	fence := s.markdown && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"))
	if fence {
		s.fenced = !s.fenced
	}
	level := 0
	if s.markdown && !s.fenced && !fence {
		level = headingLevel(trimmed)
	}
	isBreak := trimmed == "" && !s.fenced
	runes := utf8.RuneCountInString(line)
	switch {
	case level > 0 && s.bodied,
		isBreak && s.runes >= enoughRunes,
		len(s.lines) >= maxLines,
		s.runes+runes > maxRunes:
		s.flush()
	}
	if level > 0 {
		s.open(level, strings.Trim(trimmed, "# \t"))
	}
	if trimmed == "" && len(s.lines) == 0 {
		return
	}
	s.append(n, line, runes)
	s.bodied = s.bodied || trimmed != "" && level == 0
}

func (s *splitter) append(n int, line string, runes int) {
	if len(s.lines) == 0 {
		s.first = n
		s.headings = strings.Join(s.trail, " ")
	}
	s.lines = append(s.lines, line)
	s.runes += runes
}

// open begins what stands under a heading and ends what stood under its equals.
func (s *splitter) open(level int, title string) {
	s.trail = append(s.trail[:min(level-1, len(s.trail))], title)
}

// flush makes a section of the lines so far, if there is anything to it.
func (s *splitter) flush() {
	lines := s.lines
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	text := strings.Join(lines, "\n")
	if strings.ContainsFunc(text, isWordRune) {
		s.sections = append(s.sections, section{
			Passage:  Passage{Path: s.path, First: s.first, Last: s.first + len(lines) - 1, Text: text},
			headings: s.headings,
		})
	}
	s.lines, s.runes, s.bodied = nil, 0, false
}

// headingLevel returns how many number signs make the line a heading, 0 if it is
// none.
func headingLevel(line string) int {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	if level > 6 || level == len(line) || !unicode.IsSpace(rune(line[level])) {
		return 0
	}
	return level
}
