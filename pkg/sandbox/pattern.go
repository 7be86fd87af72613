package sandbox

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	maxPatternBytes = 1000
	patternRule     = "the pattern must be 1 to 1000 bytes of UTF-8"
	// maxPatternCost bounds the compiled pattern, in instructions: matching
	// takes at most that many steps for each byte.
	maxPatternCost = 5000
)

// matcher returns where a line first matches, or -1.
type matcher func(line []byte) int

// compile returns the matcher of a literal or of an RE2 pattern.
func compile(pattern string, isRegexp bool) (matcher, error) {
	if pattern == "" || len(pattern) > maxPatternBytes || !utf8.ValidString(pattern) {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, patternRule)
	}
	if !isRegexp {
		literal := []byte(pattern)
		return func(line []byte) int { return bytes.Index(line, literal) }, nil
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if cost(parsed) > maxPatternCost {
		return nil, fmt.Errorf("%w: the pattern is too complex", ErrInvalid)
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return func(line []byte) int {
		if found := expression.FindIndex(line); found != nil {
			return found[0]
		}
		return -1
	}, nil
}

// cost estimates the instructions of a pattern before it is compiled: counted
// repetitions are written out, and multiply where they are nested.
func cost(re *syntax.Regexp) int {
	total := 1
	if re.Op == syntax.OpLiteral {
		total = len(re.Rune)
	}
	for _, sub := range re.Sub {
		total += cost(sub)
	}
	if re.Op == syntax.OpRepeat {
		total *= max(re.Min, re.Max, 1)
	}
	return min(total, 1<<20)
}
