package hermes

import (
	"fmt"
	"regexp"
	"strings"
)

// Marker names one submission in the material of its prompt, so that it can be
// found in a session's history (section 7.4). It is plain ASCII and unique, and
// package defuse breaks what strangers forge of it.
type Marker struct{ run, message string }

// markerID is what the ids in a marker may be: UUIDs, and what tests use.
var markerID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// NewMarker returns the marker of the submission that answers in message as part
// of run. Both are ids of ASCII letters, digits and hyphens, 64 at most.
func NewMarker(run, message string) (Marker, error) {
	for _, id := range []string{run, message} {
		if !markerID.MatchString(id) {
			return Marker{}, fmt.Errorf("run marker: bad id %.80q", id)
		}
	}
	return Marker{run: run, message: message}, nil
}

// IsZero reports whether there is no marker.
func (m Marker) IsZero() bool { return m.run == "" }

// String returns the marker as it stands in a prompt.
func (m Marker) String() string {
	if m.IsZero() {
		return ""
	}
	return "[relay-run:" + m.run + ":" + m.message + "]"
}

// In reports whether text, which may hold several prompts, has the marker.
func (m Marker) In(text string) bool { return !m.IsZero() && strings.Contains(text, m.String()) }

// Strip returns text without the marker, which agents echo at times.
func (m Marker) Strip(text string) string {
	if m.IsZero() {
		return text
	}
	return strings.ReplaceAll(text, m.String(), "")
}
