package hermes

import "strings"

// Search looks for one turn in a session's history, page by page and the newest
// entry first (section 6.10). The zero value of everything but Turn begins it.
type Search struct {
	Turn Marker

	last    Entry // the newest entry behind the last user entry that was seen
	partial bool  // a page did not have what was compacted away
	end     bool  // the oldest entry was seen
	found   Finding
}

// Finding is what a [Search] found.
type Finding struct {
	// Accepted says that the history has the turn's prompt.
	Accepted bool
	// Answered says that the turn's last entry is an answer, which is in Text.
	Answered bool
	Text     string
	// Partial says that Text is what there was when the turn was interrupted: its
	// entry has no reason why it ended.
	Partial bool
	// Truncated says that the answer was cut by a limit of the model.
	Truncated bool
	// Absent says that the whole history was seen and has no such prompt, also
	// among what was compacted away.
	Absent bool
}

// Add takes the next page and reports whether the search is over.
func (s *Search) Add(page Page) bool {
	s.partial = s.partial || !page.Whole
	for _, entry := range page.Entries {
		if entry.Role == RoleUser && s.Turn.In(entry.Text) {
			s.found = judge(s.last)
			return true
		}
		s.see(entry)
	}
	s.end = page.Last
	return page.Last
}

// see keeps the first of a turn's entries, which is its newest.
func (s *Search) see(entry Entry) {
	if entry.Role == RoleUser {
		s.last = Entry{}
		return
	}
	if s.last.Role == "" {
		s.last = entry
	}
}

// Result returns what was found in the pages so far.
func (s *Search) Result() Finding {
	found := s.found
	found.Absent = !found.Accepted && s.end && !s.partial
	return found
}

// judge decides on the newest entry of a turn. One that announces a call, or the
// result of a tool, is no answer.
func judge(last Entry) Finding {
	if last.Role != RoleAssistant || last.Calls || strings.TrimSpace(last.Text) == "" {
		return Finding{Accepted: true}
	}
	if last.FinishReason == "" {
		return Finding{Accepted: true, Partial: true, Text: last.Text}
	}
	return Finding{Accepted: true, Answered: true, Text: last.Text, Truncated: last.FinishReason == "length"}
}
