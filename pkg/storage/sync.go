package storage

import (
	"errors"
	"sync"
)

// syncGroup lets concurrent writers share one sync of a directory: a sync that
// starts after a writer's rename covers it, whoever asked for it.
type syncGroup struct {
	sync    func() error
	running chan struct{} // holds a value while a sync runs

	nextMu sync.Mutex
	next   *syncRound // the round that newcomers join, nil for none
}

func newSyncGroup(sync func() error) *syncGroup {
	return &syncGroup{sync: sync, running: make(chan struct{}, 1)}
}

// syncRound is one sync and everybody whom it covers.
type syncRound struct {
	done chan struct{} // closed when the sync has ended
	err  error         // of the sync, once it has ended
}

// errNoSync is the outcome of a round whose sync did not return.
var errNoSync = errors.New("the sync was cut off")

// wait returns when everything renamed before the call is durable. A failed
// sync fails all that it covers: the kernel reports a write-back error once, so
// a second try would look like a success and be none.
func (g *syncGroup) wait() error {
	round, first := g.join()
	if first {
		g.run(round)
	}
	<-round.done
	return round.err
}

// join returns the round that has not started yet; first reports that the caller
// is the first in it, who runs it.
func (g *syncGroup) join() (round *syncRound, first bool) {
	g.nextMu.Lock()
	defer g.nextMu.Unlock()
	if g.next == nil {
		g.next, first = &syncRound{done: make(chan struct{}), err: errNoSync}, true
	}
	return g.next, first
}

// run syncs for the round once the sync before it has ended, and tells all who
// joined meanwhile.
func (g *syncGroup) run(round *syncRound) {
	g.running <- struct{}{}
	defer func() { <-g.running }()
	defer close(round.done)
	g.close()
	round.err = g.sync()
}

// close lets later callers join a later round: the sync that starts now may
// miss what they renamed.
func (g *syncGroup) close() {
	g.nextMu.Lock()
	defer g.nextMu.Unlock()
	g.next = nil
}
