package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/workspace"
)

// soakTime is how long the writers of the test below write; RELAY_SOAK=20 makes
// it a minute.
const soakTime = 3 * time.Second

// Ensures section 4.2: while 50 writers of several owners do all kinds of things,
// no call fails, and no reader, be it one that polls or one that waits, ever
// skips or reorders an event, or sees one of somebody else.
func TestConcurrent_NoEventIsSkipped(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	ctx, cancel := context.WithTimeout(t.Context(), soakTime*time.Duration(soak()))
	defer cancel()
	owners := make([]workspace.OwnerID, 5)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	var writes atomic.Int64
	for i := range owners {
		owners[i] = id[workspace.OwnerID](900 + i)
		a, b := mustAgent(t, s, owners[i], "A"), mustAgent(t, s, owners[i], "B")
		chats := []workspace.ConversationID{
			mustDirect(t, s, owners[i], a.ID).ID, mustDirect(t, s, owners[i], b.ID).ID,
			mustGroup(t, s, owners[i], workspace.ModeFree, a, b).ID,
		}
		for w := range 10 {
			writers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if err := writeSomething(s, owners[i], chats, b.ID, w, n); err != nil {
						t.Errorf("writer %d of %s: %v", w, owners[i], err)
						return
					}
					writes.Add(1)
				}
			})
		}
	}
	seen := make([][]int64, 4*len(owners))
	for i := range seen {
		wait := []time.Duration{0, time.Second}[i%2]
		readers.Go(func() { seen[i] = follow(t, s, owners[i/4], wait, done) })
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for i, got := range seen {
		var want []int64
		for _, e := range mustEvents(t, s, owners[i/4], 0) {
			want = append(want, e.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("reader %d saw %d events of %d", i, len(got), len(want))
		}
	}
	t.Logf("%d writes, %d events, 20 readers", writes.Load(), count(t, s, `SELECT count(*) FROM event`))
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// writeSomething is the nth write of one of an owner's writers.
func writeSomething(s *Store, owner workspace.OwnerID, chats []workspace.ConversationID, agent workspace.AgentID, w, n int) (err error) {
	ctx := context.Background()
	to := chats[(w+n)%len(chats)]
	switch n % 6 {
	case 0, 1:
		_, err = s.Send(ctx, owner, to, text(w*1_000_000+n, "hello @B"))
	case 2:
		_, err = s.MarkRead(ctx, owner, to, workspace.ReadMarker{Seq: workspace.Some(int64(n))})
	case 3:
		_, _, err = s.EditConversation(ctx, owner, to, workspace.ConversationPatch{Pinned: workspace.Some(n%4 == 0)})
	case 4:
		_, err = s.StopMember(ctx, owner, chats[2], agent)
	case 5:
		_, err = s.AddFiles(ctx, owner, []NewFile{newFile(fmt.Sprint(w, n), 1)}, Quota{})
	}
	return err
}

// follow reads events as a client does until done, and then until there is
// nothing more, and returns their sequences.
func follow(t *testing.T, s *Store, owner workspace.OwnerID, wait time.Duration, done <-chan struct{}) (seqs []int64) {
	cursor := int64(0)
	for last := false; ; {
		select {
		case <-done:
			last, wait = true, 0
		default:
		}
		page, err := s.WaitEvents(context.Background(), owner, cursor, workspace.EventPage, wait)
		if err != nil {
			t.Error(err)
			return seqs
		}
		for _, e := range page.Events {
			seqs = append(seqs, e.Seq)
		}
		if cursor = page.Cursor; len(page.Events) == 0 && last {
			return seqs
		}
	}
}
