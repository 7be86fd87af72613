package storage

import "sync"

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

// syncRound is one sync and everybody whom it covers. Who has put the value
// into syncGroup.running may use its fields.
type syncRound struct {
	done bool
	err  error
}

// wait returns when everything renamed before the call is durable. A failed
// sync fails all that it covers: the kernel reports a write-back error once, so
// a second try would look like a success and be none.
func (g *syncGroup) wait() error {
	round := g.join()
	g.running <- struct{}{}
	defer func() { <-g.running }()
	if !round.done {
		g.close()
		round.err = g.sync()
		round.done = true
	}
	return round.err
}

func (g *syncGroup) join() *syncRound {
	g.nextMu.Lock()
	defer g.nextMu.Unlock()
	if g.next == nil {
		g.next = new(syncRound)
	}
	return g.next
}

// close lets later callers join a later round: the sync that starts now may
// miss what they renamed.
func (g *syncGroup) close() {
	g.nextMu.Lock()
	defer g.nextMu.Unlock()
	g.next = nil
}
