package cli

import (
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/sys/unix"
	"golang.org/x/text/width"
)

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// terminalColumns returns how many cells wide the terminal is that w writes to
// just now, and 0 when w writes to none.
func terminalColumns(w io.Writer) int {
	const usual = 80
	file, ok := w.(*os.File)
	if !ok || !isTerminal(file) {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usual
	}
	return int(size.Col)
}

// fold breaks a line that is safe to look at so that no part of it is wider than
// the columns, and begins each further part with prefix. Left to a terminal, the
// parts would begin at the margin, where headers stand. Tabs become spaces; for
// 0 columns nothing changes.
func fold(line, prefix string, columns int) string {
	if columns == 0 {
		return line
	}
	f := folder{prefix: prefix, columns: columns}
	for state := -1; line != ""; {
		var cluster string
		var cells int
		cluster, line, cells, state = uniseg.FirstGraphemeClusterInString(line, state)
		f.addCluster(cluster, cells)
	}
	return f.out.String()
}

// folder is the work of fold.
type folder struct {
	prefix  string
	columns int
	out     strings.Builder
	column  int
	begin   int // the column behind the prefix
}

// addCluster adds what is drawn as one character, and is cells wide for a
// terminal that knows how. Others draw each of its parts, so the wider counts.
func (f *folder) addCluster(cluster string, cells int) {
	if cluster == "\t" {
		const stop = 8
		for f.add(" ", 1); f.column%stop != 0 && f.column < f.columns; {
			f.add(" ", 1)
		}
		return
	}
	parts := 0
	for _, r := range cluster {
		parts += cellsOf(r)
	}
	if cells = max(cells, parts); cells <= f.columns-len(f.prefix) {
		f.add(cluster, cells)
		return
	}
	for _, r := range cluster {
		f.add(string(r), cellsOf(r))
	}
}

func (f *folder) add(text string, cells int) {
	if f.column+cells > f.columns && f.column > f.begin {
		f.out.WriteString("\n" + f.prefix)
		f.begin = len(f.prefix)
		f.column = f.begin
	}
	f.out.WriteString(text)
	f.column += cells
}

// cellsOf returns how many cells a terminal may take for r that knows of no
// sequences: what is wide to some is wide, as a line that is broken too early
// does no harm.
func cellsOf(r rune) int {
	const (
		emojiStyle    = '\ufe0f' // widens the symbol before it
		mixedSymbols  = '\u2600' // from here on terminals differ
		wide, regular = 2, 1
	)
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return wide
	}
	switch {
	case r == emojiStyle:
		return regular
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= mixedSymbols && unicode.Is(unicode.So, r):
		return wide
	}
	return regular
}
