package workspace

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Words that mention every member of a group (section 5.3).
var broadcasts = []string{"all", "所有人"}

// NameKey returns what makes an agent's name unique among those of its owner:
// two names with the same key are the same name (sections 2.1 and 5.2). It
// ignores case and Unicode forms, rune by rune, exactly as mentions do, so that
// an exact mention is never ambiguous.
func NameKey(name string) string {
	return string(foldRunes(norm.NFC.String(trim(name))))
}

// foldRunes returns the runes of s without their case.
func foldRunes(s string) []rune {
	runes := []rune(s)
	for i, r := range runes {
		runes[i] = foldRune(r)
	}
	return runes
}

// foldRune returns the smallest of the runes that differ from r in case only.
func foldRune(r rune) rune {
	smallest := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		smallest = min(smallest, next)
	}
	return smallest
}

func isBroadcast(name string) bool {
	for _, word := range broadcasts {
		if NameKey(name) == NameKey(word) {
			return true
		}
	}
	return false
}
