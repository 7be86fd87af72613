package cli

import (
	"slices"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// inboxEntry is a thread that awaits Hermes.
type inboxEntry struct {
	Thread chat.ThreadID `json:"thread"`
	// Since is the epoch of the first unanswered message, AgeMS how long ago
	// that was; both in milliseconds.
	Since      int64       `json:"since"`
	AgeMS      int64       `json:"age_ms"`
	Unanswered int         `json:"unanswered"`
	Messages   int         `json:"messages"`
	Last       messageJSON `json:"last"`
	Agent      *agentJSON  `json:"agent,omitzero"`
}

// inboxJSON is the inbox as one JSON value.
type inboxJSON struct {
	Threads    []inboxEntry `json:"threads"`
	Corrupt    []faultJSON  `json:"corrupt"`
	Unreadable []faultJSON  `json:"unreadable"`
}

func (s *session) entry(sum storage.Summary) inboxEntry {
	return inboxEntry{
		Thread:     sum.Thread,
		Since:      sum.Since,
		AgeMS:      max(0, s.env.Now().UnixMilli()-sum.Since),
		Unanswered: sum.Unanswered,
		Messages:   sum.Messages,
		Last:       toJSON(sum.Last),
	}
}

// awaiting is [storage.Store.Awaiting] with errors that explain themselves.
func (s *session) awaiting() ([]storage.Summary, []storage.Fault, error) {
	waiting, faults, err := s.store.Awaiting()
	return waiting, faults, s.explain("", err)
}

// inboxList shows every thread that awaits Hermes, the longest wait first.
type inboxList struct {
	*session
	waiting []storage.Summary
	faults  []storage.Fault
}

func (v *inboxList) refresh() (bool, error) {
	var err error
	v.waiting, v.faults, err = v.awaiting()
	return len(v.waiting) > 0, err
}

func (v *inboxList) show() error {
	if err := v.print(); err != nil {
		return err
	}
	if err := v.flush(); err != nil {
		return err
	}
	v.warn(v.faults)
	isUnreadable := func(f storage.Fault) bool { return !f.IsCorrupt() }
	if slices.ContainsFunc(v.faults, isUnreadable) {
		// Whether one of them awaits hermes, nobody can tell.
		return &failure{code: exitFailed}
	}
	return nil
}

func (v *inboxList) print() error {
	entries := make([]inboxEntry, len(v.waiting))
	state := v.agentState()
	for i, sum := range v.waiting {
		entries[i] = v.entry(sum)
		entries[i].Agent = v.agentOf(state, sum)
	}
	if v.json {
		corrupt, unreadable := faultsToJSON(v.faults)
		return v.printJSON(inboxJSON{Threads: entries, Corrupt: corrupt, Unreadable: unreadable})
	}
	if len(entries) == 0 {
		v.printf("no thread awaits hermes\n")
		return nil
	}
	v.printInboxHeader()
	for _, e := range entries {
		v.printInboxRow(e)
	}
	return nil
}

// inboxStream shows each message that awaits Hermes once.
type inboxStream struct {
	*session
	fresh  []inboxEntry
	headed bool
	seen   map[chat.ThreadID]int64 // epoch of the last message shown, in ms
	faulty map[chat.ThreadID]bool  // already warned of
}

func (v *inboxStream) refresh() (bool, error) {
	waiting, faults, err := v.awaiting()
	if err != nil {
		return false, err
	}
	v.fresh = nil
	// A thread that was answered is forgotten: what comes later is newer anyway.
	seen := make(map[chat.ThreadID]int64, len(waiting))
	for _, sum := range waiting {
		if seen[sum.Thread], err = v.collect(sum, v.seen[sum.Thread]); err != nil {
			faults = append(faults, storage.Fault{Thread: sum.Thread, Err: err})
		}
	}
	// One that cannot be read may still await hermes when it can be again.
	for _, f := range faults {
		seen[f.Thread] = v.seen[f.Thread]
	}
	v.seen = seen
	v.warnOnce(faults)
	return len(v.fresh) > 0, nil
}

// collect adds the unanswered messages of a thread that came after seen, and
// returns the epoch of the last one, in milliseconds.
func (v *inboxStream) collect(sum storage.Summary, seen int64) (int64, error) {
	if sum.Last.Epoch <= seen {
		return seen, nil
	}
	thread, err := v.store.Thread(sum.Thread)
	if err != nil {
		return seen, err
	}
	messages := thread.Messages()
	unanswered, since := thread.Unanswered()
	for i, m := range messages[len(messages)-unanswered:] {
		if m.Epoch <= seen {
			continue
		}
		v.fresh = append(v.fresh, v.entry(storage.Summary{
			Thread: sum.Thread, Messages: len(messages), Unanswered: i + 1, Since: since, Last: m,
		}))
	}
	return max(seen, thread.LastEpoch()), nil
}

// warnOnce tells of every thread that cannot be read once, until it can be.
func (v *inboxStream) warnOnce(faults []storage.Fault) {
	faulty := make(map[chat.ThreadID]bool, len(faults))
	var fresh []storage.Fault
	for _, f := range faults {
		if !v.faulty[f.Thread] {
			fresh = append(fresh, f)
		}
		faulty[f.Thread] = true
	}
	v.faulty = faulty
	v.warn(fresh)
}

func (v *inboxStream) show() error {
	if !v.json && !v.headed {
		v.printInboxHeader()
		v.headed = true
	}
	for _, e := range v.fresh {
		if !v.json {
			v.printInboxRow(e)
			continue
		}
		if err := v.printJSON(e); err != nil {
			return err
		}
	}
	return v.flush()
}
