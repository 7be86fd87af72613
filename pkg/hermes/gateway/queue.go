package gateway

import (
	"context"
	"strings"
	"sync"

	"github.com/newos4/relay/pkg/hermes"
)

// Bounds of what waits for a slow reader.
const (
	maxWaiting     = 4096    // events
	maxWaitingText = 8 << 20 // bytes of text in them
)

// waiting is an event, or several pieces of text of one kind.
type waiting struct {
	event  hermes.Event
	pieces []string
}

// queue keeps events for a reader that may be slow. Adding never blocks: pieces
// of text are joined, and when too much waits what is no answer and no question
// is dropped, for only the terminal event's text counts.
type queue struct {
	mu     sync.Mutex
	events []waiting
	text   int
	ended  bool
	wake   chan struct{}
	out    chan hermes.Event
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), out: make(chan hermes.Event)}
}

// add appends an event. After a terminal one nothing is taken.
func (q *queue) add(event hermes.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	q.ended = hermes.Terminal(event)
	q.put(event)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// put adds an event if there is room for it, text to text of its kind.
func (q *queue) put(event hermes.Event) {
	text, isText := textOf(event)
	if isText && q.text+len(text) > maxWaitingText {
		return
	}
	q.text += len(text)
	if isText && len(q.events) > 0 {
		last := &q.events[len(q.events)-1]
		if sameText(last.event, event) {
			last.pieces = append(last.pieces, text)
			return
		}
	}
	if len(q.events) >= maxWaiting && minor(event) {
		return
	}
	q.events = append(q.events, waiting{event: event, pieces: []string{text}})
}

// textOf returns the text of an event that may be joined with others.
func textOf(event hermes.Event) (string, bool) {
	switch e := event.(type) {
	case hermes.Delta:
		return e.Text, true
	case hermes.Reasoning:
		return e.Text, true
	default:
		return "", false
	}
}

// sameText reports whether both are text of the same kind.
func sameText(a, b hermes.Event) bool {
	_, first := a.(hermes.Delta)
	_, second := b.(hermes.Delta)
	_, isText := textOf(a)
	return isText && first == second
}

// minor reports whether an event may be dropped when too many wait.
func minor(event hermes.Event) bool {
	switch event.(type) {
	case hermes.Delta, hermes.Reasoning, hermes.Tool, hermes.Used, hermes.Break:
		return true
	default:
		return false
	}
}

// take removes the first event, and reports whether the queue has ended and is
// empty.
func (q *queue) take() (event hermes.Event, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return nil, q.ended
	}
	first := q.events[0]
	q.events = q.events[1:]
	if len(q.events) == 0 {
		q.events, q.text = nil, 0
	}
	switch first.event.(type) {
	case hermes.Delta:
		return hermes.Delta{Text: strings.Join(first.pieces, "")}, false
	case hermes.Reasoning:
		return hermes.Reasoning{Text: strings.Join(first.pieces, "")}, false
	default:
		return first.event, false
	}
}

// pump hands events to the reader until the terminal one was read or ctx ends.
// Then it closes the channel.
func (q *queue) pump(ctx context.Context) {
	defer close(q.out)
	for {
		event, over := q.take()
		if over {
			return
		}
		if event == nil {
			select {
			case <-q.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case q.out <- event:
		case <-ctx.Done():
			return
		}
	}
}
