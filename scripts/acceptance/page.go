package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// page is the body of a poll.
type page struct {
	Success   bool              `json:"success"`
	Thread    string            `json:"thread"`
	Raw       []json.RawMessage `json:"messages"`
	Awaiting  bool              `json:"awaiting"`
	Truncated bool              `json:"truncated"`
	Cursor    int64             `json:"cursor"`

	Messages []message `json:"-"` // what stands in Raw
}

// texts returns the text of each message.
func (p page) texts() []string {
	texts := make([]string, len(p.Messages))
	for i, m := range p.Messages {
		texts[i] = m.Text
	}
	return texts
}

// pollCall is a poll with a query as it stands.
func (t *trial) pollCall(token, query string) call {
	path := t.pollPath()
	if query != "" {
		path += "?" + query
	}
	return call{method: http.MethodGet, path: path, tokens: []string{token}}
}

// poll polls, without a since when it is zero, and must be answered.
func (t *trial) poll(token string, since int64) page {
	query := ""
	if since != 0 {
		query = "since=" + strconv.FormatInt(since, 10)
	}
	a := t.do(t.pollCall(token, query))
	t.wantStatus(a, http.StatusOK)
	return t.page(a.asked, a.body, threadOf(token), since)
}

// page ends the case unless body is the body of a poll, and checks all that
// section 5 says of any page.
func (t *trial) page(asked string, body []byte, thread string, since int64) page {
	p := t.decoded(asked, body)
	if p.Thread != thread {
		t.errorf("%s: the thread is %q instead of %q", asked, p.Thread, thread)
	}
	if len(p.Messages) > pageLimit {
		t.errorf("%s: %d messages in one page", asked, len(p.Messages))
	}
	t.checkOrder(asked, p.Messages, since)
	cursor := since
	if n := len(p.Messages); n > 0 {
		cursor = p.Messages[n-1].Epoch
	}
	if p.Cursor != cursor {
		t.errorf("%s: the cursor is %d instead of %d", asked, p.Cursor, cursor)
	}
	return p
}

// decoded ends the case unless body has the form of a poll's body, whatever the
// page.
func (t *trial) decoded(asked string, body []byte) page {
	p, err := decodePage(body)
	if err != nil {
		t.fatalf("%s: %v; body %s", asked, err, clip(body))
	}
	if !p.Success {
		t.errorf("%s: success is false in an answered poll", asked)
	}
	return p
}

// checkOrder checks each message and that their epochs strictly ascend from
// since on.
func (t *trial) checkOrder(asked string, messages []message, since int64) {
	last := since
	for i, m := range messages {
		if m.Epoch <= last {
			t.errorf("%s: message %d has epoch %d, not above %d", asked, i, m.Epoch, last)
		}
		last = m.Epoch
		if err := checkStamps(m.ID, m.TS, m.Epoch); err != nil {
			t.errorf("%s: message %d: %v", asked, i, err)
		}
		if !slices.Contains([]string{"operator", "agent", "hermes"}, m.Author) {
			t.errorf("%s: message %d has the author %q", asked, i, m.Author)
		}
	}
}

// decodePage decodes the body of a poll, whose members must be exactly those of
// the contract.
func decodePage(body []byte) (page, error) {
	var p page
	err := decodeExactly(body, &p, "success", "thread", "messages", "awaiting", "truncated", "cursor")
	if err != nil {
		return page{}, err
	}
	p.Messages = make([]message, len(p.Raw))
	for i, raw := range p.Raw {
		if err := decodeExactly(raw, &p.Messages[i], "id", "epoch", "ts", "author", "text"); err != nil {
			return page{}, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return p, nil
}

// pages polls from the first message until nothing is left out, at most a few times, and returns the
// messages of all pages.
func (t *trial) pages(token string) []message {
	since := int64(1)
	var all []message
	for range messageLimit / pageLimit {
		p := t.poll(token, since)
		all = append(all, p.Messages...)
		if !p.Truncated {
			return all
		}
		since = p.Cursor
	}
	t.fatalf("polling from cursor to cursor came to no end after %d messages", len(all))
	return nil
}
