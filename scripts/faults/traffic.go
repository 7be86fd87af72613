package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// retryPause is how long a client waits that was refused or cut off. It is
// shorter than a browser's, to meet more of a fault.
const retryPause = 20 * time.Millisecond

// post sends one message and enters what became of it.
func (s *stage) post(ctx context.Context, p party, words string) (receipt, result) {
	e := s.ledger.offer(p.token, string(chat.Operator), words)
	r, res := s.client.post(ctx, p, e.text)
	switch {
	case res.served:
		s.ledger.acknowledge(e, r.ID, r.Epoch)
	case !res.cut():
		s.ledger.refuse(e)
	}
	s.tally.note(posts, res)
	return r, res
}

// reader follows a thread as a browser does, by the cursor of the last answer.
// One goroutine uses it at a time.
type reader struct {
	party
	cursor int64
	seen   []message
}

// follow polls once and reports whether there may be more.
func (s *stage) follow(ctx context.Context, r *reader) (more bool, res result) {
	g, res := s.client.poll(ctx, r.party, r.cursor)
	s.tally.note(polls, res)
	if !res.served {
		return true, res
	}
	r.seen = append(r.seen, g.Messages...)
	r.cursor = g.Cursor
	return g.Truncated, res
}

// traffic is clients at work: on each thread some writers and one reader.
type traffic struct {
	s       *stage
	readers []*reader
	running sync.WaitGroup
	stop    context.CancelFunc
}

// pace says how busy the clients of each thread are.
type pace struct {
	writers  int
	write    time.Duration // between the answer to a post and the next
	read     time.Duration // between two polls
	reply    time.Duration // between two runs of chat reply; 0 for none
	killFrom time.Duration // when set, every third chat reply is killed after
	killTo   time.Duration // a time between these
}

// begin lets clients work on the threads until finish is called.
func (s *stage) begin(ctx context.Context, parties []party, p pace) *traffic {
	ctx, stop := context.WithCancel(ctx)
	t := &traffic{s: s, stop: stop}
	for _, one := range parties {
		r := &reader{party: one, cursor: 1} // behind it lies every message
		t.readers = append(t.readers, r)
		t.running.Go(func() { t.read(ctx, r, p.read) })
		for i := range p.writers {
			t.running.Go(func() { t.write(ctx, one, fmt.Sprintf("writer %d", i), p.write) })
		}
	}
	if p.reply > 0 {
		t.running.Go(func() { t.reply(ctx, parties, p) })
	}
	return t
}

func (t *traffic) write(ctx context.Context, p party, words string, every time.Duration) {
	for ctx.Err() == nil {
		wait := every
		if _, res := t.s.post(ctx, p, words); !res.served {
			wait = max(wait, retryPause)
		}
		pause(ctx, wait)
	}
}

func (t *traffic) read(ctx context.Context, r *reader, every time.Duration) {
	for ctx.Err() == nil {
		wait := every
		if _, res := t.s.follow(ctx, r); !res.served {
			wait = max(wait, retryPause)
		}
		pause(ctx, wait)
	}
}

// reply runs chat reply on one thread after the other. Before it has a message,
// a thread refuses replies, so the first round waits.
func (t *traffic) reply(ctx context.Context, parties []party, p pace) {
	kill := p.killFrom
	for i := 0; pause(ctx, p.reply); i++ {
		after := time.Duration(0)
		if p.killTo > 0 && i%3 == 2 {
			after = kill
			// Steps through the life of a process, a little more each time.
			if kill += (p.killTo - p.killFrom) / 17; kill > p.killTo {
				kill = p.killFrom
			}
		}
		t.s.reply(ctx, parties[i%len(parties)], "reply", after)
	}
}

// finish stops the clients when they have the answers that they wait for.
func (t *traffic) finish() {
	t.stop()
	t.running.Wait()
}

// settleTime bounds the last look at all threads.
const settleTime = 30 * time.Second

// settle reads what the readers have not seen yet and every thread from its
// beginning, and judges both. With answers, an agent writes besides.
func (s *stage) settle(ctx context.Context, readers []*reader, answers bool) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	again := make([]*reader, len(readers))
	failures := make([]error, len(readers))
	var running sync.WaitGroup
	const lookers = 8
	for from := range lookers {
		running.Go(func() {
			for i := from; i < len(readers); i += lookers {
				again[i] = &reader{party: readers[i].party, cursor: 1}
				failures[i] = errors.Join(s.readAll(ctx, readers[i]), s.readAll(ctx, again[i]))
			}
		})
	}
	running.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if s.report.verdict == nil {
		s.report.verdict = newVerdict()
	}
	for _, r := range slices.Concat(readers, again) {
		s.ledger.judge(s.report.verdict, r.token, r.seen, answers)
	}
	return nil
}

// readAll polls until the thread has nothing more.
func (s *stage) readAll(ctx context.Context, r *reader) error {
	for {
		more, res := s.follow(ctx, r)
		if res.served && !more {
			return nil
		}
		if !res.served && !pause(ctx, retryPause) {
			return fmt.Errorf("thread %s cannot be read to its end: %s", r.token.Thread(), res.code)
		}
	}
}
