package gateway

import (
	"bytes"
	"strings"

	"github.com/newos4/relay/pkg/hermes"
)

// joiner is what package defuse puts behind at signs, which models copy.
const joiner = "\u2060"

// scrubber takes the turn's marker and the joiners of defused text from what a
// model streams, also where a piece ends amid them.
type scrubber struct {
	marker string
	held   string // may yet become a marker or a joiner
}

func newScrubber(marker hermes.Marker) *scrubber { return &scrubber{marker: marker.String()} }

// feed takes the next piece and returns what may be shown.
func (s *scrubber) feed(piece string) string {
	text := s.scrub(s.held + piece)
	keep := max(overlap(text, s.marker), overlap(text, "@"+joiner))
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// rest returns what was held back.
func (s *scrubber) rest() string {
	held := s.held
	s.held = ""
	return held
}

// scrub returns a whole text without markers and joiners, also without those that
// only come to be when others are taken out. It takes time in proportion to the
// text, whatever that is.
func (s *scrubber) scrub(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		out = append(out, text[i])
		switch {
		case text[i] == ']' && s.marker != "" && bytes.HasSuffix(out, []byte(s.marker)):
			out = out[:len(out)-len(s.marker)]
		case text[i] == joiner[len(joiner)-1] && bytes.HasSuffix(out, []byte("@"+joiner)):
			out = out[:len(out)-len(joiner)]
		}
	}
	return string(out)
}

// overlap returns the length of the longest proper prefix of word with which text
// ends.
func overlap(text, word string) int {
	for n := min(len(word)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}
