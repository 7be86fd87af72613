package api

import (
	"sync"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// usage counts the bytes of uploads that are under way, so that many of them at
// once cannot fill the disk beyond the quota before the store sees their rows.
type usage struct {
	mu    sync.Mutex
	bytes map[workspace.OwnerID]int64
	total int64
}

func newUsage() *usage { return &usage{bytes: make(map[workspace.OwnerID]int64)} }

// reservation is what one upload holds.
type reservation struct {
	usage *usage
	owner workspace.OwnerID
	// own and all bound the uploads under way of the owner and of everybody, in
	// bytes; negative is no bound.
	own, all int64
	held     int64
}

// reserve begins an upload by an owner whose library has the given number of bytes
// already.
func (u *usage) reserve(owner workspace.OwnerID, used int64, quota store.Quota) *reservation {
	return &reservation{usage: u, owner: owner, own: room(quota.PerOwner, used), all: room(quota.Total, 0)}
}

// room returns how much more there may be, or -1 for any amount.
func room(bound, used int64) int64 {
	if bound <= 0 {
		return -1
	}
	return max(bound-used, 0)
}

// take holds n more bytes, or says that the quota does not allow them.
func (r *reservation) take(n int64) error {
	s := r.usage
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.own >= 0 && s.bytes[r.owner]+n > r.own || r.all >= 0 && s.total+n > r.all {
		return workspace.Fail(workspace.CodeQuotaExceeded)
	}
	s.bytes[r.owner] += n
	s.total += n
	r.held += n
	return nil
}

// release lets go of what the upload holds: its rows count from now on, or its
// bytes are gone.
func (r *reservation) release() {
	s := r.usage
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= r.held
	if s.bytes[r.owner] -= r.held; s.bytes[r.owner] == 0 {
		delete(s.bytes, r.owner)
	}
	r.held = 0
}
