package chat

import (
	"bytes"
	"fmt"
	"sort"
	"time"

	"github.com/go-json-experiment/json"
)

// MaxClockSkew is how far in the future an epoch may lie before its message is
// no longer aged by it. A clock that once jumped ahead leaves such epochs
// behind, and cursors keep them valid; such a message is aged by the time its
// file was last written instead, so that it can still be collected.
const MaxClockSkew = 24 * time.Hour

// Retention bounds a thread (section 4).
type Retention struct {
	// Messages is how many of the newest messages are kept; at least 1.
	Messages int
	// MaxAge is how long a message is kept.
	MaxAge time.Duration
}

// Thread is one conversation: an immutable list of messages held as the bytes
// of their JSON, oldest first, with an index over them. A nil *Thread is an
// empty conversation for every method that reads.
//
// A Thread may hold the bytes of only its newest messages (see [Thread.Tail]);
// the index always covers all of them.
type Thread struct {
	id    ThreadID
	index []entry
	first int    // the oldest message whose bytes are held
	body  []byte // messages first..last, joined by commas
}

// entry is what is known of a message without decoding it.
type entry struct {
	epoch  int64
	end    uint32 // offset behind the message in the body of the whole thread
	author byte   // first letter of the author, which tells the three apart
}

// wireMessage and wireThread are the shape of a thread file. Pointers tell an
// absent or null member from an empty one.
type wireMessage struct {
	ID     *string `json:"id"`
	Epoch  *int64  `json:"epoch"`
	TS     *string `json:"ts"`
	Author *Author `json:"author"`
	Text   *string `json:"text"`
}

type wireThread struct {
	Thread   *string        `json:"thread"`
	Messages *[]wireMessage `json:"messages"`
}

func fileHead(id ThreadID) string { return `{"thread":"` + string(id) + `","messages":[` }

const fileTail = "]}\n"

// Parse reads the bytes of a thread file and checks all that a thread promises:
// strict JSON in valid UTF-8, the thread's own id, known authors, unique ids,
// strictly increasing epochs. Any failure is an error with code [CodeCorrupt]
// (section 6). Members that the contract does not know are ignored, and ts is
// taken from the epoch.
//
// canonical reports whether data is byte for byte what [Thread.Encode] returns.
func Parse(id ThreadID, data []byte) (t *Thread, canonical bool, err error) {
	var wire wireThread
	if err := json.Unmarshal(data, &wire); err != nil {
		return nil, false, corrupt(err.Error())
	}
	if wire.Thread == nil || wire.Messages == nil {
		return nil, false, corrupt("the members thread and messages are missing")
	}
	if *wire.Thread != string(id) {
		return nil, false, corrupt(fmt.Sprintf("it holds the thread id %q", *wire.Thread))
	}
	t = &Thread{id: id, index: make([]entry, 0, len(*wire.Messages)), body: make([]byte, 0, len(data))}
	seen := make(map[string]bool, len(*wire.Messages))
	for i, w := range *wire.Messages {
		m, err := w.message()
		if err != nil {
			return nil, false, corrupt(fmt.Sprintf("message %d: %v", i, err))
		}
		if seen[m.ID] {
			return nil, false, corrupt(fmt.Sprintf("message %d: the id %q stands twice", i, m.ID))
		}
		seen[m.ID] = true
		if m.Epoch <= t.LastEpoch() {
			return nil, false, corrupt(fmt.Sprintf("message %d: its epoch %d is not after the one before", i, m.Epoch))
		}
		if err := t.push(m); err != nil {
			return nil, false, corrupt(fmt.Sprintf("message %d: %v", i, err))
		}
	}
	return t, bytes.Equal(t.Encode(), data), nil
}

// corrupt says why a file is not a thread. Whose file it is, the caller adds. The
// reason may quote the file and is for the operator; the browser is told the
// code alone.
func corrupt(reason string) error { return Errorf(CodeCorrupt, "%s", reason) }

func (w wireMessage) message() (Message, error) {
	if w.ID == nil || w.Epoch == nil || w.TS == nil || w.Author == nil || w.Text == nil {
		return Message{}, fmt.Errorf("one of id, epoch, ts, author, text is missing")
	}
	if !validID(*w.ID) {
		return Message{}, fmt.Errorf("its id %q is not printable ASCII of 1 to 64 characters", *w.ID)
	}
	if !validEpoch(*w.Epoch) {
		return Message{}, fmt.Errorf("its epoch %d is out of range", *w.Epoch)
	}
	if !w.Author.valid() {
		return Message{}, fmt.Errorf("its author %q is unknown", *w.Author)
	}
	return Message{ID: *w.ID, Epoch: *w.Epoch, Author: *w.Author, Text: *w.Text}, nil
}

func validEpoch(epoch int64) bool { return epoch > 0 && epoch <= maxEpoch }

func validID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

// push appends m to a thread that is still being built and holds all its bytes.
func (t *Thread) push(m Message) error {
	if len(t.index) > 0 {
		t.body = append(t.body, ',')
	}
	body, err := appendMessage(t.body, m)
	if err != nil {
		return err
	}
	t.body = body
	t.index = append(t.index, entry{epoch: m.Epoch, end: uint32(len(body)), author: m.Author[0]})
	return nil
}

// Encode returns the bytes of the thread's file. The thread must hold all its
// bytes.
func (t *Thread) Encode() []byte {
	t.mustBeWhole()
	head := fileHead(t.id)
	out := make([]byte, 0, len(head)+len(t.body)+len(fileTail))
	out = append(out, head...)
	out = append(out, t.body...)
	return append(out, fileTail...)
}

// Size returns roughly how many bytes of memory the thread takes.
func (t *Thread) Size() int {
	if t == nil {
		return 0
	}
	const perEntry = 16
	return len(t.body) + perEntry*cap(t.index)
}

// Whole reports whether the thread holds the bytes of every message.
func (t *Thread) Whole() bool { return t == nil || t.first == 0 }

func (t *Thread) mustBeWhole() {
	if !t.Whole() {
		panic("chat: the thread holds only its newest messages")
	}
}

// Tail returns the thread with the bytes of at most its newest n messages, in
// memory of their own, so that a cache need not hold what polls rarely ask for.
func (t *Thread) Tail(n int) *Thread {
	first := max(t.first, len(t.index)-n)
	tail := &Thread{id: t.id, index: t.index, first: first}
	tail.body = bytes.Clone(t.slice(first, len(t.index)))
	return tail
}

// Refill returns the whole thread from its tail and the bytes of its file,
// which must be the canonical encoding that the tail was cut from. It decodes
// nothing.
func (t *Thread) Refill(file []byte) *Thread {
	head := len(fileHead(t.id))
	return &Thread{id: t.id, index: t.index, body: file[head : len(file)-len(fileTail)]}
}

// slice returns the JSON of messages from..to-1, joined by commas.
func (t *Thread) slice(from, to int) []byte {
	if from >= to {
		return nil
	}
	base := t.start(t.first)
	return t.body[t.start(from)-base : t.index[to-1].end-base]
}

// start is the offset of message i in the body of the whole thread.
func (t *Thread) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return t.index[i-1].end + 1
}

// Len returns the number of messages.
func (t *Thread) Len() int {
	if t == nil {
		return 0
	}
	return len(t.index)
}

// LastEpoch returns the newest message's epoch in milliseconds, 0 without one.
func (t *Thread) LastEpoch() int64 {
	if t.Len() == 0 {
		return 0
	}
	return t.index[len(t.index)-1].epoch
}

// Awaiting reports whether the newest message was not written by Hermes
// (section 5).
func (t *Thread) Awaiting() bool {
	return t.Len() > 0 && t.index[len(t.index)-1].author != Hermes[0]
}

// Unanswered returns how many messages stand behind Hermes's last one, and the
// epoch of the first of them.
func (t *Thread) Unanswered() (count int, since int64) {
	for i := t.Len() - 1; i >= 0 && t.index[i].author != Hermes[0]; i-- {
		count, since = count+1, t.index[i].epoch
	}
	return count, since
}

// TurnsSince returns how many messages of Hermes stand behind the last one of
// the author.
func (t *Thread) TurnsSince(author Author) int {
	turns := 0
	for i := t.Len() - 1; i >= 0 && t.index[i].author != author[0]; i-- {
		if t.index[i].author == Hermes[0] {
			turns++
		}
	}
	return turns
}

// PostsAfter returns the epochs of the messages that browsers wrote after
// epoch, oldest first: what a rate limiter has to count after a restart
// (section 7).
func (t *Thread) PostsAfter(epoch int64) []int64 {
	var posts []int64
	for _, e := range t.entries() {
		if e.epoch > epoch && e.author != Hermes[0] {
			posts = append(posts, e.epoch)
		}
	}
	return posts
}

func (t *Thread) entries() []entry {
	if t == nil {
		return nil
	}
	return t.index
}

// NextEpoch returns the epoch of the next message: now, but always after the
// thread's newest message and after floor, in milliseconds (section 4).
func (t *Thread) NextEpoch(now, floor int64) int64 {
	return max(now, t.LastEpoch()+1, floor+1)
}

// HasID reports whether a message of the thread, which must be whole, has id.
func (t *Thread) HasID(id string) bool {
	if t == nil {
		return false
	}
	t.mustBeWhole()
	// An unescaped quote cannot stand inside a JSON string, so this matches the
	// member and never a text.
	return bytes.Contains(t.body, []byte(`{"id":"`+id+`","epoch":`))
}

// Append returns the thread with m behind its messages and, in the same step,
// without those that the retention drops at now (milliseconds). m is never
// dropped. The receiver, nil for a new thread, must be whole and m.Epoch later
// than its newest. An epoch that [Parse] would call corrupt is an error with code
// [CodeStorage].
func (t *Thread) Append(id ThreadID, m Message, now int64, keep Retention) (*Thread, error) {
	if !validEpoch(m.Epoch) {
		return nil, Errorf(CodeStorage, "the next epoch %d of thread %s is out of range", m.Epoch, id)
	}
	drop := 0
	if t != nil {
		t.mustBeWhole()
		drop = max(t.expired(now, now, keep.MaxAge), len(t.index)+1-keep.Messages)
		drop = min(max(drop, 0), len(t.index))
	}
	grown := t.from(id, drop, len(m.Text)+256)
	if err := grown.push(m); err != nil {
		return nil, err
	}
	return grown, nil
}

// Excess returns how many of the oldest messages the retention drops at now,
// and whether nothing is left then. written is when the thread's file was last
// written. Both times are in milliseconds.
func (t *Thread) Excess(now, written int64, keep Retention) (drop int, gone bool) {
	if len(t.index) == 0 {
		return 0, written < now-keep.MaxAge.Milliseconds()
	}
	drop = max(t.expired(now, written, keep.MaxAge), len(t.index)-keep.Messages, 0)
	return drop, drop == len(t.index)
}

// Drop returns the thread, which must be whole, without its oldest n messages.
func (t *Thread) Drop(n int) *Thread {
	t.mustBeWhole()
	return t.from(t.id, n, 0)
}

// from returns a copy of the thread without its oldest drop messages, with room
// for extra bytes.
func (t *Thread) from(id ThreadID, drop, extra int) *Thread {
	if t.Len() == drop {
		return &Thread{id: id, body: make([]byte, 0, extra)}
	}
	kept := t.slice(drop, len(t.index))
	body := make([]byte, 0, len(kept)+extra)
	fresh := &Thread{id: id, body: append(body, kept...), index: make([]entry, 0, len(t.index)-drop+1)}
	shift := t.start(drop)
	for _, e := range t.index[drop:] {
		e.end -= shift
		fresh.index = append(fresh.index, e)
	}
	return fresh
}

// expired counts the oldest messages that are older than maxAge. A message
// whose epoch is further ahead than [MaxClockSkew] is as old as its file.
func (t *Thread) expired(now, written int64, maxAge time.Duration) int {
	cut := now - maxAge.Milliseconds()
	return sort.Search(len(t.index), func(i int) bool {
		when := t.index[i].epoch
		if when > now+MaxClockSkew.Milliseconds() {
			when = written
		}
		return when >= cut
	})
}

// FromTheFuture reports whether the newest epoch is further ahead of now (both
// milliseconds) than [MaxClockSkew].
func (t *Thread) FromTheFuture(now int64) bool {
	return t.LastEpoch() > now+MaxClockSkew.Milliseconds()
}

// Last returns the newest message; ok is false for an empty thread.
func (t *Thread) Last() (m Message, ok bool) {
	if t.Len() == 0 {
		return Message{}, false
	}
	n := len(t.index)
	return decodeOne(t.slice(n-1, n)), true
}

// Messages decodes every message of a whole thread, oldest first.
func (t *Thread) Messages() []Message {
	if t == nil {
		return nil
	}
	t.mustBeWhole()
	return decodeAll(t.body)
}
