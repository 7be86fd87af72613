package sandbox

// Entry is a file or directory in a [Listing].
type Entry struct {
	// Path is what Read, List and Search take: the root's name and the names
	// below it, joined by slashes.
	Path string `json:"path"`
	// Dir tells a directory from a file.
	Dir bool `json:"dir,omitzero"`
	// Size is a file's length in bytes, 0 for a directory.
	Size int64 `json:"size,omitzero"`
}

// Listing is what a directory holds, sorted by name, without what is closed.
type Listing struct {
	Entries []Entry `json:"entries"`
	// Truncated says that a limit left entries out.
	Truncated bool `json:"truncated,omitzero"`
}

// Excerpt is a range of a file's lines.
type Excerpt struct {
	Path string `json:"path"`
	// FirstLine and LastLine are the range that Text holds, counted from 1 and
	// both included. LastLine is FirstLine-1 where the file has no such lines.
	FirstLine int `json:"first_line"`
	LastLine  int `json:"last_line"`
	// TotalLines is how many lines the file has.
	TotalLines int `json:"total_lines"`
	// Text is the lines joined by line feeds, without one at the end. Invisible
	// characters and invalid bytes are spelled out as by untrusted.Visible.
	Text string `json:"text"`
	// Truncated says that a limit cut the range, or a line of it, short.
	Truncated bool `json:"truncated,omitzero"`
}

// Match is a line that a pattern was found in.
type Match struct {
	Path string `json:"path"`
	// Line is the line's number, counted from 1.
	Line int `json:"line"`
	// Text is the line, or the part around the first match where the line is
	// long, made visible as in [Excerpt].
	Text string `json:"text"`
}

// Matches are the matching lines of the searched files, which are walked in the
// order of their names.
type Matches struct {
	Matches []Match `json:"matches"`
	// Files is how many files were searched to the end.
	Files int `json:"files"`
	// Truncated says that a limit, of time too, ended the search early, or that
	// the rest of an overlong line was not looked at.
	Truncated bool `json:"truncated,omitzero"`
}
