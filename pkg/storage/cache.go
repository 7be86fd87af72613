package storage

import (
	"sync"
	"sync/atomic"

	"github.com/newos4/relay/pkg/chat"
)

// state is what was read of a thread's file, valid while the file's identity
// stays the same.
type state struct {
	identity identity
	// tail holds the index of the whole thread and the bytes of its newest page.
	tail *chat.Thread
	// canonical reports whether the file is byte for byte what this program
	// would have written, so that it need not be decoded again.
	canonical bool
	// corrupt says why the file is no thread; tail is nil then.
	corrupt error

	used atomic.Int64 // cache.clock at the last use
}

// weight is roughly the state's memory in bytes.
func (st *state) weight() int {
	const overhead = 400
	return overhead + st.tail.Size()
}

// cache holds the states of threads within a budget of bytes. It answers no
// question by itself: the caller compares the identity with the file's.
type cache struct {
	budget int
	clock  atomic.Int64

	mu     sync.RWMutex
	states map[chat.ThreadID]*state
	size   int
	// expected are the states of files that this process is putting in place.
	expected map[chat.ThreadID]*state
}

func newCache(budget int) *cache {
	return &cache{budget: budget, states: make(map[chat.ThreadID]*state), expected: make(map[chat.ThreadID]*state)}
}

// get returns the state of the file with that identity, or nil.
func (c *cache) get(id chat.ThreadID, file identity) *state {
	c.mu.RLock()
	st, next := c.states[id], c.expected[id]
	c.mu.RUnlock()
	if next != nil && next.identity == file {
		st = next
	}
	if st == nil || st.identity != file {
		return nil
	}
	st.used.Store(c.clock.Add(1))
	return st
}

// expect announces the state that a writer, who holds the thread's lock, is
// about to put in place. Whoever looks at the file before that writer is back
// from the kernel, as one does who watches the directory, then need not read it.
func (c *cache) expect(id chat.ThreadID, st *state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected[id] = st
}

// unexpect takes back what was expected and is not to come.
func (c *cache) unexpect(id chat.ThreadID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.expected, id)
}

func (c *cache) put(id chat.ThreadID, st *state) {
	st.used.Store(c.clock.Add(1))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(id)
	c.states[id] = st
	c.size += st.weight()
	for c.size > c.budget && len(c.states) > 1 {
		c.remove(c.stale(id))
	}
}

// drop forgets a thread whose file is gone.
func (c *cache) drop(id chat.ThreadID) {
	c.mu.RLock()
	_, known := c.states[id]
	c.mu.RUnlock()
	if !known {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(id)
}

func (c *cache) remove(id chat.ThreadID) {
	if st, ok := c.states[id]; ok {
		c.size -= st.weight()
		delete(c.states, id)
	}
}

// stale picks, among a few states, the one that was not used for longest; a map
// is walked in random order, so a few stand for all.
func (c *cache) stale(except chat.ThreadID) chat.ThreadID {
	const sample = 8
	var oldest chat.ThreadID
	var seen int
	var used int64
	for id, st := range c.states {
		if id == except {
			continue
		}
		if at := st.used.Load(); oldest == "" || at < used {
			oldest, used = id, at
		}
		if seen++; seen == sample {
			break
		}
	}
	return oldest
}
