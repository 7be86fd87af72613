package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/workspace"
)

// tell appends n events of one entity.
func tell(t testing.TB, s *Store, owner workspace.OwnerID, kind workspace.EventType, entity string, n int) {
	t.Helper()
	if err := s.write(context.Background(), owner, "test", func(t *tx) error {
		for range n {
			if err := t.changed(workspace.Change{Type: kind, EntityID: entity, Data: struct{}{}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Ensures sections 4.1 and 4.2 (scenario 25): 600 events come in pages of 250,
// 250 and 100, ascending, without gap or repetition, of their owner alone; from
// the last cursor there is nothing, and the cursor stays.
func TestEvents_Pages(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	for range 60 { // two owners in turn, so that each sees gaps
		tell(t, s, ann, workspace.EventNodes, "", 10)
		tell(t, s, bob, workspace.EventNodes, "", 3)
	}
	var sizes []int
	var seqs []int64
	cursor := int64(0)
	for {
		page, err := s.Events(t.Context(), ann, cursor, workspace.EventPage)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			if page.Cursor != cursor {
				t.Errorf("an empty page moves the cursor from %d to %d", cursor, page.Cursor)
			}
			break
		}
		sizes = append(sizes, len(page.Events))
		for _, e := range page.Events {
			seqs = append(seqs, e.Seq)
		}
		cursor = page.Cursor
	}
	if !slices.Equal(sizes, []int{250, 250, 100}) || len(slices.Compact(slices.Clone(seqs))) != 600 || !slices.IsSorted(seqs) {
		t.Errorf("the pages have %v events", sizes)
	}
}

// Ensures section 4.4: a cursor from beyond the log, as after a restored backup,
// gets nothing and the real newest sequence of all owners.
func TestEvents_FromBeyondTheLog(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	tell(t, s, ann, workspace.EventNodes, "", 2)
	tell(t, s, bob, workspace.EventNodes, "", 3)
	for range 2 { // the second time, too, whatever is remembered
		page, err := s.Events(t.Context(), ann, 999, 10)
		if err != nil || len(page.Events) != 0 || page.Cursor != 5 {
			t.Errorf("the page is %+v, %v", page, err)
		}
	}
	waited, err := s.WaitEvents(t.Context(), ann, 999, 10, time.Hour)
	if err != nil || waited.Cursor != 5 {
		t.Errorf("waiting gives %+v, %v", waited, err)
	}
}

// Ensures section 4.2: a sequence is never given again, not even the highest
// after its row was deleted, nor after a restart.
func TestEvents_SequencesAreNeverReused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/workspace"
	s := mustOpen(t, inDir(dir))
	tell(t, s, ann, workspace.EventNodes, "", 7)
	mustExec(t, s, ann, `DELETE FROM event`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, inDir(dir))
	tell(t, s, ann, workspace.EventNodes, "", 1)
	if events := mustEvents(t, s, ann, 0); len(events) != 1 || events[0].Seq != 8 {
		t.Errorf("the events are %+v", events)
	}
}

// Ensures scenario 26: what a failed transaction appended is never seen, and
// wakes nobody.
func TestEvents_RollbackLeavesNone(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	next := s.Changed(ann)
	_ = s.write(t.Context(), ann, "test", func(t *tx) error {
		if err := t.changed(workspace.NodesChanged()); err != nil {
			return err
		}
		return workspace.Fail(workspace.CodeInternal)
	})
	select {
	case <-next:
		t.Error("somebody was woken")
	default:
	}
	if page, err := s.Events(t.Context(), ann, 0, 10); err != nil || len(page.Events) != 0 || page.Cursor != 0 {
		t.Errorf("the page is %+v, %v", page, err)
	}
}

// Ensures that a page of large events ends early, has at least one, and that
// reading on finds the rest.
func TestEvents_PagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	large := string(make([]byte, maxEventBytes/5*2))
	for range 3 {
		if err := s.write(t.Context(), ann, "test", func(t *tx) error {
			_, err := t.exec(`INSERT INTO event (owner, type, conversation_id, entity_id, created_at, avatar, data) VALUES (?, 'x', '', '', 0, '', ?)`, ann, large)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Events(t.Context(), ann, 0, 250)
	if err != nil || len(page.Events) != 2 {
		t.Fatalf("the page has %d events, %v", len(page.Events), err)
	}
	rest, err := s.Events(t.Context(), ann, page.Cursor, 250)
	if err != nil || len(rest.Events) != 1 {
		t.Errorf("the rest has %d events, %v", len(rest.Events), err)
	}
}

// Ensures section 4.4: a hundred clients that wait learn of an event within 50 ms
// of its commit, those of another owner do not, and one that gives up is let go.
func TestWaitEvents_WakesItsOwner(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	tell(t, s, ann, workspace.EventNodes, "", 1)
	ctx, cancel := context.WithCancel(t.Context())
	var group, other sync.WaitGroup
	woken := make([]time.Time, 100)
	for i := range woken {
		group.Go(func() {
			page, err := s.WaitEvents(context.Background(), ann, 1, 250, time.Minute)
			woken[i] = time.Now()
			if err != nil || len(page.Events) != 1 {
				t.Errorf("a waiter gets %+v, %v", page, err)
			}
		})
	}
	other.Go(func() {
		if _, err := s.WaitEvents(ctx, bob, 0, 250, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("who waits for somebody else's events gets %v", err)
		}
	})
	waitFor(t, func() bool { return s.wakes.waiting(ann) && s.wakes.waiting(bob) })
	tell(t, s, ann, workspace.EventNodes, "", 1)
	committed := time.Now()
	group.Wait()
	cancel()
	other.Wait()
	last := slices.MaxFunc(woken, time.Time.Compare)
	t.Logf("the last of 100 knew after %v", last.Sub(committed))
	if limit := 50 * time.Millisecond * slowdown; last.Sub(committed) > limit {
		t.Errorf("the last of 100 knew after %v", last.Sub(committed))
	}
}

// Ensures that events of another process are seen by a wait when its time is
// over, and by polls after a moment, though nobody is woken.
func TestWaitEvents_SeesOtherProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/workspace"
	c := newClock()
	s, other := mustOpen(t, inDir(dir), withClock(c)), mustOpen(t, inDir(dir))
	if page, err := s.Events(t.Context(), ann, 0, 10); err != nil || len(page.Events) != 0 {
		t.Fatalf("the page is %+v, %v", page, err)
	}
	tell(t, other, ann, workspace.EventNodes, "", 1)
	page, err := s.WaitEvents(t.Context(), ann, 0, 10, time.Millisecond)
	if err != nil || len(page.Events) != 1 {
		t.Errorf("the wait ends with %+v, %v", page, err)
	}
	if page, err = s.Events(t.Context(), ann, 1, 10); err != nil || len(page.Events) != 0 {
		t.Fatalf("the page is %+v, %v", page, err)
	}
	tell(t, other, ann, workspace.EventNodes, "", 1)
	c.advance(tailLife)
	if page, err = s.Events(t.Context(), ann, 1, 10); err != nil || len(page.Events) != 1 {
		t.Errorf("a later poll gets %+v, %v", page, err)
	}
}

// Ensures that a process that dies between a commit and the waking loses nothing:
// whoever polls afterwards sees the events.
func TestEvents_CommitWithoutWaking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/workspace"
	s := mustOpen(t, inDir(dir))
	// The same transaction without what follows the commit.
	err := transaction(t.Context(), s.writer, "BEGIN IMMEDIATE", func(v view) error {
		return (&tx{view: v, store: s, owner: ann, now: 1}).changed(workspace.NodesChanged())
	})
	if err != nil {
		t.Fatal(err)
	}
	reopened := mustOpen(t, inDir(dir))
	if page, err := reopened.WaitEvents(t.Context(), ann, 0, 10, time.Hour); err != nil || len(page.Events) != 1 {
		t.Errorf("the page is %+v, %v", page, err)
	}
}

// Ensures section 4.4: pruning deletes exactly the events that the rule calls
// superseded, whenever it is called, so that whoever reads on from any cursor
// still sees the last of each entity.
func TestPrune_IsTheRule(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	kinds := []workspace.EventType{workspace.EventMessage, workspace.EventConversation, workspace.EventRun}
	for range 2 {
		c := newClock()
		s := mustOpen(t, withClock(c))
		for range 150 {
			c.advance(time.Duration(r.IntN(120)) * time.Second)
			owner := []workspace.OwnerID{ann, bob}[r.IntN(2)]
			tell(t, s, owner, kinds[r.IntN(3)], []string{"x", "y", "z"}[r.IntN(3)], 1+r.IntN(3))
			if r.IntN(5) > 0 {
				continue
			}
			before := rows(t, s)
			want := workspace.Superseded(before, c.millis())
			removed, err := s.Prune(t.Context())
			if err != nil || removed != len(want) {
				t.Fatalf("%d events went, %v; the rule says %d", removed, err, len(want))
			}
			if left := workspace.Superseded(rows(t, s), c.millis()); len(left) != 0 || len(rows(t, s)) != len(before)-removed {
				t.Fatalf("%d superseded events are left", len(left))
			}
		}
	}
}

func rows(t *testing.T, s *Store) (found []workspace.EventRow) {
	t.Helper()
	if err := s.read(t.Context(), "test", func(v view) (err error) {
		found, err = all(v, func(r row) (e workspace.EventRow, err error) {
			err = r.Scan(&e.Seq, (*string)(&e.Owner), (*string)(&e.Type), &e.EntityID, (*int64)(&e.CreatedAt))
			return e, err
		}, `SELECT seq, owner, type, entity_id, created_at FROM event`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}
