package main

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Codes of refusals that trials expect; those of the contract's error table are
// the contract's.
const (
	// codeUnreached stands for a request that found nobody listening, and so
	// cannot have been heard.
	codeUnreached   = "unreached"
	codeStorage     = "storage"
	codeRateLimited = "rate_limited"
	codeExitFailed  = "exit 1" // of chat reply, where a browser gets codeStorage
	codeExitThread  = "exit 3" // of chat reply, before a browser has started the thread
)

// counts is what became of requests.
type counts struct {
	offered, served, unknown int
	refused                  map[string]int // by code
}

// tally counts requests of every kind and times those that were served. Its
// methods may be called concurrently.
type tally struct {
	mu    sync.Mutex
	sum   counts
	kinds map[string]*kindTally
}

// kindTally is the part of a tally for one kind of request.
type kindTally struct {
	served  int
	refused int
	times   []time.Duration
}

// Kinds of requests.
const (
	posts   = "post"
	polls   = "poll"
	replies = "chat reply"
)

func newTally() *tally {
	return &tally{sum: counts{refused: make(map[string]int)}, kinds: make(map[string]*kindTally)}
}

// result is what became of one request: served, refused with a code, or cut off.
type result struct {
	served bool
	code   string // "" for a request that was cut off
	took   time.Duration
}

// cut reports whether nobody can know what became of the request.
func (r result) cut() bool { return !r.served && r.code == "" }

func (t *tally) note(kind string, r result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[kind]
	if k == nil {
		k = new(kindTally)
		t.kinds[kind] = k
	}
	t.sum.offered++
	switch {
	case r.served:
		t.sum.served++
		k.served++
		k.times = append(k.times, r.took)
	case r.cut():
		t.sum.unknown++
	default:
		t.sum.refused[r.code]++
		k.refused++
	}
}

func (t *tally) counts() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.sum
	sum.refused = maps.Clone(sum.refused)
	return sum
}

// of returns how many requests of a kind were served and refused.
func (t *tally) of(kind string) (served, refused int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.kinds[kind]; k != nil {
		return k.served, k.refused
	}
	return 0, 0
}

// percentile returns the time within which that share of the served requests of
// a kind were answered, 0 when there was none.
func (t *tally) percentile(kind string, share float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[kind]
	if k == nil {
		return 0
	}
	return percentileOf(k.times, share)
}

func percentileOf(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
