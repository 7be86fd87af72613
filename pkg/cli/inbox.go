package cli

import (
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
	Threads []inboxEntry  `json:"threads"`
	Corrupt []corruptJSON `json:"corrupt"`
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
func (s *session) awaiting() ([]storage.Summary, []storage.Corrupt, error) {
	waiting, corrupt, err := s.store.Awaiting()
	return waiting, corrupt, s.explain("", err)
}

// inboxList shows every thread that awaits Hermes, the longest wait first.
type inboxList struct {
	*session
	waiting []storage.Summary
	corrupt []storage.Corrupt
}

func (v *inboxList) refresh() (bool, error) {
	var err error
	v.waiting, v.corrupt, err = v.awaiting()
	return len(v.waiting) > 0, err
}

func (v *inboxList) show() error {
	entries := make([]inboxEntry, len(v.waiting))
	state := v.agentState()
	for i, sum := range v.waiting {
		entries[i] = v.entry(sum)
		entries[i].Agent = v.agentOf(state, sum)
	}
	for _, c := range v.corrupt {
		v.warnCorrupt(c)
	}
	if v.json {
		if err := v.printJSON(inboxJSON{Threads: entries, Corrupt: corruptToJSON(v.corrupt)}); err != nil {
			return err
		}
		return v.flush()
	}
	if len(entries) == 0 {
		v.printf("no thread awaits hermes\n")
		return v.flush()
	}
	v.printInboxHeader()
	for _, e := range entries {
		v.printInboxRow(e)
	}
	return v.flush()
}

// inboxStream shows each message that awaits Hermes once.
type inboxStream struct {
	*session
	fresh   []inboxEntry
	headed  bool
	seen    map[chat.ThreadID]int64 // epoch of the last message shown, in ms
	corrupt map[chat.ThreadID]bool  // already warned of
}

func (v *inboxStream) refresh() (bool, error) {
	waiting, corrupt, err := v.awaiting()
	if err != nil {
		return false, err
	}
	v.warn(corrupt)
	v.fresh = nil
	// A thread that was answered is forgotten: what comes later is newer anyway.
	seen := make(map[chat.ThreadID]int64, len(waiting))
	for _, sum := range waiting {
		if seen[sum.Thread], err = v.collect(sum, v.seen[sum.Thread]); err != nil {
			return false, err
		}
	}
	v.seen = seen
	return len(v.fresh) > 0, nil
}

// collect adds the unanswered messages of a thread that came after seen, and
// returns the epoch of the last one, in milliseconds.
func (v *inboxStream) collect(sum storage.Summary, seen int64) (int64, error) {
	if sum.Last.Epoch <= seen {
		return seen, nil
	}
	thread, err := v.store.Thread(sum.Thread)
	if exitOf(err) == exitCorrupt {
		return seen, nil // it became so just now, which the next look tells
	}
	if err != nil {
		return seen, v.explain(sum.Thread, err)
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

// warn tells of every corrupt thread once, until it is mended.
func (v *inboxStream) warn(corrupt []storage.Corrupt) {
	known := make(map[chat.ThreadID]bool, len(corrupt))
	for _, c := range corrupt {
		known[c.Thread] = true
		if !v.corrupt[c.Thread] {
			v.warnCorrupt(c)
		}
	}
	v.corrupt = known
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
