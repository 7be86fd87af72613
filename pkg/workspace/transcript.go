package workspace

// IsEmpty reports whether a message shows nothing: no text, no attachment and
// no tool call.
func (m Message) IsEmpty() bool {
	return trim(m.Content) == "" && len(m.Attachments) == 0 && len(m.Tools) == 0
}

// Append returns the conversation and the message after its first save: the
// message has the next sequence, and a visible one that is not empty sets the
// time of the last message and the preview (sections 2.3 and 2.6). A user's own
// message counts as read when everything before it was (section 11, item 7).
func (c Conversation) Append(m Message) (Conversation, Message) {
	if m.Role == RoleUser && c.ReadSeq == c.LastSeq {
		c.ReadSeq = c.LastSeq + 1
	}
	c.LastSeq++
	m.Seq = c.LastSeq
	return c.Summarise(m), m
}

// Reveal returns the conversation and a hidden message after it became visible:
// the message moves to the end with a new sequence (section 2.6). A message
// that is visible already stays as it is.
func (c Conversation) Reveal(m Message) (Conversation, Message) {
	if !m.Hidden {
		return c, m
	}
	m.Hidden = false
	return c.Append(m)
}

// Summarise returns the conversation with the time of the last message and the
// preview taken from newest, which is its newest visible message that is not
// empty. Any other message changes nothing.
func (c Conversation) Summarise(newest Message) Conversation {
	if bool(newest.Hidden) || newest.IsEmpty() {
		return c
	}
	at := newest.CreatedAt
	c.LastMessageAt, c.Preview = &at, Preview(newest)
	return c
}

// MarkRead returns the conversation read up to seq, and whether that changes
// it: the marker never goes back and never passes the last sequence
// (section 3.4).
func (c Conversation) MarkRead(seq int64) (Conversation, bool) {
	read := max(c.ReadSeq, min(seq, c.LastSeq))
	changed := read != c.ReadSeq
	c.ReadSeq = read
	return c, changed
}

// CheckReadMarker returns the sequence of a request that marks messages as read.
func CheckReadMarker(in ReadMarker) (int64, error) {
	var f faults
	required(&f, "seq", in.Seq)
	seq := checked(&f, "seq", present(in.Seq), notNegative[int64]).Or(0)
	return seq, f.err()
}

// CountsAsUnread reports whether a message adds to the count of unread messages
// of a conversation read up to readSeq: visible, final, and not the user's own
// (section 11, item 7).
func (m Message) CountsAsUnread(readSeq int64) bool {
	return m.Seq > readSeq && !bool(m.Hidden) && m.Role != RoleUser && m.Status.Terminal()
}

// Unread returns how many of the messages are unread.
func Unread(messages []Message, readSeq int64) int {
	n := 0
	for _, m := range messages {
		if m.CountsAsUnread(readSeq) {
			n++
		}
	}
	return n
}
