package gateway

import (
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
	text := s.held + piece
	if s.marker != "" {
		text = strings.ReplaceAll(text, s.marker, "")
	}
	text = strings.ReplaceAll(text, "@"+joiner, "@")
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

// scrub returns a whole text without markers and joiners.
func (s *scrubber) scrub(text string) string {
	whole := scrubber{marker: s.marker}
	return whole.feed(text) + whole.rest()
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
