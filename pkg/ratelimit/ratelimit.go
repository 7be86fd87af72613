// Package ratelimit counts accepted events in sliding windows.
//
// A claim on several windows is granted or refused as a whole and under one
// lock, so that concurrent claims never exceed a limit together; a refused
// claim leaves no trace, and a granted one that comes to nothing is taken back.
// Memory is bounded however many keys come. Contract: newos4-chat(7), section 7.
package ratelimit

import (
	"container/list"
	"slices"
	"sync"
	"time"
)

// DefaultMaxKeys bounds how many keys one window remembers. When it is full,
// the key whose last event is the oldest is forgotten.
const DefaultMaxKeys = 1 << 16

// Window allows Limit events of one key in any Span.
type Window struct {
	// Name tells windows apart in claims, refusals and snapshots.
	Name string
	// Limit is the number of events; 0 switches the window off.
	Limit int
	// Span is the length of the window.
	Span time.Duration
}

// Claim asks for one event of a key in the window with that name.
type Claim struct {
	Window string
	Key    string
}

// Refusal says which window is full and how long until it has room.
type Refusal struct {
	Window Window
	// Wait is how long until the oldest counted event leaves the window; more
	// than 0.
	Wait time.Duration
}

// Limiter holds a set of windows. Its methods may be called concurrently.
type Limiter struct {
	now     func() time.Time
	maxKeys int

	mu      sync.Mutex
	windows map[string]*window
}

type window struct {
	Window
	keys map[string]*list.Element
	// recent holds a *track per key, the key with the oldest last event first.
	recent *list.List
}

// track is the history of one key: the times of its events, oldest first.
type track struct {
	key   string
	times []time.Time
}

// New returns a Limiter that reads the time from now and remembers at most
// maxKeys keys per window.
func New(now func() time.Time, maxKeys int, windows ...Window) *Limiter {
	l := &Limiter{now: now, maxKeys: maxKeys, windows: make(map[string]*window)}
	l.Configure(windows...)
	return l
}

// Configure replaces the windows' limits and spans. Windows that keep their
// name keep what they have counted.
func (l *Limiter) Configure(windows ...Window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range windows {
		if known, ok := l.windows[w.Name]; ok {
			known.Window = w
			continue
		}
		l.windows[w.Name] = &window{Window: w, keys: make(map[string]*list.Element), recent: list.New()}
	}
}

// Reservation is a granted claim. It counts from the moment it was granted.
type Reservation struct {
	limiter *Limiter
	claims  []Claim
	at      time.Time
}

// Reserve grants all claims or none. When several windows are full, the refusal
// names the one that waits longest.
func (l *Limiter) Reserve(claims ...Claim) (*Reservation, *Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var refusal *Refusal
	for _, c := range claims {
		w := l.windows[c.Window]
		if wait := w.wait(c.Key, now); wait > 0 && (refusal == nil || wait > refusal.Wait) {
			refusal = &Refusal{Window: w.Window, Wait: wait}
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	for _, c := range claims {
		l.windows[c.Window].add(c.Key, now, now, l.maxKeys)
	}
	return &Reservation{limiter: l, claims: claims, at: now}, nil
}

// Cancel takes the reservation back: what was claimed did not happen. A nil
// Reservation has nothing to take back.
func (r *Reservation) Cancel() {
	if r == nil {
		return
	}
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	for _, c := range r.claims {
		r.limiter.windows[c.Window].remove(c.Key, r.at)
	}
	r.claims = nil
}

// Span returns the length of the window.
func (l *Limiter) Span(name string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.windows[name].Span
}

// Known reports whether the window remembers any event of key, expired or not.
func (l *Limiter) Known(name, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.windows[name].keys[key]
	return ok
}

// Seed gives a key that the window does not remember its history, oldest first.
// Times ahead of the clock count as now. A key that is known is left alone, so
// that a race of two seeds counts nothing twice.
func (l *Limiter) Seed(name, key string, times []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, now := l.windows[name], l.now()
	if _, ok := w.keys[key]; ok {
		return
	}
	for _, t := range times {
		w.add(key, earlier(t, now), now, l.maxKeys)
	}
}

// Snapshot is what a window has counted, for a restart.
type Snapshot map[string]map[string][]time.Time

// Snapshot returns the events that still count in the named windows.
func (l *Limiter) Snapshot(names ...string) Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, snapshot := l.now(), make(Snapshot)
	for _, name := range names {
		w := l.windows[name]
		keys := make(map[string][]time.Time)
		for key, el := range w.keys {
			if times := w.live(el.Value.(*track), now); len(times) > 0 {
				keys[key] = slices.Clone(times)
			}
		}
		snapshot[name] = keys
	}
	return snapshot
}

// Restore seeds every key of a snapshot whose window exists.
func (l *Limiter) Restore(snapshot Snapshot) {
	for name, keys := range snapshot {
		if !l.has(name) {
			continue
		}
		for key, times := range keys {
			l.Seed(name, key, times)
		}
	}
}

func (l *Limiter) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.windows[name] != nil
}

// Keys returns how many keys the window remembers.
func (l *Limiter) Keys(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.windows[name].keys)
}

// wait returns how long key has to wait for room, 0 when there is some.
func (w *window) wait(key string, now time.Time) time.Duration {
	el, ok := w.keys[key]
	if !ok || w.Limit == 0 {
		return 0
	}
	times := w.live(el.Value.(*track), now)
	if len(times) < w.Limit {
		return 0
	}
	// Room comes when so many have left that Limit-1 remain.
	return times[len(times)-w.Limit].Add(w.Span).Sub(now)
}

// live drops the events that have left the window and returns the others. An
// event ahead of the clock, after the clock stepped back, counts as now.
func (w *window) live(t *track, now time.Time) []time.Time {
	for i := len(t.times) - 1; i >= 0 && t.times[i].After(now); i-- {
		t.times[i] = now
	}
	gone := 0
	for gone < len(t.times) && !t.times[gone].Add(w.Span).After(now) {
		gone++
	}
	t.times = slices.Delete(t.times, 0, gone)
	return t.times
}

// add counts an event of key at a time that is not after now.
func (w *window) add(key string, at, now time.Time, maxKeys int) {
	if w.Limit == 0 {
		return
	}
	el, ok := w.keys[key]
	if !ok {
		w.makeRoom(now, maxKeys)
		el = w.recent.PushBack(&track{key: key})
		w.keys[key] = el
	}
	t := el.Value.(*track)
	t.times = append(t.times, at)
	w.recent.MoveToBack(el)
}

// makeRoom forgets the keys whose events have all left the window and, if that
// is not enough, the one that was quiet longest.
func (w *window) makeRoom(now time.Time, maxKeys int) {
	for front := w.recent.Front(); front != nil; front = w.recent.Front() {
		t := front.Value.(*track)
		if len(w.live(t, now)) > 0 && len(w.keys) < maxKeys {
			return
		}
		w.forget(front)
	}
}

func (w *window) forget(el *list.Element) {
	w.recent.Remove(el)
	delete(w.keys, el.Value.(*track).key)
}

func (w *window) remove(key string, at time.Time) {
	el, ok := w.keys[key]
	if !ok {
		return
	}
	t := el.Value.(*track)
	if i := lastIndex(t.times, at); i >= 0 {
		t.times = slices.Delete(t.times, i, i+1)
	}
	if len(t.times) == 0 {
		w.forget(el)
	}
}

// lastIndex finds at, or the newest event when the clock has moved it.
func lastIndex(times []time.Time, at time.Time) int {
	for i := len(times) - 1; i >= 0; i-- {
		if times[i].Equal(at) {
			return i
		}
	}
	return len(times) - 1
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
