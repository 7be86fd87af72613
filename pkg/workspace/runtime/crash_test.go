package runtime_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// fuse is the clock of a store that stands still for ever at a given write, as a
// process that was killed does: neither that write nor any later one is made.
type fuse struct {
	mu    sync.Mutex
	left  int // writes until it blows; negative is never
	blown chan struct{}
	freed chan struct{}
}

func newFuse() *fuse {
	return &fuse{left: -1, blown: make(chan struct{}), freed: make(chan struct{})}
}

// arm makes the write after so many others the one that is never made.
func (f *fuse) arm(writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = writes
}

// now returns the time, or stops there.
func (f *fuse) now() time.Time {
	f.mu.Lock()
	if f.left == 0 {
		select {
		case <-f.blown:
		default:
			close(f.blown)
		}
		f.mu.Unlock()
		<-f.freed
		return time.Now()
	}
	if f.left > 0 {
		f.left--
	}
	f.mu.Unlock()
	return time.Now()
}

// isBlown reports whether the process is as good as killed.
func (f *fuse) isBlown() bool {
	select {
	case <-f.blown:
		return true
	default:
		return false
	}
}

// crash ends the runtime in the midst of its work: once the fuse is blown nothing
// is written any more. Then another process starts on what it left.
func (r *rig) crash(f *fuse) {
	r.Helper()
	stopped := make(chan struct{})
	go func() { r.runtime.Stop(); close(stopped) }()
	synctest.Wait()
	r.must(r.store.Close()) // so that what was held back fails
	close(f.freed)
	<-stopped
	r.must(r.client.Close())
	r.openStore(nil)
	r.start()
}

// openStore opens the rig's database with a clock.
func (r *rig) openStore(now func() time.Time) {
	r.Helper()
	s, err := store.Open(context.Background(), store.Options{Dir: r.dir, Readers: 1, Now: now})
	r.must(err)
	r.store = s
}

// atEachWrite runs a play once for each of its writes, killed there, and once
// without. Play begins the work and check judges what came of it.
func atEachWrite(t *testing.T, play func(r *rig) (workspace.ConversationID, workspace.Run), check func(r *rig, chat workspace.ConversationID, run workspace.Run)) {
	t.Helper()
	for writes := 0; ; writes++ {
		blown := false
		dir := filepath.Join(memoryDir(t), "workspace")
		t.Run(fmt.Sprintf("killed after %d writes", writes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, dir)
				r.stop()
				r.must(r.store.Close())
				f := newFuse()
				r.openStore(f.now)
				r.start()
				chat, run := play(r)
				f.arm(writes)
				r.runtime.Wake()
				time.Sleep(time.Minute)
				if blown = f.isBlown(); blown {
					r.crash(f)
				} else {
					f.arm(-1)
				}
				r.until("the run is over", func() bool { return r.detail(chat).Run == nil })
				r.promptedOnce()
				check(r, chat, run)
				r.stop()
				r.must(r.store.Check(context.Background()))
			})
		})
		if !blown {
			if writes < 5 {
				t.Errorf("the play had only %d writes", writes)
			}
			return
		}
	}
}

// promptedOnce fails when a marker was in more than one prompt.
func (r *rig) promptedOnce() {
	r.Helper()
	seen := make(map[string]bool)
	for _, p := range r.fake.Prompts() {
		marker, _, _ := strings.Cut(p.Text, "\n")
		if seen[marker] || !strings.HasPrefix(marker, "[relay-run:") {
			r.Errorf("prompted twice, or without a marker: %s", marker)
		}
		seen[marker] = true
	}
}

// Ensures that a process which is killed at any of its writes never sends a prompt
// twice and loses no answer: what was not sent at all is said to be so (sections
// 6.1, 6.2 and 6.10).
func TestCrash_DirectChat(t *testing.T) {
	t.Parallel()
	atEachWrite(t, func(r *rig) (workspace.ConversationID, workspace.Run) {
		chat := r.direct("A")
		r.script("A", hermestest.Delta("one "), hermestest.Wait(time.Second), hermestest.Delta("two"), hermestest.Wait(time.Second), hermestest.Complete("done"))
		return chat, r.hold(chat, "hi")
	}, func(r *rig, chat workspace.ConversationID, run workspace.Run) {
		switch r.status(run) {
		case workspace.RunComplete:
			r.wantSays(chat, "user: hi", "A: done")
		case workspace.RunFailed:
			if r.prompts() != "" || !strings.Contains(r.run(run).Error, "未送达") {
				r.Errorf("it failed though it was prompted: %+v", r.run(run))
			}
		default:
			r.Errorf("the run is %+v", r.run(run))
		}
	})
}

// hold stores a message and leaves the runtime asleep.
func (r *rig) hold(chat workspace.ConversationID, text string) workspace.Run {
	r.Helper()
	r.sent++
	run, err := r.store.Send(context.Background(), ann, chat, workspace.SendMessage{
		RequestID: workspace.Some(workspace.RequestID(fmt.Sprintf("00000000-0000-4000-8000-%012d", r.sent))), Content: workspace.Some(text),
	})
	r.must(err)
	return run
}

// Ensures the same of a group: each delegation happens once and is reviewed once
// (section 6.6).
func TestCrash_Batch(t *testing.T) {
	t.Parallel()
	atEachWrite(t, func(r *rig) (workspace.ConversationID, workspace.Run) {
		chat := r.group(workspace.ModeHost, "ABC", "", 3)
		r.fake.PutFile("/tmp/a", []byte("a"))
		r.script("A", hermestest.Delta("@B @C"), hermestest.Wait(time.Second), hermestest.Complete("[a](/tmp/a) @B @C"))
		r.answers("A", "reviewed")
		r.script("B", hermestest.Wait(time.Second), hermestest.Complete("b"))
		r.script("C", hermestest.Wait(2*time.Second), hermestest.Complete("c"))
		return chat, r.hold(chat, "go")
	}, func(r *rig, chat workspace.ConversationID, run workspace.Run) {
		got := sorted(r.prompts())
		switch r.status(run) {
		case workspace.RunComplete:
			if n := strings.Count(strings.Join(r.says(chat), "|"), "A: reviewed"); n != 1 || strings.Count(got, "A") != 2 {
				r.Errorf("prompted %s, the chat has %q", got, r.says(chat))
			}
		case workspace.RunFailed:
			if !strings.Contains(r.run(run).Error, "未送达") {
				r.Errorf("the run is %+v", r.run(run))
			}
		default:
			r.Errorf("the run is %+v", r.run(run))
		}
	})
}
