package hermes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/defuse"
)

func marker(t *testing.T) hermes.Marker {
	t.Helper()
	m, err := hermes.NewMarker("run-1", "m1")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Ensures that a marker is found among merged prompts, taken from echoes, and
// cannot be forged by text that was defused.
func TestMarker(t *testing.T) {
	t.Parallel()
	m := marker(t)
	if !m.In("first\n\n" + m.String() + "\nsecond") {
		t.Error("not found in a merged prompt")
	}
	if got := m.Strip("a " + m.String() + "b"); got != "a b" {
		t.Errorf("Strip = %q", got)
	}
	if m.In(defuse.Text("see " + m.String())) {
		t.Error("defused text passes for the marker")
	}
	if (hermes.Marker{}).In("anything") {
		t.Error("no marker is found in a text")
	}
}

// Ensures that ids that could break a marker are refused by name.
func TestMarker_BadID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "a b", "a]", "ä", strings.Repeat("a", 65)} {
		if _, err := hermes.NewMarker("run", id); err == nil {
			t.Errorf("NewMarker took %q", id)
		}
	}
}

// Ensures that a turn is judged by its own last entry alone, wherever its pages
// are cut.
func TestSearch(t *testing.T) {
	t.Parallel()
	m := marker(t)
	user := hermes.Entry{Role: hermes.RoleUser, Text: "[x] " + m.String() + " hello"}
	other := hermes.Entry{Role: hermes.RoleUser, Text: "later"}
	answer := hermes.Entry{Role: hermes.RoleAssistant, Text: "answer", FinishReason: "stop"}
	foreign := hermes.Entry{Role: hermes.RoleAssistant, Text: "of the later turn", FinishReason: "stop"}
	calls := hermes.Entry{Role: hermes.RoleAssistant, Text: "let me look", Calls: true}
	tool := hermes.Entry{Role: "tool", Text: "result"}
	empty := hermes.Entry{Role: hermes.RoleAssistant, Text: " \n"}
	cut := hermes.Entry{Role: hermes.RoleAssistant, Text: "ans", FinishReason: "length"}
	for name, test := range map[string]struct {
		newestFirst []hermes.Entry
		want        hermes.Finding
	}{
		"answered":            {[]hermes.Entry{answer, user}, hermes.Finding{Accepted: true, Answered: true, Text: "answer"}},
		"after tools":         {[]hermes.Entry{answer, tool, calls, user}, hermes.Finding{Accepted: true, Answered: true, Text: "answer"}},
		"cut":                 {[]hermes.Entry{cut, user}, hermes.Finding{Accepted: true, Answered: true, Text: "ans", Truncated: true}},
		"interrupted":         {[]hermes.Entry{{Role: hermes.RoleAssistant, Text: "an"}, user}, hermes.Finding{Accepted: true, Partial: true, Text: "an"}},
		"nothing yet":         {[]hermes.Entry{user}, hermes.Finding{Accepted: true}},
		"ends with a call":    {[]hermes.Entry{calls, user}, hermes.Finding{Accepted: true}},
		"ends with a result":  {[]hermes.Entry{tool, answer, user}, hermes.Finding{Accepted: true}},
		"empty answer":        {[]hermes.Entry{empty, user}, hermes.Finding{Accepted: true}},
		"other turn answered": {[]hermes.Entry{foreign, other, user}, hermes.Finding{Accepted: true}},
		"stored twice":        {[]hermes.Entry{answer, user, user}, hermes.Finding{Accepted: true, Answered: true, Text: "answer"}},
		"absent":              {[]hermes.Entry{foreign, other}, hermes.Finding{Absent: true}},
		"never prompted":      {nil, hermes.Finding{Absent: true}},
	} {
		for size := 1; size <= 4; size++ {
			t.Run(fmt.Sprintf("%s in pages of %d", name, size), func(t *testing.T) {
				t.Parallel()
				search := hermes.Search{Turn: m}
				addPages(&search, test.newestFirst, size)
				if got := search.Result(); got != test.want {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			})
		}
	}
}

func addPages(search *hermes.Search, entries []hermes.Entry, size int) {
	for {
		n := min(size, len(entries))
		page := hermes.Page{Entries: entries[:n], Last: n == len(entries), Whole: true}
		entries = entries[n:]
		if search.Add(page) {
			return
		}
	}
}

// Ensures that a prompt is not called absent where it may have been compacted
// away, or where the oldest entry was not seen.
func TestSearch_CannotSayAbsent(t *testing.T) {
	t.Parallel()
	search := hermes.Search{Turn: marker(t)}
	search.Add(hermes.Page{Last: true})
	if search.Result().Absent {
		t.Error("absent, though compacted entries were not listed")
	}
	search = hermes.Search{Turn: marker(t)}
	search.Add(hermes.Page{Whole: true})
	if search.Result().Absent {
		t.Error("absent, though older pages were not read")
	}
}

// Ensures that a failure's class is found in an error's chain, and that its text
// ends with the hint in a line of its own.
func TestError(t *testing.T) {
	t.Parallel()
	cause := errors.New("refused")
	failure := &hermes.Error{Kind: hermes.KindUncertain, Doing: "submit prompt", Text: "no answer", Hint: "look again", Err: cause}
	err := fmt.Errorf("run task: %w", failure)
	if hermes.KindOf(err) != hermes.KindUncertain || hermes.ClassOf(err) != hermes.ClassLostAck {
		t.Errorf("kind %q, class %q", hermes.KindOf(err), hermes.ClassOf(err))
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if want := "run task: submit prompt: no answer\nhint: look again"; err.Error() != want {
		t.Errorf("Error() = %q", err)
	}
	if hermes.ClassOf(cause) != "" {
		t.Error("a foreign error has a class")
	}
}

// Ensures that every kind of failure has a class (section 7.3).
func TestKinds_HaveClasses(t *testing.T) {
	t.Parallel()
	for _, kind := range []hermes.Kind{
		hermes.KindUnavailable, hermes.KindStarting, hermes.KindAuth, hermes.KindForbidden, hermes.KindNotFound,
		hermes.KindStaleSession, hermes.KindBusy, hermes.KindRateLimited, hermes.KindRejected, hermes.KindTooLarge,
		hermes.KindUnsupported, hermes.KindUncertain, hermes.KindDisconnected, hermes.KindTimeout, hermes.KindProtocol,
		hermes.KindModel, hermes.KindTruncated, hermes.KindInterrupted, hermes.KindExpired, hermes.KindStorage,
		hermes.KindUnsafeTools, hermes.KindIdentity, hermes.KindHistory,
	} {
		if (&hermes.Error{Kind: kind}).Class() == "" {
			t.Errorf("%s has no class", kind)
		}
	}
}

// Ensures that exactly the terminal events are terminal.
func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, event := range []hermes.Event{hermes.Completed{}, hermes.Failed{}, hermes.Interrupted{}, hermes.NotAccepted{}, hermes.Lost{}} {
		if !hermes.Terminal(event) {
			t.Errorf("%T is not terminal", event)
		}
	}
	for _, event := range []hermes.Event{
		hermes.Started{}, hermes.Delta{}, hermes.Preview{}, hermes.Reasoning{}, hermes.Break{}, hermes.Tool{}, hermes.Asked{},
		hermes.Answered{}, hermes.Rebound{}, hermes.Used{}, hermes.Disconnected{}, hermes.Reconnected{},
	} {
		if hermes.Terminal(event) {
			t.Errorf("%T is terminal", event)
		}
	}
}
