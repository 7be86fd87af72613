package autoreply

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// faulty is a store that cannot read for a while.
type faulty struct {
	*storage.Store
	mu              sync.Mutex
	full            bool
	summary, thread error
}

func (f *faulty) set(summary, thread error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.summary, f.thread = summary, thread
}

func (f *faulty) Summary(id chat.ThreadID) (storage.Summary, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.summary != nil {
		return storage.Summary{}, false, f.summary
	}
	return f.Store.Summary(id)
}

func (f *faulty) Thread(id chat.ThreadID) (*chat.Thread, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.thread != nil {
		return nil, f.thread
	}
	return f.Store.Thread(id)
}

// restartOn starts the rig's agent anew on another store.
func (r *rig) restartOn(store Store) {
	r.Helper()
	r.stop()
	r.agent = New(testSettings(r.backend), store, r.path, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.agent.Run(ctx, r.changes) })
	r.stop = func() { cancel(); wg.Wait() }
}

// Ensures that a thread which cannot be read when its change is told is not
// forgotten: nobody tells of that change again.
func TestAgent_LooksAgainAtWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		store := &faulty{Store: r.store}
		r.restartOn(store)
		store.set(syscall.EMFILE, nil)
		r.say(testThread, chat.Operator, "a")
		r.pass(5 * time.Second)
		store.set(nil, nil)
		r.pass(firstBackoff)
		r.want(testThread, "a", "re: a")
	})
}

// Ensures that a run which cannot read its thread is a failure like any other,
// with waits between and an end, and not tried again at once for ever.
func TestAgent_UnreadableThreadIsAFailure(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		store := &faulty{Store: r.store}
		r.restartOn(store)
		store.set(nil, syscall.EMFILE)
		r.say(testThread, chat.Operator, "a")
		r.pass(3 * time.Second)
		if s := r.state(); s.Phase != Waiting || s.Attempts != 1 || !strings.Contains(s.Reason, "reading the thread") {
			t.Errorf("state = %+v", s)
		}
		r.pass(time.Hour)
		if s := r.state(); s.Phase != Failed {
			t.Errorf("state = %+v", s)
		}
	})
}

// Ensures that stopping in the middle of a run forgives no failure before it.
func TestAgent_StopForgivesNoFailure(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		asked := 0
		r.backend.answer = func(ctx context.Context, _ Question) (Answer, error) {
			if asked++; asked == 1 {
				return Answer{}, errors.New("x")
			}
			<-ctx.Done()
			return Answer{}, ctx.Err()
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(2*time.Second + firstBackoff)
		if s := r.state(); s.Phase != Running || s.Attempts != 1 {
			t.Fatalf("state = %+v", s)
		}
		r.stop()
		if s := r.state(); s.Phase != Pending || s.Attempts != 1 {
			t.Errorf("state = %+v", s)
		}
		r.start(testSettings(r.backend))
	})
}

// Ensures that other settings lift no bound on the page's agent.
func TestAgent_ApplyKeepsPingPongStopped(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *Settings) { s.Bounds.AgentTurns = 1 }, func(r *rig) {
		r.say(testThread, chat.Operator, "start")
		r.pass(3 * time.Second)
		r.say(testThread, chat.Agent, "and?")
		r.pass(3 * time.Second)
		settings := testSettings(r.backend)
		settings.Bounds.AgentTurns = 1
		if err := r.agent.Apply(r.Context(), settings); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Minute)
		r.want(testThread, "start", "re: start", "and?")
		state, err := ReadState(r.path)
		if err != nil || state.Counts["held back: answers in a row to the page's agent"] == 0 {
			t.Errorf("counts = %v, %v", state.Counts, err)
		}
	})
}

// Ensures that of threads which a bound held back the one that asked first goes
// first, whatever the others are called, and that the bound is counted.
func TestAgent_BoundsAreFair(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *Settings) { s.Bounds.RunsPerHour = 1 }, func(r *rig) {
		first, second := thread(1), thread(2)
		if first < second {
			first, second = second, first
		}
		r.say(testThread, chat.Operator, "x")
		r.pass(3 * time.Second)
		r.say(first, chat.Operator, "x")
		r.pass(3 * time.Second)
		r.say(second, chat.Operator, "x")
		r.pass(time.Hour)
		r.want(first, "x", "re: x")
		r.want(second, "x")
		state, err := ReadState(r.path)
		if err != nil || state.Counts["held back: answers in an hour"] == 0 {
			t.Errorf("counts = %v, %v", state.Counts, err)
		}
	})
}

// Ensures that a clock which was ahead for a while closes nothing for longer
// than the bounds say, neither by its charges nor by its waits.
func TestAgent_ClockWasAhead(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.stop()
		ahead := time.Now().Add(365 * 24 * time.Hour)
		receipt, err := r.store.Append(r.Context(), testThread, storage.Post{Author: chat.Operator, Text: "a", Create: true})
		if err != nil {
			t.Fatal(err)
		}
		err = writeState(r.path, State{
			Ledger: ledger{Charges: []charge{{At: ahead.UnixMilli(), Thread: testThread}}},
			Threads: map[chat.ThreadID]ThreadState{
				testThread: {Phase: Waiting, Message: receipt.Message.ID, Until: ahead.UnixMilli()},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		settings := testSettings(r.backend)
		settings.Bounds.RunsPerHour = 1
		r.start(settings)
		r.pass(time.Minute)
		r.want(testThread, "a")
		r.pass(time.Hour)
		r.want(testThread, "a", "re: a")
	})
}

// Ensures that a panic over one thread is that thread's failure alone.
func TestAgent_SurvivesAPanic(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(ctx context.Context, q Question) (Answer, error) {
			if q.Thread == testThread {
				panic("what the message said")
			}
			return echo(ctx, q)
		}
		r.say(testThread, chat.Operator, "a")
		r.say(thread(1), chat.Operator, "b")
		r.pass(3 * time.Second)
		r.want(thread(1), "b", "re: b")
		if s := r.state(); s.Phase != Failed || strings.Contains(s.Reason, "said") {
			t.Errorf("state = %+v", s)
		}
	})
}

// Ensures that a state which could not be written is written later.
func TestAgent_SavesLater(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(context.Context, Question) (Answer, error) {
			return Answer{}, Failf(ReasonRefused, false, "401")
		}
		dir := filepath.Dir(r.path)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(3 * time.Second)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		r.tell(testThread)
		if s := r.state(); s.Phase != Failed {
			t.Errorf("state = %+v", s)
		}
	})
}

// Ensures that the state file gets the group of its directory, by which chat's
// users read it, and may be read by that group and written by nobody else.
func TestWriteState_Group(t *testing.T) {
	t.Parallel()
	group := uint32(os.Getegid())
	if os.Geteuid() == 0 {
		group = 54321 // only root can give a directory any group
	}
	dir := t.TempDir()
	if err := os.Chown(dir, -1, int(group)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o750|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, StateFile)
	if err := writeState(path, State{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Gid != group || info.Mode() != 0o640 {
		t.Errorf("mode %v, %+v", info.Mode(), stat)
	}
}

// Ensures that what shortens an answer is given nothing more to look at.
func TestDraft_ShorteningLooksAtNothing(t *testing.T) {
	t.Parallel()
	backend := &scripted{answer: func(_ context.Context, q Question) (Answer, error) {
		if q.TooLong == "" {
			return Answer{Text: strings.Repeat("x", 4001), Tokens: 10}, nil
		}
		return Answer{Text: "short"}, nil
	}}
	if _, err := DryRun(t.Context(), testSettings(backend), chat.Message{Text: "?"}); err != nil {
		t.Fatal(err)
	}
	asked := backend.questions()
	if b := asked[1].Budget; b.ToolCalls != 0 || b.Bytes != 0 || b.Tokens != 990 {
		t.Errorf("budget = %+v", b)
	}
}

// Append fails as long as it is told to, for want of space.
func (f *faulty) Append(ctx context.Context, id chat.ThreadID, post storage.Post) (storage.Receipt, error) {
	f.mu.Lock()
	full := f.full && post.Author == chat.Hermes
	f.mu.Unlock()
	if full {
		return storage.Receipt{}, syscall.ENOSPC
	}
	return f.Store.Append(ctx, id, post)
}

// Ensures that an answer which cannot be stored is tried again later.
func TestAgent_FullDisk(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		store := &faulty{Store: r.store, full: true}
		r.restartOn(store)
		r.say(testThread, chat.Operator, "a")
		r.pass(3 * time.Second)
		if s := r.state(); s.Phase != Waiting || !strings.Contains(s.Reason, "storing the answer") {
			t.Errorf("state = %+v", s)
		}
		store.mu.Lock()
		store.full = false
		store.mu.Unlock()
		r.pass(firstBackoff)
		r.want(testThread, "a", "re: a")
	})
}

// Ensures that a thread which goes while it is answered is no failure, also when
// nobody tells of it.
func TestAgent_ThreadGoesInMidRun(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(ctx context.Context, q Question) (Answer, error) {
			if err := os.Remove(filepath.Join(r.store.Path(), string(testThread)+".json")); err != nil {
				return Answer{}, err
			}
			return echo(ctx, q)
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(time.Minute)
		state, err := ReadState(r.path)
		if err != nil || len(state.Threads) != 0 || state.Counts["superseded"] != 1 || len(state.Counts) != 1 {
			t.Errorf("state = %+v, %v", state, err)
		}
	})
}

// Ensures that what a failed run cost counts, that a wait which the provider
// asked for is kept, that a bound is counted once for a thread, and that the
// counts outlive a restart.
func TestAgent_FailuresCost(t *testing.T) {
	t.Parallel()
	change := func(s *Settings) { s.Bounds.TokensPerHour = 15 }
	bubble(t, change, func(r *rig) {
		const asked = 5 * time.Minute
		r.backend.answer = func(context.Context, Question) (Answer, error) {
			return Answer{}, &Failure{Reason: ReasonUnavailable, Retry: true, After: asked, Tokens: 20, cause: errors.New("503")}
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(2 * time.Second)
		if s := r.state(); s.Until != time.Now().Add(asked).UnixMilli() {
			t.Errorf("state = %+v", s)
		}
		r.pass(asked)
		if s := r.state(); s.Phase != Waiting || !strings.Contains(s.Reason, "15 tokens in an hour") {
			t.Errorf("state = %+v", s)
		}
		r.stop()
		settings := testSettings(r.backend)
		change(&settings)
		r.start(settings)
		r.say(thread(1), chat.Operator, "b")
		r.pass(3 * time.Second)
		r.say(thread(1), chat.Operator, "c")
		r.pass(3 * time.Second)
		state, err := ReadState(r.path)
		if err != nil || state.Counts["failed: unavailable"] != 1 || state.Counts["held back: tokens in an hour"] != 3 {
			t.Errorf("counts = %v, %v", state.Counts, err)
		}
	})
}

// Ensures that the ledger, which is written with each step, holds a day and no
// more.
func TestAgent_LedgerForgets(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		for range 3 {
			r.say(testThread, chat.Operator, "a")
			r.pass(25 * time.Hour)
		}
		state, err := ReadState(r.path)
		if err != nil || len(state.Ledger.Charges) != 1 {
			t.Errorf("ledger = %+v, %v", state.Ledger, err)
		}
	})
}

// Ensures that an answer is shortened only while there are tokens for it, and
// that a dry run ends when a run would.
func TestDraft_Ends(t *testing.T) {
	t.Parallel()
	long := &scripted{answer: func(context.Context, Question) (Answer, error) {
		return Answer{Text: strings.Repeat("x", 4001), Tokens: 1000}, nil
	}}
	if _, err := DryRun(t.Context(), testSettings(long), chat.Message{Text: "?"}); failureOf(err).Reason != ReasonBudget || len(long.questions()) != 1 {
		t.Errorf("%v after %d questions", err, len(long.questions()))
	}
	synctest.Test(t, func(t *testing.T) {
		slow := &scripted{answer: func(ctx context.Context, _ Question) (Answer, error) {
			<-ctx.Done()
			return Answer{}, ctx.Err()
		}}
		if _, err := DryRun(t.Context(), testSettings(slow), chat.Message{Text: "?"}); failureOf(err).Reason != ReasonTimeout {
			t.Errorf("%v", err)
		}
	})
}
