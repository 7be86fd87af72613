package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/newos4/relay/pkg/chat"
)

// message is one message as a poll shows it.
type message struct {
	ID     string `json:"id"`
	Epoch  int64  `json:"epoch"`
	Author string `json:"author"`
	Text   string `json:"text"`
}

// outcome is what the writer of a message was told.
type outcome int

const (
	unknown outcome = iota // nothing: it was cut off before an answer
	acknowledged
	refused
)

// entry is one message that was offered. Only the ledger changes it.
type entry struct {
	author  string
	text    string // no other message has it
	outcome outcome
	id      string // as acknowledged
	epoch   int64
	// Moments count all that the ledger was told, so that of two messages it is
	// known whether one was offered after the other had been acknowledged.
	offered, settled int
}

// ledger knows of every message what its writer was told. Its methods may be
// called concurrently.
type ledger struct {
	mu      sync.Mutex
	moment  int
	threads map[chat.Token]map[string]*entry // by text
}

func newLedger() *ledger { return &ledger{threads: make(map[chat.Token]map[string]*entry)} }

// offer enters a message that is about to be sent, with a text that begins with
// the given words.
func (l *ledger) offer(token chat.Token, author, words string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moment++
	e := &entry{author: author, text: fmt.Sprintf("%s %d", words, l.moment), offered: l.moment, settled: math.MaxInt}
	if l.threads[token] == nil {
		l.threads[token] = make(map[string]*entry)
	}
	l.threads[token][e.text] = e
	return e
}

// acknowledge notes that the writer was told that the message stands.
func (l *ledger) acknowledge(e *entry, id string, epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moment++
	e.outcome, e.id, e.epoch, e.settled = acknowledged, id, epoch, l.moment
}

// refuse notes that the writer was told that the message does not stand.
func (l *ledger) refuse(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moment++
	e.outcome, e.settled = refused, l.moment
}

// verdict is what is wrong with the threads. Each message counts once in each.
type verdict struct {
	lost, doubled, phantom map[*entry]string
	// standing are messages that were cut off and stand, as they may.
	standing map[*entry]bool
	// foreign are messages that nobody offered, and answers to nothing.
	foreign []string
	// answers are the messages of an agent, which nobody offers.
	answers map[chat.Token]int
}

func newVerdict() *verdict {
	return &verdict{
		lost: make(map[*entry]string), doubled: make(map[*entry]string), phantom: make(map[*entry]string),
		standing: make(map[*entry]bool), answers: make(map[chat.Token]int),
	}
}

// judge compares the thread of a token, as one reader saw it, with what was
// offered. With answers, an agent writes besides.
func (l *ledger) judge(v *verdict, token chat.Token, seen []message, answers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offered := l.threads[token]
	times := make(map[string]int)
	v.answers[token] = 0
	for i, m := range seen {
		times[m.Text]++
		if e := offered[m.Text]; e != nil {
			if times[m.Text] == 1 { // another one is counted as doubled
				v.compare(e, m)
			}
			continue
		}
		if answers && m.Author == string(chat.Hermes) {
			v.answers[token]++
			if i > 0 && seen[i-1].Author == m.Author {
				v.foreign = append(v.foreign, fmt.Sprintf("%s: the agent answered what was answered", m.ID))
			}
			continue
		}
		v.foreign = append(v.foreign, fmt.Sprintf("%s by %s: nobody wrote %q", m.ID, m.Author, clip(m.Text)))
	}
	for _, e := range offered {
		v.count(e, times[e.text])
	}
	v.checkOrder(offered, withoutRepeats(seen))
}

// withoutRepeats leaves each message where it is shown first.
func withoutRepeats(seen []message) []message {
	known := make(map[string]bool)
	return slices.DeleteFunc(slices.Clone(seen), func(m message) bool {
		repeated := known[m.Text]
		known[m.Text] = true
		return repeated
	})
}

// compare checks that a message is shown as it was written and acknowledged.
func (v *verdict) compare(e *entry, m message) {
	differs := m.Author != e.author || e.outcome == acknowledged && (m.ID != e.id || m.Epoch != e.epoch)
	if differs {
		v.lost[e] = fmt.Sprintf("%s is shown as %s at %d by %s", e, m.ID, m.Epoch, m.Author)
	}
}

// count checks how often a message is shown.
func (v *verdict) count(e *entry, times int) {
	if times > 1 {
		v.doubled[e] = fmt.Sprintf("%s is shown %d times", e, times)
	}
	if e.outcome == unknown && times > 0 {
		v.standing[e] = true
	}
	if e.outcome == acknowledged && times == 0 {
		v.lost[e] = fmt.Sprintf("%s is not shown", e)
	}
	if e.outcome == refused && times > 0 {
		v.phantom[e] = fmt.Sprintf("%s was refused and is shown", e)
	}
}

// checkOrder checks that epochs rise, and that no message stands before one that
// was acknowledged before it was offered.
func (v *verdict) checkOrder(offered map[string]*entry, seen []message) {
	earliest := math.MaxInt // of the acknowledgements of what stands behind
	for i, m := range slices.Backward(seen) {
		e := offered[m.Text]
		if e == nil {
			continue
		}
		if i > 0 && seen[i-1].Epoch >= m.Epoch {
			v.lost[e] = fmt.Sprintf("%s is shown behind epoch %d", e, seen[i-1].Epoch)
		}
		if earliest < e.offered {
			v.lost[e] = fmt.Sprintf("%s is shown before what was acknowledged before it was sent", e)
		}
		if e.outcome == acknowledged {
			earliest = min(earliest, e.settled)
		}
	}
}

// String names the message without repeating much of it.
func (e *entry) String() string {
	return fmt.Sprintf("%q by %s (%s at %d)", clip(e.text), e.author, cmp.Or(e.id, "no id"), e.epoch)
}

// clip shortens a text for a report.
func clip(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
