package extract

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/untrusted"
)

const (
	ellipsis = "…"
	// minRoom is how many code points of a passage there must be room for, or it
	// is not worth a beginning.
	minRoom = 40
)

// quotation is a passage as it stands in an answer.
type quotation struct {
	path string
	text string
}

// quote returns quotations of the passages that fit, in all and with an empty
// line before each, into room code points. The last one may be cut, which it
// says.
func quote(passages []passage.Passage, room int) []quotation {
	var quotations []quotation
	for _, p := range passages {
		room -= len("\n\n")
		text, ok := quoteOne(p, room)
		if !ok {
			break
		}
		room -= utf8.RuneCountInString(text)
		quotations = append(quotations, quotation{p.Path, text})
	}
	return quotations
}

// quoteOne returns a passage's place and its lines as a quotation of at most
// room code points, cut where they do not fit; ok is false when there is no room
// worth it.
func quoteOne(p passage.Passage, room int) (text string, ok bool) {
	lines := quotedLines(p.Text)
	room -= utf8.RuneCountInString(place(p, p.Last))
	if kept := fitting(lines, room); kept == len(lines) {
		return place(p, p.Last) + strings.Join(lines, ""), true
	}
	if room < minRoom {
		return "", false
	}
	kept := fitting(lines, room-utf8.RuneCountInString(quoted(ellipsis)))
	if kept == 0 {
		return place(p, p.First) + clip(lines[0], room), true
	}
	return place(p, p.First+kept-1) + strings.Join(lines[:kept], "") + quoted(ellipsis), true
}

// fitting counts the lines from the first on that together fit into room code
// points.
func fitting(lines []string, room int) int {
	for i, line := range lines {
		if room -= utf8.RuneCountInString(line); room < 0 {
			return i
		}
	}
	return len(lines)
}

// place is where a quotation comes from.
func place(p passage.Passage, last int) string {
	return fmt.Sprintf("%s:%d-%d", untrusted.Line(p.Path), p.First, last)
}

func quotedLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = quoted(line)
	}
	return lines
}

// quoted is a line of a quotation, with the end of the line before it.
func quoted(line string) string { return "\n> " + line }

// clip returns text, cut to at most width code points with an ellipsis where
// something was left out.
func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 0)]) + ellipsis
}
