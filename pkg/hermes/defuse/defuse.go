// Package defuse makes text that strangers wrote inert for Hermes.
//
// Hermes expands references such as @file:PATH and @url:LINK inside a message
// before any model sees it, by reading its host's files or fetching the link
// (hermes-upstream section 1.4). Of what [Text] returns nothing is expanded, and
// nothing in it passes for the marker by which relay finds its own runs again.
// This also holds for what Unicode normalisation (NFKC) makes of it.
//
// One duty stays with the caller: a prompt never begins with such text, so that
// it cannot be read as a command, an option or a stop phrase.
package defuse

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// joiner is the word joiner: it has no width, breaks no line, is no white space,
// and survives every Unicode normal form.
const joiner = '\u2060'

// Text returns text with a word joiner behind every at sign, and behind every
// opening bracket that could begin a marker ("[relay-run:") in any letter case
// or look-alike; in place of control characters other than line feed and tab it
// has nothing, and U+FFFD in place of bytes that are not UTF-8. Everything else
// is kept. Text that was defused before is returned as it is, and defused texts
// may be joined.
//
// Every at sign is broken, more than the contract asks for: plug-ins add kinds
// of references, and matching without regard to case takes some letters outside
// ASCII for ones inside.
func Text(text string) string {
	text = withoutControls(text)
	var b strings.Builder
	b.Grow(len(text) + 8)
	for i, r := range text {
		b.WriteRune(r)
		next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		if next != joiner && (isAt(r) || isBracket(r) && mayBeginMarker(next)) {
			b.WriteRune(joiner)
		}
	}
	return b.String()
}

// Restore returns what a model wrote without the joiners behind its at signs,
// which it copied from defused text: an address with an invisible character in
// it works nowhere. The result is for people, never for Hermes.
func Restore(text string) string {
	return strings.ReplaceAll(text, "@"+string(joiner), "@")
}

// withoutControls also makes text valid UTF-8, which its caller counts on.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// isAt reports whether r is an at sign once it is normalised.
func isAt(r rune) bool { return r == '@' || r == '\uff20' || r == '\ufe6b' }

// isBracket reports whether r is an opening square bracket once it is normalised.
func isBracket(r rune) bool { return r == '[' || r == '\uff3b' || r == '\ufe47' }

// mayBeginMarker reports whether r, behind a bracket, may be the marker's first
// letter, or something invisible before it. Other ASCII, and so most of what
// stands behind brackets, cannot.
func mayBeginMarker(r rune) bool { return r == 'r' || r == 'R' || r > unicode.MaxASCII }
