// Package untrusted makes text that strangers wrote safe to look at.
//
// Nothing it returns can move a cursor, change a colour, reorder a line, hide a
// word or reach over the lines around it: what has no visible form of its own is spelled out as ⟦U+XXXX⟧. The
// same form is given to people on a terminal and to a language model, so that
// neither is told what the other cannot see.
package untrusted

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	zwnj = '\u200c'
	zwj  = '\u200d'
	// maxStacked is how many marks every script of daily use can do with on one
	// character.
	maxStacked = 4
)

// Visible returns text with every control, escape, bidirectional, tag,
// zero-width and otherwise invisible character spelled out as ⟦U+XXXX⟧. Line
// feeds and tabs stay. So do a single joiner between two characters outside
// ASCII and a single variation selector behind a visible character, without
// which emoji and several scripts cannot be written; sequences of them, and the
// tag sequences of regional flags, are spelled out. Of the marks that stand above,
// below or around one character the first four stay.
func Visible(text string) string {
	return visible(text, func(r rune) bool { return r == '\n' || r == '\t' }, bracketed)
}

// Line returns text as [Visible] does, on a single line: line feeds and tabs
// are spelled out as well.
func Line(text string) string {
	return visible(text, func(rune) bool { return false }, bracketed)
}

// JSON returns a JSON document of valid UTF-8 on a single line that means the
// same and in which every character that [Visible] spells out is written as an
// escape. JSON itself demands that only of the controls in ASCII.
func JSON(document string) string {
	return visible(document, func(rune) bool { return false }, escaped)
}

func bracketed(r rune) string { return fmt.Sprintf("⟦U+%04X⟧", r) }

func escaped(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// FirstLine returns the first line of text that is not blank as [Line] does,
// cut to at most width code points, with an ellipsis where something was left
// out.
func FirstLine(text string, width int) string {
	text = strings.TrimSpace(text)
	line, _, more := strings.Cut(text, "\n")
	shown := []rune(Line(strings.TrimSpace(line)))
	if len(shown) > width {
		return string(shown[:width-1]) + "…"
	}
	if more && len(shown) < width {
		return string(shown) + "…"
	}
	return string(shown)
}

// visible replaces what neither shows nor is kept by what spell makes of it.
func visible(text string, keep func(rune) bool, spell func(rune) string) string {
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	previous := rune(-1)
	stacked := 0
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		next, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case stacks(r):
			stacked++
		case shows(r):
			stacked = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "⟦0x%02X⟧", text[i])
		case keep(r), shows(r) && stacked <= maxStacked, joins(previous, r, next), selects(previous, r):
			b.WriteRune(r)
		default:
			b.WriteString(spell(r))
		}
		previous = r
	}
	return b.String()
}

// isPlain is the common case: nothing but printable ASCII.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// shows reports whether r has a visible form of its own. Unicode's graphic
// characters leave out controls, format characters, line separators, private
// use and unassigned code points; some letters and marks are blank all the same.
func shows(r rune) bool {
	if r == ' ' {
		return true
	}
	return unicode.IsPrint(r) && !isBlank(r) && !unicode.Is(unicode.Variation_Selector, r)
}

// stacks reports whether r is drawn onto the character before it and takes no
// room of its own.
func stacks(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) }

// isBlank lists printable characters that are drawn as nothing.
func isBlank(r rune) bool {
	switch r {
	case '\u034f', // combining grapheme joiner
		'\u115f', '\u1160', '\u3164', '\uffa0', // Hangul fillers
		'\u17b4', '\u17b5', // Khmer inherent vowels
		'\u2800': // Braille blank
		return true
	}
	return false
}

// joins reports whether r is one joiner between two visible characters outside
// ASCII, as in a family emoji or a Persian word.
func joins(previous, r, next rune) bool {
	return (r == zwj || r == zwnj) && isVisibleBeyondASCII(previous) && isVisibleBeyondASCII(next)
}

// isVisibleBeyondASCII also takes the emoji variation selector for visible,
// which stands before the joiner in many sequences.
func isVisibleBeyondASCII(r rune) bool {
	return r > unicode.MaxASCII && r != utf8.RuneError && (shows(r) || r == '\ufe0f')
}

// selects reports whether r is one variation selector behind a character that
// can take one: anything visible outside ASCII, or the base of a keycap.
func selects(previous, r rune) bool {
	if r != '\ufe0e' && r != '\ufe0f' {
		return false
	}
	isKeycap := previous >= '0' && previous <= '9' || previous == '#' || previous == '*'
	return isKeycap || previous > unicode.MaxASCII && shows(previous)
}
