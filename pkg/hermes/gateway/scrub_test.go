package gateway

import (
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/hermes"
)

// Ensures that no answer has the marker, that a stream shows what the answer has,
// however it is cut, and that an echoed marker is not shown on the way.
func FuzzScrubber(f *testing.F) {
	f.Add("I am [relay-run:r:m] @\u2060x [relay-run:r:m", 3)
	f.Add("[relay-run:r:[relay-run:r:m]m]", 1)
	f.Add("@@\u2060\u2060 [[relay-run:r:m]]", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		marker, err := hermes.NewMarker("r", "m")
		if err != nil {
			t.Fatal(err)
		}
		text = strings.ToValidUTF8(text, "?")
		size = 1 + max(size%7, -size%7)
		s, shown := newScrubber(marker), ""
		for i := 0; i < len(text); i += size {
			shown += s.feed(text[i:min(i+size, len(text))])
		}
		shown += s.rest()
		whole := s.scrub(text)
		if strings.Contains(whole, marker.String()) {
			t.Errorf("the answer is %q of %q", whole, text)
		}
		if s.scrub(shown) != whole {
			t.Errorf("shown %q, the whole is %q", shown, whole)
		}
		if strings.Count(text, "[relay-run:") < 2 && strings.Contains(shown, marker.String()) {
			t.Errorf("shown %q of %q", shown, text)
		}
	})
}

// Ensures that a text made to be slow to clean is not.
func TestScrub_IsLinear(t *testing.T) {
	t.Parallel()
	marker, err := hermes.NewMarker("r", "m")
	if err != nil {
		t.Fatal(err)
	}
	const depth = 1 << 16
	m := marker.String()
	nested := strings.Repeat(m[:len(m)-1], depth) + strings.Repeat("]", depth) + "@" + strings.Repeat(joiner, depth)
	if got := newScrubber(marker).scrub(nested); got != "@" {
		t.Errorf("%d bytes are left", len(got))
	}
}

// Ensures that a prompt begins with the marker, that its text is inert and its
// references work.
func TestCompose(t *testing.T) {
	t.Parallel()
	marker, err := hermes.NewMarker("r", "m")
	if err != nil {
		t.Fatal(err)
	}
	got := compose(hermes.Prompt{Marker: marker, Text: "/exit @file:x", References: []string{"@file:ours", "@file:\"b c\""}})
	if want := "[relay-run:r:m]\n/exit @\u2060file:x\n@file:ours\n@file:\"b c\""; got != want {
		t.Errorf("composed %q", got)
	}
}
