package chat

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// Page is the part of a thread that one poll answers with (section 5).
type Page struct {
	// Thread is the thread's id.
	Thread ThreadID
	// Awaiting reports whether the thread's newest message, on this page or
	// not, was not written by Hermes.
	Awaiting bool
	// Truncated reports whether messages that match were left out: newer ones
	// after a cursor, older ones without one.
	Truncated bool
	// Cursor is the epoch of the last message of the page in milliseconds, or
	// the cursor that was sent when the page is empty.
	Cursor int64

	body []byte // the messages' JSON joined by commas
}

// ParseSince reads the since parameter of a poll: an integer of milliseconds,
// 0 or more, in decimal digits alone. Anything else is an error with code
// [CodeBadRequest].
func ParseSince(s string) (int64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, Errorf(CodeBadRequest, "since must be an integer of epoch milliseconds, 0 or more")
	}
	since, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, Errorf(CodeBadRequest, "since is larger than a 64-bit integer")
	}
	return since, nil
}

// Page returns the messages after since (milliseconds), oldest first, at most
// limit of them; with since 0 the newest limit messages. ok is false when the
// thread does not hold the bytes of all of them.
func (t *Thread) Page(id ThreadID, since int64, limit int) (page Page, ok bool) {
	page = Page{Thread: id, Awaiting: t.Awaiting(), Cursor: since}
	n := t.Len()
	if n == 0 {
		return page, true
	}
	from, to := 0, n
	if since == 0 {
		from = max(0, n-limit)
		page.Truncated = from > 0
	} else {
		from = sort.Search(n, func(i int) bool { return t.index[i].epoch > since })
		to = min(n, from+limit)
		page.Truncated = to < n
	}
	if from == to {
		return page, true
	}
	if from < t.first {
		return Page{}, false
	}
	page.Cursor = t.index[to-1].epoch
	page.body = t.slice(from, to)
	return page, true
}

// AppendJSON appends the page as the body of a poll answer, byte for byte what
// the contract shows (section 5). It copies the messages' bytes as they are.
func (p Page) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"success":true,"thread":"`...)
	dst = append(dst, p.Thread...)
	dst = append(dst, `","messages":[`...)
	dst = append(dst, p.body...)
	dst = append(dst, `],"awaiting":`...)
	dst = strconv.AppendBool(dst, p.Awaiting)
	dst = append(dst, `,"truncated":`...)
	dst = strconv.AppendBool(dst, p.Truncated)
	dst = append(dst, `,"cursor":`...)
	dst = strconv.AppendInt(dst, p.Cursor, 10)
	return append(dst, '}')
}

// Empty reports whether the page has no message.
func (p Page) Empty() bool { return len(p.body) == 0 }

// Messages decodes the page's messages, oldest first.
func (p Page) Messages() []Message { return decodeAll(p.body) }

// decodeAll decodes messages that this package encoded, joined by commas.
func decodeAll(body []byte) []Message {
	list := make([]byte, 0, len(body)+2)
	list = append(list, '[')
	list = append(list, body...)
	list = append(list, ']')
	var wire []wireMessage
	if err := json.Unmarshal(list, &wire); err != nil {
		panic(fmt.Sprintf("chat: own encoding does not decode: %v", err))
	}
	messages := make([]Message, len(wire))
	for i, w := range wire {
		messages[i] = Message{ID: *w.ID, Epoch: *w.Epoch, Author: *w.Author, Text: *w.Text}
	}
	return messages
}

func decodeOne(body []byte) Message { return decodeAll(body)[0] }
