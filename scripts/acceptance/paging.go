package main

import (
	"slices"
	"time"
)

// pagingCases judge polls of a thread that does not fit into one page
// (section 5), and threads at the edge of what is kept (section 4).
func pagingCases() []testCase {
	return []testCase{
		{
			name:  "paging/newest-50",
			wants: "Without since a poll shows the newest 50 messages and says truncated when there are older ones, section 5.",
			needs: needRoot,
			judge: judgeNewest,
		},
		{
			name:  "paging/exactly-50",
			wants: "Fifty messages are one page, and nothing is truncated, section 5.",
			needs: needRoot,
			judge: judgeExactPage,
		},
		{
			name:  "paging/nothing-lost",
			wants: "Polling 120 messages from cursor to cursor shows each once, oldest first, truncated until the last page, section 5.",
			needs: needRoot,
			judge: judgePaging,
		},
		{
			name:  "paging/from-the-middle",
			wants: "A page begins right behind since wherever that lies, section 5.",
			needs: needRoot,
			judge: judgeMiddle,
		},
		{
			name:  "paging/one-millisecond-apart",
			wants: "Messages of the same second, a millisecond apart, are all shown across a page's cut, section 5.",
			needs: needRoot,
			judge: judgeDensePaging,
		},
		{
			name:  "paging/awaiting-is-the-threads",
			wants: "Awaiting follows the thread's last message, not the page's, section 5.",
			needs: needRoot,
			judge: judgeAwaitingOfThread,
		},
	}
}

// placed places a conversation in the server's root and returns its token.
func (t *trial) placed(messages []message) string {
	token := t.token()
	t.placeMessages(t.tree(), threadOf(token), messages)
	return token
}

func (t *trial) wantMessages(got, want []message) {
	if !slices.Equal(got, want) {
		t.errorf("%d messages, %s, instead of %d, %s", len(got), ends(got), len(want), ends(want))
	}
}

// ends names the first and the last of some messages.
func ends(messages []message) string {
	if len(messages) == 0 {
		return "none"
	}
	return messages[0].Text + " to " + messages[len(messages)-1].Text
}

func judgeNewest(t *trial) {
	all := conversation(60, "operator")
	p := t.poll(t.placed(all), 0)
	t.wantMessages(p.Messages, all[10:])
	if !p.Truncated {
		t.errorf("ten older messages were left out, and truncated is false")
	}
}

func judgeExactPage(t *trial) {
	all := conversation(pageLimit, "operator")
	token := t.placed(all)
	for _, since := range []int64{0, 1} {
		p := t.poll(token, since)
		t.wantMessages(p.Messages, all)
		if p.Truncated {
			t.errorf("since %d: nothing was left out, and truncated is true", since)
		}
	}
}

func judgePaging(t *trial) {
	all := conversation(120, "operator")
	token := t.placed(all)
	first := t.poll(token, 1)
	t.wantMessages(first.Messages, all[:pageLimit])
	if !first.Truncated {
		t.errorf("seventy newer messages were left out, and truncated is false")
	}
	t.wantMessages(t.pages(token), all)
}

func judgeMiddle(t *trial) {
	all := conversation(120, "operator")
	token := t.placed(all)
	for _, i := range []int{0, 49, 68, 69, 70, 118, 119} {
		p := t.poll(token, all[i].Epoch)
		rest := all[i+1:]
		t.wantMessages(p.Messages, rest[:min(len(rest), pageLimit)])
		if p.Truncated != (len(rest) > pageLimit) {
			t.errorf("%d messages follow, and truncated is %t", len(rest), p.Truncated)
		}
	}
}

func judgeDensePaging(t *trial) {
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	all := make([]message, 120)
	for i := range all {
		all[i] = newMessage(start.Add(time.Duration(i)*time.Millisecond), "operator", "dense")
	}
	t.wantMessages(t.pages(t.placed(all)), all)
}

func judgeAwaitingOfThread(t *trial) {
	all := conversation(60, "operator")
	all[59].Author = "hermes"
	if t.poll(t.placed(all), 1).Awaiting {
		t.errorf("the thread awaits, though hermes wrote last")
	}
	all = conversation(60, "hermes")
	all[59].Author = "agent"
	token := t.placed(all)
	for _, since := range []int64{0, 1, all[59].Epoch} {
		if !t.poll(token, since).Awaiting {
			t.errorf("since %d the thread does not await, though the agent wrote last", since)
		}
	}
}
