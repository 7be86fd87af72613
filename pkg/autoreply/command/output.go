package command

import (
	"strings"

	"github.com/newos4/relay/pkg/untrusted"
)

// head keeps what is written until it is full. The rest is dropped, so that the
// writer is never the one that blocks.
type head struct {
	limit  int
	onFull func() // called when something is dropped for the first time
	kept   []byte
	full   bool
}

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	room := min(len(p), h.limit-len(h.kept))
	h.kept = append(h.kept, p[:room]...)
	if room < len(p) && !h.full {
		h.full = true
		h.onFull()
	}
	return len(p), nil
}

// tail keeps the last bytes that are written: an error's reason stands at the
// end of what a program has to say about it.
type tail struct {
	limit int
	kept  []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-t.limit):]...)
	t.kept = t.kept[max(0, len(t.kept)-t.limit):]
	return len(p), nil
}

// line returns the end of what was kept, on one line of at most limit bytes.
func (t *tail) line() string {
	shown := untrusted.Line(strings.TrimSpace(string(t.kept)))
	if cut := len(shown) - t.limit; cut > 0 {
		return strings.ToValidUTF8(shown[cut:], "")
	}
	return shown
}
