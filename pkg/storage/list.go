package storage

import (
	"cmp"
	"fmt"
	"os"
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

// Fault is a thread that could not be read and was left alone.
type Fault struct {
	Thread chat.ThreadID
	// Err says why: with code [chat.CodeCorrupt] the file is no sound thread,
	// with another the system did not let it be read.
	Err error
}

// IsCorrupt reports whether the file was read and is no sound thread.
func (f Fault) IsCorrupt() bool { return chat.CodeOf(f.Err) == chat.CodeCorrupt }

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

// IsNew reports whether nothing was ever written here: the thread directory does
// not exist.
func (s *Store) IsNew() bool {
	_, err := os.Stat(s.path)
	return isMissing(err)
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
// and those that could not be read, which keep no other from being listed.
func (s *Store) Awaiting() ([]Summary, []Fault, error) {
	ids, err := s.Threads()
	if err != nil {
		return nil, nil, err
	}
	var waiting []Summary
	var faults []Fault
	for _, id := range ids {
		summary, ok, err := s.Summary(id)
		switch {
		case err != nil:
			faults = append(faults, Fault{Thread: id, Err: err})
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
	return waiting, faults, nil
}
