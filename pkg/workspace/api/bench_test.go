package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/newos4/relay/pkg/account"
)

// raw returns a request that may be sent often, with all of the client's cookies.
func (c *client) raw(path string) *http.Request {
	r := c.request(http.MethodGet, path, nil)
	for _, cookie := range cookiesOf(c) {
		r.AddCookie(cookie)
	}
	return r
}

// fetch sends a request and drops its answer.
func fetch(b *testing.B, client *http.Client, r *http.Request) {
	response, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s answers %d, %v", r.URL, response.StatusCode, err)
	}
	_ = response.Body.Close()
}

// BenchmarkEventsNothingNew compares a poll that brings nothing with a handler
// that does nothing else.
func BenchmarkEventsNothingNew(b *testing.B) {
	f := newFixture(b)
	c := f.as("ann")
	c.agent("a")
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = account.WriteJSON(w, http.StatusOK, obj{"events": []any{}, "cursor": 7})
	}))
	b.Cleanup(bare.Close)
	plain := &http.Client{}
	poll := c.raw(fmt.Sprintf("/events?after=%d", c.cursor()))
	nothing := poll.Clone(b.Context())
	nothing.URL.Host = bare.Listener.Addr().String()
	b.Run("bare handler", func(b *testing.B) {
		for b.Loop() {
			fetch(b, plain, nothing)
		}
	})
	b.Run("events", func(b *testing.B) {
		for b.Loop() {
			fetch(b, plain, poll)
		}
	})
}

// BenchmarkList lists 500 chats, and BenchmarkDetail opens one of 10,000 messages.
func BenchmarkList(b *testing.B) {
	f := newFixture(b)
	c := f.as("ann")
	first, second := c.agent("a"), c.agent("b")
	for range 498 {
		c.group(first, second)
	}
	list := c.raw("/conversations")
	for b.Loop() {
		fetch(b, &http.Client{}, list)
	}
}

// BenchmarkDetail opens a chat.
func BenchmarkDetail(b *testing.B) {
	for _, messages := range []int{100, 10_000} {
		b.Run(fmt.Sprint(messages, " messages"), func(b *testing.B) {
			f := newFixture(b)
			c := f.as("ann")
			chat := c.direct(c.agent("a"))
			c.say(chat, "first")
			f.exec(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
				INSERT INTO message (owner, id, conversation_id, seq, role, agent_id, agent_name, run_id, task_id, hidden, status, error, created_at, content, reasoning, attachments, tools)
				SELECT owner, printf('00000000-0000-4000-8000-%012d', n.i), conversation_id, n.i, role, agent_id, agent_name, run_id, task_id, hidden, status, error, created_at, content, reasoning, attachments, tools
				FROM message, n WHERE seq = 1`, messages)
			detail := c.raw("/conversations/" + chat)
			for b.Loop() {
				fetch(b, &http.Client{}, detail)
			}
		})
	}
}

// BenchmarkSend lets 32 clients send at once.
func BenchmarkSend(b *testing.B) {
	f := newFixture(b)
	c := f.as("ann")
	chats := make([]string, 32)
	for i := range chats {
		chats[i] = c.direct(c.agent(fmt.Sprint("a", i)))
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var sending sync.WaitGroup
	for _, chat := range chats {
		sending.Go(func() {
			for left.Add(-1) >= 0 {
				r := c.request(http.MethodPost, "/conversations/"+chat+"/messages", encoded(b, obj{"requestId": uuid(), "content": "hello"}))
				a, err := c.try(r)
				if err != nil || a.status != http.StatusAccepted {
					b.Errorf("%d %s %v", a.status, a.body, err)
					return
				}
			}
		})
	}
	sending.Wait()
}
