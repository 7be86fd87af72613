package storage

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/newos4/relay/pkg/chat"
)

// Summary is what an inbox shows of a thread.
type Summary struct {
	Thread chat.ThreadID
	// Messages is how many the thread holds.
	Messages int
	// Unanswered is how many of them stand behind Hermes's last one; 0 means
	// that the thread does not await Hermes.
	Unanswered int
	// Since is the epoch of the first unanswered message in milliseconds.
	Since int64
	// Turns is how many answers of Hermes stand behind the person's last
	// message, none of which the person has taken up.
	Turns int
	// Last is the newest message.
	Last chat.Message
}

// Corrupt is a file that is no sound thread and was left alone.
type Corrupt struct {
	Thread chat.ThreadID
	// Err says why, with code [chat.CodeCorrupt].
	Err error
}

// Threads returns the ids of all threads, corrupt ones too, in ascending order.
// Links, pipes, directories and foreign names are none.
func (s *Store) Threads() ([]chat.ThreadID, error) {
	names, err := regularNames(s.path, isThreadName)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failure(fmt.Errorf("listing threads: %w", err))
	}
	ids := make([]chat.ThreadID, len(names))
	for i, name := range names {
		ids[i], _ = threadOf(name)
	}
	slices.Sort(ids)
	return ids, nil
}

// Summary returns what an inbox shows of the thread, and false for one that is
// gone or empty. Errors are those of [Store.Poll].
func (s *Store) Summary(id chat.ThreadID) (Summary, bool, error) {
	st, err := s.load(id)
	if err != nil || st == nil {
		return Summary{}, false, err
	}
	last, ok := st.tail.Last()
	unanswered, since := st.tail.Unanswered()
	return Summary{
		Thread: id, Messages: st.tail.Len(), Unanswered: unanswered, Since: since,
		Turns: st.tail.TurnsSince(chat.Operator), Last: last,
	}, ok, nil
}

// Awaiting returns the threads that wait for Hermes, the longest wait first,
// and the corrupt ones.
func (s *Store) Awaiting() ([]Summary, []Corrupt, error) {
	ids, err := s.Threads()
	if err != nil {
		return nil, nil, err
	}
	var waiting []Summary
	var corrupt []Corrupt
	for _, id := range ids {
		summary, ok, err := s.Summary(id)
		switch {
		case err != nil && chat.CodeOf(err) == chat.CodeCorrupt:
			corrupt = append(corrupt, Corrupt{Thread: id, Err: err})
		case err != nil:
			return nil, nil, err
		case ok && summary.Unanswered > 0:
			waiting = append(waiting, summary)
		}
	}
	slices.SortFunc(waiting, func(a, b Summary) int {
		if a.Since != b.Since {
			return cmp.Compare(a.Since, b.Since)
		}
		return cmp.Compare(a.Thread, b.Thread)
	})
	return waiting, corrupt, nil
}
