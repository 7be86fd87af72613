package gateway_test

import (
	"testing"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/gateway"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

// trySubmit submits a prompt whose acknowledgement is lost.
func (r *rig) trySubmit(s hermes.Session) {
	r.Helper()
	err := s.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m1"), Text: "x"})
	r.wantKind(err, hermes.KindUncertain)
	if hermes.ClassOf(err) != hermes.ClassLostAck {
		r.Errorf("class %q", hermes.ClassOf(err))
	}
}

// Ensures that a prompt whose acknowledgement is lost is found again, while it
// executes and after it was answered, and is sent once (W7).
func TestW07_AcknowledgementLost(t *testing.T) {
	t.Parallel()
	for _, effect := range []struct {
		name string
		do   hermestest.Effect
	}{{"dropped", hermestest.Drop()}, {"never answered", hermestest.Mute()}, {"failed inside", hermestest.Answer(-32603, "internal error")}} {
		for _, finishes := range []bool{false, true} {
			name := effect.name + ", executing"
			if finishes {
				name = effect.name + ", answered"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inDialects(t, func(r *rig, _ hermestest.Dialect) {
					gate := hermestest.NewGate()
					r.fake.Script(profile, hermestest.Delta("the "), hermestest.Hold(gate), hermestest.Delta("answer"), hermestest.Complete(""))
					r.fake.Inject(hermestest.After("prompt.submit", effect.do))
					s := r.open(hermes.OpenRequest{})
					if finishes {
						go func() { <-gate.Reached(); gate.Open() }()
					}
					r.trySubmit(s)
					if !finishes {
						<-gate.Reached()
						time.Sleep(10 * time.Second) // the session was found executing
						gate.Open()
					}
					events := r.rest(s)
					if end, ok := events[len(events)-1].(hermes.Completed); !ok || end.Text != "the answer" {
						r.Errorf("ended by %#v", events[len(events)-1])
					}
					if got := preview(events); !finishes && got != "the answer" {
						r.Errorf("preview %q", got)
					}
					if got := len(r.fake.Prompts()); got != 1 {
						r.Errorf("%d turns", got)
					}
				})
			})
		}
	}
}

// Ensures that a prompt that never arrived is said not to have, and is not sent
// again by itself (W8).
func TestW08_NeverArrived(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Drop()))
		s := r.open(hermes.OpenRequest{})
		r.trySubmit(s)
		if end, ok := r.end(s).(hermes.NotAccepted); !ok {
			r.Errorf("ended by %#v", end)
		}
		if got := r.submits(); got != 1 {
			r.Errorf("%d prompts were sent", got)
		}
	})
}

// Ensures the same for a session with a past. Where compacted entries are not
// listed the prompt may be among them, so nothing is claimed (W8).
func TestW08_NeverArrivedInAnOldSession(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, dialect hermestest.Dialect) {
		first := r.open(hermes.OpenRequest{})
		if err := first.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m0"), Text: "before"}); err != nil {
			r.Fatal(err)
		}
		r.completed(first)
		_ = first.Close()
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Drop()))
		s := r.open(hermes.OpenRequest{StoredID: first.State().StoredID})
		r.trySubmit(s)
		end := r.end(s)
		_, not := end.(hermes.NotAccepted)
		_, lost := end.(hermes.Lost)
		if dialect == hermestest.Dialect019 && !lost || dialect != hermestest.Dialect019 && !not {
			r.Errorf("ended by %#v", end)
		}
		if got := r.submits(); got != 2 {
			r.Errorf("%d prompts were sent", got)
		}
	})
}

// Ensures that nothing is lost or doubled when the connection drops amid a
// stream, with the events that were kept, and without (W9, W10).
func TestW09_DropsAmidTheStream(t *testing.T) {
	t.Parallel()
	for name, ring := range map[string]int{"W9 kept": 512, "W10 overflown": 1} {
		for _, finishes := range []bool{false, true} {
			title := name + ", executing"
			if finishes {
				title = name + ", answered meanwhile"
			}
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				inDialects(t, func(r *rig, _ hermestest.Dialect) {
					r.fake.SetRing(ring)
					gate, admitted := hermestest.NewGate(), hermestest.NewGate()
					steps := []hermestest.Step{hermestest.Delta("one "), hermestest.Hold(admitted), hermestest.Cut(), hermestest.Delta("two "), hermestest.Delta("three "), hermestest.Hold(gate), hermestest.Delta("four"), hermestest.Complete("")}
					if finishes {
						go func() { <-gate.Reached(); gate.Open() }()
					}
					r.fake.Script(profile, steps...)
					s := r.submit("x")
					admitted.Open()
					var events []hermes.Event
					for event := range s.Events() {
						events = append(events, event)
						if _, ok := event.(hermes.Reconnected); ok && !finishes {
							gate.Open()
						}
					}
					end, ok := events[len(events)-1].(hermes.Completed)
					if !ok || end.Text != "one two three four" {
						r.Errorf("ended by %#v", events[len(events)-1])
					}
					if got := preview(events); !finishes && got != "one two three four" {
						r.Errorf("preview %q of %#v", got, events)
					}
					if got := r.submits(); got != 1 {
						r.Errorf("%d prompts were sent", got)
					}
				})
			})
		}
	}
}

// Ensures that a turn that a restart cut off is told as interrupted, and not sent
// again (W11).
func TestW11_RestartAmidTheTurn(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Delta("half"), hermestest.Hold(gate))
		s := r.submit("x")
		<-gate.Reached()
		before := s.State().RuntimeID
		r.fake.Restart()
		if end, ok := r.end(s).(hermes.Interrupted); !ok {
			r.Errorf("ended by %#v", end)
		}
		if s.State().RuntimeID == before {
			r.Error("the dead runtime id is kept")
		}
		if got := r.submits(); got != 1 {
			r.Errorf("%d prompts were sent", got)
		}
	})
}

// Ensures that a turn that the server goes on with by itself counts as executing
// (W12).
func TestW12_ContinuesAfterRestart(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Delta("half"), hermestest.Hold(gate))
		s := r.submit("x")
		<-gate.Reached()
		r.fake.ContinueAfterRestart(s.State().StoredID, hermestest.Wait(time.Minute), hermestest.Complete("whole"))
		r.fake.Restart()
		if got := r.completed(s); got != "whole" {
			r.Errorf("answer %q", got)
		}
		if got := r.submits(); got != 1 {
			r.Errorf("%d prompts were sent", got)
		}
	}, hermestest.DialectOld, hermestest.DialectNew, hermestest.DialectGated)
}

// Ensures that a session that was never prompted is not found after a restart, so
// that a new one is opened (W13).
func TestW13_NeverPrompted(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		s := r.open(hermes.OpenRequest{})
		stored := s.State().StoredID
		_ = s.Close()
		r.fake.Restart()
		_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile, StoredID: stored})
		r.wantKind(err, hermes.KindNotFound)
		r.submit("x")
	})
}

// Ensures that a prompt to a runtime session that the server forgot is sent once
// more after resuming, since it was not admitted (W14).
func TestW14_RuntimeForgotten(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Answer(4001, "session not found")))
		first := r.submit("x")
		r.completed(first)
		if got, turns := r.submits(), len(r.fake.Prompts()); got != 2 || turns != 1 {
			r.Errorf("%d prompts were sent, %d admitted", got, turns)
		}
	}, hermestest.DialectOld, hermestest.DialectNew, hermestest.DialectGated)
}

// Ensures that a definite refusal of the prompt is one, and leaves the session
// free.
func TestSubmit_Refused(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Answer(4018, "no such message")))
		s := r.open(hermes.OpenRequest{})
		err := s.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m1"), Text: "x"})
		if hermes.ClassOf(err) != hermes.ClassRejected {
			r.Errorf("class %q of %v", hermes.ClassOf(err), err)
		}
		r.send(s, "again")
		r.completed(s)
	})
}

// Ensures that a turn that an old build interrupted while nobody was connected is
// told as interrupted, with the text that it had (W26).
func TestW26_OldOrphans(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.SetOldOrphans()
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Delta("half"), hermestest.Hold(gate))
		s := r.submit("x")
		<-gate.Reached()
		r.fake.SetDown(true)
		time.Sleep(40 * time.Second)
		r.fake.SetDown(false)
		if end, ok := r.end(s).(hermes.Interrupted); !ok || end.Text != "half" {
			r.Errorf("ended by %#v", end)
		}
	})
}

// Ensures that a turn is found again by its marker on another handle, as after a
// restart of this program, in each state that it may be in (section 6.10).
func TestOpen_FindsTheTurn(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Delta("half "), hermestest.Approval("x", "once"), hermestest.Hold(gate), hermestest.Complete(""))
		first := r.submit("x")
		q := until[hermes.Asked](r, first).Question
		stored := first.State().StoredID
		_ = first.Close()

		again := r.connect(func(*gateway.Config) {})
		s, err := again.Open(r.Context(), hermes.OpenRequest{Profile: profile, StoredID: stored, Turn: r.marker("m1")})
		if err != nil {
			r.Fatal(err)
		}
		if p := until[hermes.Preview](r, s); p.Text != "half " {
			r.Errorf("preview %q", p.Text)
		}
		if err := s.AnswerApproval(r.Context(), q.ID, hermes.Once); hermes.KindOf(err) == hermes.KindNotFound {
			_ = s.Interrupt(r.Context()) // this build does not tell open questions
			if _, ok := r.end(s).(hermes.Interrupted); !ok {
				r.Error("the turn was not interrupted")
			}
			return
		}
		<-gate.Reached()
		gate.Open()
		if got := r.completed(s); got != "half [approval: once]" {
			r.Errorf("answer %q", got)
		}
		s, err = again.Open(r.Context(), hermes.OpenRequest{Profile: profile, StoredID: stored, Turn: r.marker("m1")})
		if err != nil {
			r.Fatal(err)
		}
		if got := r.completed(s); got != "half [approval: once]" {
			r.Errorf("found %q", got)
		}
		if got := r.submits(); got != 1 {
			r.Errorf("%d prompts were sent", got)
		}
	})
}

// Ensures that a connection that cannot be restored leaves the turn uncertain,
// and lets go of the handle.
func TestRestore_GivesUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Hold(gate))
		s := r.submit("x")
		<-gate.Reached()
		r.fake.SetDown(true)
		began := time.Now()
		lost, ok := r.end(s).(hermes.Lost)
		if took := time.Since(began); !ok || took < 2*time.Minute || took > 4*time.Minute || lost.Err.Class() != hermes.ClassUnreachable {
			r.Errorf("ended by %#v after %v", lost.Err, took)
		}
		_, err := s.Usage(r.Context())
		r.wantKind(err, hermes.KindDisconnected)
	})
}
