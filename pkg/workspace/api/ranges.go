package api

import (
	"math"
	"strconv"
	"strings"
)

// span is a piece of a file: its first byte and its length, in bytes.
type span struct{ start, length int64 }

// parseRange reads a Range header for a file of the given size: one of "a-b",
// "a-" and "-n" bytes, which is cut at the file's end. What is malformed, names
// several pieces or none of the file's bytes is no range (section 3.7).
func parseRange(header string, size int64) (span, bool) {
	spec, ok := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(strings.Trim(spec, " \t"), "-")
	if !ok || !dash || size == 0 {
		return span{}, false
	}
	if first == "" {
		n, ok := parseBytes(last)
		n = min(n, size)
		return span{size - n, n}, ok && n > 0
	}
	start, ok := parseBytes(first)
	if !ok || start >= size {
		return span{}, false
	}
	end := size - 1
	if last != "" {
		given, ok := parseBytes(last)
		if !ok || given < start {
			return span{}, false
		}
		end = min(given, end)
	}
	return span{start, end - start + 1}, true
}

// parseBytes reads a number of bytes. One that is too large for any file is the
// largest.
func parseBytes(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return math.MaxInt64, true // nothing but digits can only be too many of them
	}
	return n, true
}
