package autoreply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// Ensures that a burst gets one answer, after the quiet time and not before,
// with all of it in context.
func TestAgent_AnswersABurstOnce(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		for _, text := range []string{"a", "b", "c"} {
			r.say(testThread, chat.Operator, text)
			r.pass(1500 * time.Millisecond)
		}
		r.want(testThread, "a", "b", "c")
		r.pass(500 * time.Millisecond)
		r.want(testThread, "a", "b", "c", "re: c")
		if asked := r.backend.questions(); len(asked) != 1 || len(asked[0].Messages) != 3 {
			t.Errorf("%d questions", len(asked))
		}
		r.tell(testThread)
		r.pass(time.Hour)
		r.want(testThread, "a", "b", "c", "re: c")
	})
}

// Ensures that a message which comes during a run discards the draft, and that
// the next run answers both; runs of a thread never overlap
// (automagik-dev/omni#826).
func TestAgent_NewerMessageSupersedes(t *testing.T) {
	t.Parallel()
	for _, obeys := range []bool{true, false} {
		t.Run(fmt.Sprint("back end stops when told ", obeys), func(t *testing.T) {
			t.Parallel()
			bubble(t, nil, func(r *rig) {
				r.backend.answer = func(ctx context.Context, q Question) (Answer, error) {
					wait := ctx.Done()
					if !obeys {
						wait = nil
					}
					select {
					case <-wait:
						return Answer{}, ctx.Err()
					case <-time.After(10 * time.Second):
						return echo(ctx, q)
					}
				}
				r.say(testThread, chat.Operator, "a")
				r.pass(5 * time.Second)
				r.say(testThread, chat.Operator, "b")
				r.pass(time.Minute)
				r.want(testThread, "a", "b", "re: b")
				if r.backend.most != 1 || len(r.backend.questions()) != 2 {
					t.Errorf("%d runs, %d at once", len(r.backend.questions()), r.backend.most)
				}
			})
		})
	}
}

// Ensures that the condition of the append holds even if nobody told of the
// newer message.
func TestAgent_UnannouncedMessageSupersedes(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(ctx context.Context, q Question) (Answer, error) {
			if len(q.Messages) == 1 {
				if _, err := r.store.Append(ctx, testThread, storage.Post{Author: chat.Operator, Text: "b"}); err != nil {
					return Answer{}, err
				}
			}
			return echo(ctx, q)
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(time.Minute)
		r.want(testThread, "a", "b", "re: b")
	})
}

// Ensures that a person's reply during a run discards the draft for good.
func TestAgent_HumanReplyWins(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(ctx context.Context, q Question) (Answer, error) {
			time.Sleep(10 * time.Second)
			return echo(ctx, q)
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(5 * time.Second)
		r.say(testThread, chat.Hermes, "by hand")
		r.pass(time.Hour)
		r.want(testThread, "a", "by hand")
		if state := r.state(); state.Phase != "" {
			t.Errorf("state = %+v", state)
		}
	})
}

// Ensures that a message which arrives just as a run ends is answered, however
// the two fall together (openclaw/openclaw#91909).
func TestAgent_NoLostWakeUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *Settings) { s.Quiet = 0; s.Limit = 1 << 20 }, func(r *rig) {
		for i := range 300 {
			posted := make(chan struct{})
			r.backend.mu.Lock()
			r.backend.answer = func(ctx context.Context, q Question) (Answer, error) {
				if q.Messages[len(q.Messages)-1].Text == fmt.Sprint("first ", i) {
					go func() {
						defer close(posted)
						if _, err := r.store.Append(context.WithoutCancel(ctx), testThread, storage.Post{Author: chat.Operator, Text: fmt.Sprint("second ", i)}); err != nil {
							r.Error(err)
						}
						r.changes <- []storage.Change{{Thread: testThread}}
					}()
				}
				return echo(ctx, q)
			}
			r.backend.mu.Unlock()
			r.say(testThread, chat.Operator, fmt.Sprint("first ", i))
			r.pass(time.Second)
			<-posted
			synctest.Wait()
			summary, _, err := r.store.Summary(testThread)
			if err != nil || summary.Unanswered != 0 {
				t.Fatalf("round %d: %+v, %v", i, summary, err)
			}
		}
	})
}

// Ensures that no more threads are answered at once than configured, that all
// get their turn in the order in which they are due, and that one slow thread
// holds up no other.
func TestAgent_ConcurrencyAndFairness(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *Settings) { s.Concurrency = 3 }, func(r *rig) {
		r.backend.answer = func(ctx context.Context, q Question) (Answer, error) {
			wait := time.Second
			if q.Thread == thread(0) {
				wait = 50 * time.Second
			}
			time.Sleep(wait)
			return echo(ctx, q)
		}
		for i := range 20 {
			r.say(thread(i), chat.Operator, "x")
			r.pass(time.Millisecond)
		}
		r.pass(20 * time.Second)
		for i := 1; i < 20; i++ {
			r.want(thread(i), "x", "re: x")
		}
		r.want(thread(0), "x")
		r.pass(time.Minute)
		r.want(thread(0), "x", "re: x")
		if r.backend.most != 3 {
			t.Errorf("%d at once, want 3", r.backend.most)
		}
		for i, q := range r.backend.questions() {
			if q.Thread != thread(i) {
				t.Errorf("run %d is for another thread", i)
			}
		}
	})
}

// Ensures that failures are tried again with growing waits, that a restart does
// not start over, that the state says why, and that a new message does.
func TestAgent_RetriesSurviveARestart(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(context.Context, Question) (Answer, error) {
			return Answer{}, Failf(ReasonUnavailable, true, "connection refused")
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(2 * time.Second)
		if s := r.state(); s.Phase != Waiting || s.Attempts != 1 || !strings.Contains(s.Reason, "unavailable: connection refused") || s.Until != time.Now().Add(firstBackoff).UnixMilli() {
			t.Errorf("state = %+v", s)
		}
		r.stop()
		r.start(testSettings(r.backend))
		r.pass(firstBackoff - time.Millisecond)
		if n := len(r.backend.questions()); n != 1 {
			t.Errorf("%d runs before the wait was over", n)
		}
		r.pass(time.Millisecond)
		r.pass(2 * time.Minute)
		if s := r.state(); s.Phase != Failed || s.Attempts != 3 {
			t.Errorf("state = %+v", s)
		}
		r.stop()
		r.start(testSettings(r.backend))
		r.pass(24 * time.Hour)
		if n := len(r.backend.questions()); n != 3 {
			t.Errorf("%d runs, want 3", n)
		}
		r.backend.mu.Lock()
		r.backend.answer = echo
		r.backend.mu.Unlock()
		r.say(testThread, chat.Operator, "b")
		r.pass(2 * time.Second)
		r.want(testThread, "a", "b", "re: b")
	})
}

// Ensures that a restart with other settings tries anew what had failed, and
// forgives no bound.
func TestAgent_RestartWithOtherSettings(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(context.Context, Question) (Answer, error) {
			return Answer{}, Failf(ReasonRefused, false, "401")
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(3 * time.Second)
		if s := r.state(); s.Phase != Failed {
			t.Errorf("state = %+v", s)
		}
		r.stop()
		r.backend.answer = echo
		other := testSettings(r.backend)
		other.Mark = "mended"
		r.start(other)
		r.pass(3 * time.Second)
		r.want(testThread, "a", "re: a")
		if state, err := ReadState(r.path); err != nil || len(state.Ledger.Charges) != 2 {
			t.Errorf("state = %+v, %v", state, err)
		}
	})
}

// Ensures that what will not pass is not tried again, and that each kind of
// unusable answer counts as a failure and is never stored.
func TestAgent_UnusableAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func() (Answer, error)
		asked  int
		reason Reason
	}{
		"refused key":    {func() (Answer, error) { return Answer{}, Failf(ReasonRefused, false, "401") }, 1, ReasonRefused},
		"too long twice": {func() (Answer, error) { return Answer{Text: strings.Repeat("x", 4001)}, nil }, 2, ReasonTooLong},
		"a token":        {func() (Answer, error) { return Answer{Text: "it is " + strings.Repeat("ab", 32)}, nil }, 1, ReasonSecret},
		"empty":          {func() (Answer, error) { return Answer{Text: " \u200b\n"}, nil }, 3, ReasonNoAnswer},
		"unknown error":  {func() (Answer, error) { return Answer{}, errors.New("x") }, 3, ReasonInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, nil, func(r *rig) {
				r.backend.answer = func(context.Context, Question) (Answer, error) { return test.answer() }
				r.say(testThread, chat.Operator, "a")
				r.pass(time.Hour)
				r.want(testThread, "a")
				if s := r.state(); s.Phase != Failed || !strings.Contains(s.Reason, string(test.reason)) {
					t.Errorf("state = %+v", s)
				}
				if n := len(r.backend.questions()); n != test.asked {
					t.Errorf("asked %d times, want %d", n, test.asked)
				}
			})
		})
	}
}

// Ensures that an answer that is too long is sent back once, and the short one
// stored whole.
func TestAgent_ShortensOnce(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		long := strings.Repeat("界", 4001)
		r.backend.answer = func(_ context.Context, q Question) (Answer, error) {
			if q.TooLong == long {
				return Answer{Text: "short"}, nil
			}
			return Answer{Text: long}, nil
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(time.Minute)
		r.want(testThread, "a", "short")
	})
}

// Ensures that a run which takes too long ends, and counts as a failure.
func TestAgent_RunsEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *Settings) { s.Bounds.Retries = 0 }, func(r *rig) {
		r.backend.answer = func(ctx context.Context, _ Question) (Answer, error) {
			<-ctx.Done()
			return Answer{}, ctx.Err()
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(2*time.Second + time.Minute)
		if s := r.state(); s.Phase != Failed || !strings.Contains(s.Reason, "timeout") {
			t.Errorf("state = %+v", s)
		}
	})
}

// Ensures that each bound leaves the thread awaiting, says so, and gives way in
// time (mattermost/mattermost#14460 and its kind).
func TestAgent_Bounds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Bounds)
		runs   int // that are allowed at once
		reason string
		span   time.Duration
	}{
		"thread":      {func(b *Bounds) { b.ThreadRunsPerHour = 2 }, 2, "2 answers to this thread in an hour", time.Hour},
		"hour":        {func(b *Bounds) { b.RunsPerHour = 3 }, 3, "3 answers in an hour", time.Hour},
		"day":         {func(b *Bounds) { b.RunsPerDay = 3 }, 3, "3 answers in a day", 24 * time.Hour},
		"hour tokens": {func(b *Bounds) { b.TokensPerHour = 25 }, 3, "25 tokens in an hour", time.Hour},
		"day tokens":  {func(b *Bounds) { b.TokensPerDay = 20 }, 2, "20 tokens in a day", 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *Settings) { test.change(&s.Bounds) }, func(r *rig) {
				began := time.Now()
				for range test.runs + 1 {
					r.say(testThread, chat.Operator, "x")
					r.pass(3 * time.Second)
				}
				if n := len(r.backend.questions()); n != test.runs {
					t.Errorf("%d runs, want %d", n, test.runs)
				}
				s := r.state()
				if s.Phase != Waiting || !strings.Contains(s.Reason, test.reason) {
					t.Errorf("state = %+v", s)
				}
				r.stop() // a restart lifts no bound
				settings := testSettings(r.backend)
				test.change(&settings.Bounds)
				r.start(settings)
				r.pass(time.Until(began.Add(test.span)))
				if n := len(r.backend.questions()); n != test.runs {
					t.Errorf("%d runs just before the bound gives way", n)
				}
				r.pass(5 * time.Second)
				if n := len(r.backend.questions()); n != test.runs+1 {
					t.Errorf("%d runs after the bound gave way, want %d", n, test.runs+1)
				}
			})
		})
	}
}

// Ensures that Hermes and an agent in the page do not talk to each other for
// ever, and that a word from the person starts them anew.
func TestAgent_StopsPingPong(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *Settings) { s.Bounds.AgentTurns = 3 }, func(r *rig) {
		r.say(testThread, chat.Operator, "start")
		r.pass(3 * time.Second)
		for range 10 {
			r.say(testThread, chat.Agent, "and?")
			r.pass(3 * time.Second)
		}
		if n := len(r.backend.questions()); n != 3 {
			t.Errorf("%d answers without a word from the person, want 3", n)
		}
		if s := r.state(); s.Phase != Failed || !strings.Contains(s.Reason, "3 answers in a row") {
			t.Errorf("state = %+v", s)
		}
		r.say(testThread, chat.Operator, "go on")
		r.pass(3 * time.Second)
		if n := len(r.backend.questions()); n != 4 {
			t.Errorf("%d answers after the person's word, want 4", n)
		}
	})
}

// Ensures that threads found at the start are answered at once, one after the
// other, and that corrupt ones disturb nobody.
func TestAgent_TakesUpWhatStandsAtTheStart(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.stop()
		for i := range 5 {
			if _, err := r.store.Append(r.Context(), thread(i), storage.Post{Author: chat.Operator, Text: "x", Create: true}); err != nil {
				t.Fatal(err)
			}
		}
		corrupt := filepath.Join(r.store.Path(), string(thread(9))+".json")
		if err := os.WriteFile(corrupt, []byte("{"), 0o660); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		r.start(testSettings(r.backend))
		r.pass(time.Millisecond)
		for i := range 5 {
			r.want(thread(i), "x", "re: x")
		}
	})
}

// Ensures that other settings take effect while the agent runs: another back
// end answers, and what had failed is tried anew.
func TestAgent_Apply(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *Settings) { s.Backend = nil }, func(r *rig) {
		r.say(testThread, chat.Operator, "a")
		r.pass(time.Hour)
		r.want(testThread, "a")
		if s := r.state(); s.Phase != "" {
			t.Errorf("without a back end the state is %+v", s)
		}
		before, err := os.Stat(r.path)
		if err != nil {
			t.Fatal(err)
		}
		r.say(thread(1), chat.Operator, "b")
		if after, err := os.Stat(r.path); err != nil || !os.SameFile(before, after) {
			t.Errorf("without a back end the state is written for each message: %v", err)
		}
		if err := r.agent.Apply(r.Context(), testSettings(r.backend)); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Millisecond)
		r.want(testThread, "a", "re: a")
	})
}

// Ensures that a back end which was replaced is closed once, after its last run,
// and the one in use with the agent.
func TestAgent_ClosesBackends(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		old, next := r.backend, &scripted{answer: echo}
		old.answer = func(ctx context.Context, q Question) (Answer, error) {
			time.Sleep(10 * time.Second)
			return echo(ctx, q)
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(3 * time.Second)
		for range 2 {
			if err := r.agent.Apply(r.Context(), testSettings(next)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if old.closes() != 0 {
			t.Error("the old back end was closed in mid-run")
		}
		r.pass(time.Minute)
		r.want(testThread, "a", "re: a")
		if old.closes() != 1 || next.closes() != 0 {
			t.Errorf("closed %d and %d times", old.closes(), next.closes())
		}
		r.stop()
		if old.closes() != 1 || next.closes() != 1 {
			t.Errorf("closed %d and %d times in the end", old.closes(), next.closes())
		}
		r.start(testSettings(old))
	})
}

// Ensures that a stop gives up what is being answered, waits for it, and leaves
// a state from which the next agent answers once.
func TestAgent_StopsInMidRun(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(r *rig) {
		r.backend.answer = func(ctx context.Context, _ Question) (Answer, error) {
			<-ctx.Done()
			return Answer{}, ctx.Err()
		}
		r.say(testThread, chat.Operator, "a")
		r.pass(3 * time.Second)
		if s := r.state(); s.Phase != Running {
			t.Errorf("state = %+v", s)
		}
		r.stop()
		if s := r.state(); s.Phase != Pending || s.Attempts != 0 {
			t.Errorf("state = %+v", s)
		}
		r.backend.answer = echo
		r.start(testSettings(r.backend))
		r.pass(3 * time.Second)
		r.want(testThread, "a", "re: a")
	})
}
