package cli

import (
	"strconv"
	"testing"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// Ensures that a stream of a thread that is yet to come shows it from its first
// message, though more than a page come at once, and that a mere wait shows the
// newest page, as ever.
func TestThreadView_MoreThanAPageAtOnce(t *testing.T) {
	t.Parallel()
	for first, p := range map[string]patience{"1": {follow: true}, "11": {limited: true}} {
		const id = chat.ThreadID("60e05bd1b195af2f")
		v := &threadView{session: openSession(t), id: id, patience: p}
		if found, err := v.refresh(); found || err != nil {
			t.Fatalf("before the first message: %v, %v", found, err)
		}
		for i := range 60 {
			post := storage.Post{Author: chat.Operator, Text: strconv.Itoa(i + 1), Create: true}
			if _, err := v.store.Append(t.Context(), id, post); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := v.refresh(); !found || err != nil {
			t.Fatalf("then: %v, %v", found, err)
		}
		if got := v.page.Messages()[0].Text; got != first {
			t.Errorf("%+v: the first message is %s, want %s", p, got, first)
		}
	}
}
