package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// Ensures that a slow start is waited for, a server that is never ready given up,
// and an agent that is not built yet tried again (W17).
func TestW17_SlowStart(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.SetReadyDelay(15 * time.Second)
		s := r.open(hermes.OpenRequest{})
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Answer(5032, "agent initialization timed out")),
			hermestest.Before("prompt.submit", hermestest.Answer(5032, "agent initialization timed out")))
		r.send(s, "x")
		r.completed(s)
		if got, turns := r.submits(), len(r.fake.Prompts()); got != 3 || turns != 1 {
			r.Errorf("%d prompts were sent, %d admitted", got, turns)
		}
		r.fake.SetReadyDelay(-1)
		began := time.Now()
		_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile})
		r.wantKind(err, hermes.KindUnavailable)
		if took := time.Since(began); took != 20*time.Second {
			r.Errorf("given up after %v", took)
		}
	})
}

// Ensures that a connection's refused ticket is replaced once, and that refused
// credentials and hosts are told apart (W20).
func TestW20_Connections(t *testing.T) {
	t.Parallel()
	for _, dialect := range hermestest.Dialects() {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.completed(r.submit("x"))
				r.fake.ExpireSignIns()
				r.completed(r.submit("x"))
				r.fake.FailHTTP("/api/auth/ws-ticket", 200, 1, `{"ticket":"used before","ttl_seconds":30}`)
				r.completed(r.submit("x"))
				r.fake.FailHTTP("/api/auth/ws-ticket", 200, -1, `{"ticket":"used before","ttl_seconds":30}`)
				_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile})
				if kind := hermes.KindOf(err); kind != hermes.KindAuth && dialect != hermestest.Dialect019 {
					r.Errorf("a reused ticket: %v", err)
				}
				r.fake.ClearHTTP()
				r.fake.SetHost("elsewhere:9119")
				_, err = r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile})
				r.wantKind(err, hermes.KindForbidden)
			}, hermestest.WithSignIn(), hermestest.WithDialect(dialect))
		})
	}
}

// Ensures that parameters that a server does not know are done without, once and
// then from the start, and that needed ones are not (W21).
func TestW21_UnknownParameters(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Forget("session.create", "room_plumbing", "hidden")
		for range 2 {
			s := r.open(hermes.OpenRequest{Title: "t"})
			_ = s.Close()
		}
		calls := r.fake.Calls("session.create")
		if got := len(calls); got > 4 {
			r.Errorf("%d calls: %v", got, calls)
		}
		last := calls[len(calls)-1].Params
		if _, ok := last["hidden"]; ok || last["profile"] != profile || last["source"] != "relay-test" {
			r.Errorf("the last call was %v", last)
		}
		r.fake.Forget("session.create", "profile")
		_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile})
		r.wantKind(err, hermes.KindRejected)
	}, hermestest.DialectNew, hermestest.DialectGated)
}

// Ensures that a server that takes bytes and answers nothing is noticed after
// 45 s, and that the turn is found again once it speaks (W22).
func TestW22_SilentSocket(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Hold(gate), hermestest.Complete("done"))
		s := r.submit("x")
		<-gate.Reached()
		r.fake.SetSilent(true)
		began := time.Now()
		lost := until[hermes.Disconnected](r, s)
		if took := time.Since(began); took < 30*time.Second || took > time.Minute {
			r.Errorf("noticed after %v: %v", took, lost.Err)
		}
		r.fake.SetSilent(false)
		gate.Open()
		if got := r.completed(s); got != "done" {
			r.Errorf("answer %q", got)
		}
	})
}

// Ensures that a session that the server closed is resumed without a trace, for
// each reason that it may have (W23).
func TestW23_Reclaimed(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"idle_timeout", "lru_evict", "ws_orphan_reap"} {
		inDialects(t, func(r *rig, _ hermestest.Dialect) {
			first := r.submit("before")
			r.completed(first)
			_ = first.Close()
			s := r.open(hermes.OpenRequest{StoredID: first.State().StoredID})
			before := s.State().RuntimeID
			r.fake.Reclaim(s.State().StoredID, reason)
			r.send(s, "after")
			r.completed(s)
			if s.State().RuntimeID == before || s.State().StoredID != first.State().StoredID {
				r.Errorf("state %+v, before %s", s.State(), before)
			}
			if got := len(r.fake.Prompts()); got != 2 {
				r.Errorf("%d turns", got)
			}
		})
	}
}

// Ensures that an interrupted turn ends exactly once, whenever it is interrupted
// (W24).
func TestW24_Interrupt(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Delta("half"), hermestest.Hold(gate))
		s := r.submit("x")
		<-gate.Reached()
		if err := s.Interrupt(r.Context()); err != nil {
			r.Fatal(err)
		}
		if end, ok := r.end(s).(hermes.Interrupted); !ok || end.Text != "half" {
			r.Errorf("amid the stream: %#v", end)
		}
		if err := s.Interrupt(r.Context()); err != nil {
			r.Errorf("after the end: %v", err)
		}
		if got := len(r.fake.Calls("session.interrupt")); got != 1 {
			r.Errorf("%d interrupts were sent", got)
		}

		r.fake.Script(profile, hermestest.Approval("x", "once"), hermestest.Complete(""))
		s = r.submit("x")
		q := until[hermes.Asked](r, s).Question
		if err := s.Interrupt(r.Context()); err != nil {
			r.Fatal(err)
		}
		if end, ok := r.end(s).(hermes.Interrupted); !ok {
			r.Errorf("during an approval: %#v", end)
		}
		r.wantKind(s.AnswerApproval(r.Context(), q.ID, hermes.Once), hermes.KindExpired)

		s = r.submit("x")
		r.completed(s)
		if err := s.Interrupt(r.Context()); err != nil {
			r.Errorf("after completion: %v", err)
		}
	})
}

// Ensures that an interrupt that comes before the prompt is acknowledged is
// repeated after it (W24).
func TestW24_InterruptBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		held, gate := hermestest.NewGate(), hermestest.NewGate()
		r.fake.Script(profile, hermestest.Hold(gate))
		r.fake.Inject(hermestest.Before("prompt.submit", hermestest.HoldCall(held)))
		s := r.open(hermes.OpenRequest{})
		submitted := make(chan error, 1)
		go func() { submitted <- s.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m1"), Text: "x"}) }()
		<-held.Reached()
		if err := s.Interrupt(r.Context()); err != nil {
			r.Fatal(err)
		}
		held.Open()
		if err := <-submitted; err != nil {
			r.Fatal(err)
		}
		if end, ok := r.end(s).(hermes.Interrupted); !ok {
			r.Errorf("ended by %#v", end)
		}
	})
}

// Ensures that a turn that is interrupted before it began, of which no event ever
// tells, ends as interrupted (W24).
func TestW24_InterruptBeforeTheAgentIsBuilt(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.HoldOn(gate), hermestest.Vanish())
		s := r.submit("x")
		<-gate.Reached()
		if err := s.Interrupt(r.Context()); err != nil {
			r.Fatal(err)
		}
		if end, ok := r.end(s).(hermes.Interrupted); !ok {
			r.Errorf("ended by %#v", end)
		}
	})
}

// Ensures that a failed interrupt is not taken for a stop.
func TestInterrupt_Uncertain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Hold(gate), hermestest.Complete("went on"))
		s := r.submit("x")
		<-gate.Reached()
		r.fake.Inject(hermestest.Before("session.interrupt", hermestest.Drop()))
		r.wantKind(s.Interrupt(r.Context()), hermes.KindUncertain)
		until[hermes.Reconnected](r, s)
		if err := s.Interrupt(r.Context()); err != nil {
			r.Fatal(err)
		}
		if end, ok := r.end(s).(hermes.Interrupted); !ok {
			r.Errorf("ended by %#v", end)
		}
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

// Ensures that a file that no server takes is refused here, and that an odd MIME
// type does no harm.
func TestAttach_Bounds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		s := r.open(hermes.OpenRequest{})
		for _, size := range []int{10 << 20, hermes.MaxAttachment + 1} {
			_, err := s.Attach(r.Context(), hermes.File{Name: "x", Data: make([]byte, size)})
			r.wantKind(err, hermes.KindTooLarge)
		}
		if _, err := s.Attach(r.Context(), hermes.File{Name: "x", Type: "a/b; charset=x", Data: []byte("x")}); err != nil {
			r.Error(err)
		}
		if got := r.fake.Calls("file.attach")[0].Params["data_url"]; !strings.HasPrefix(got.(string), "data:application/octet-stream;base64,") {
			r.Errorf("sent %v", got)
		}
	})
}

// Ensures that a prompt that is too large is refused before anything is sent.
func TestSubmit_TooLarge(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		s := r.open(hermes.OpenRequest{})
		err := s.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m1"), Text: strings.Repeat("x", 13<<20)})
		r.wantKind(err, hermes.KindTooLarge)
		r.wantKind(s.Submit(r.Context(), hermes.Prompt{Text: "x"}), hermes.KindRejected)
		if got := r.submits(); got != 0 {
			r.Errorf("%d prompts were sent", got)
		}
		r.send(s, "x")
		r.completed(s)
	})
}

// Ensures that Close lets a turn go on upstream, ends the events, and that a
// closed client opens nothing.
func TestClose(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Hold(gate), hermestest.Complete("went on"))
		s := r.submit("x")
		<-gate.Reached()
		_ = r.client.Close()
		for event := range s.Events() {
			if hermes.Terminal(event) {
				r.Errorf("told %#v", event)
			}
		}
		gate.Open()
		time.Sleep(time.Second)
		messages := r.fake.Messages(s.State().StoredID)
		if got := messages[len(messages)-1].Content; got != "went on" {
			r.Errorf("stored %v", got)
		}
		if len(r.fake.Calls("session.close"))+len(r.fake.Calls("session.interrupt")) != 0 {
			r.Error("the execution was stopped")
		}
		_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile})
		r.wantKind(err, hermes.KindUnavailable)
	})
}

// Ensures that a reader who is slow loses no answer, and that waiting text is
// joined.
func TestEvents_SlowReader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		var steps []hermestest.Step
		for range 5000 {
			steps = append(steps, hermestest.Delta("ab"))
		}
		r.fake.Script(profile, append(steps, hermestest.Complete(""))...)
		s := r.submit("x")
		time.Sleep(time.Minute)
		events := r.rest(s)
		if got := preview(events); got != strings.Repeat("ab", 5000) || len(events) > 10 {
			r.Errorf("%d events with %d bytes", len(events), len(got))
		}
	})
}

// Ensures that a session's questions keep their order.
func TestState_QuestionsInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.fake.Script(profile, hermestest.Delta("x"), hermestest.Approval("x", "once"))
		s := r.submit("x")
		q := until[hermes.Asked](r, s).Question
		if diff := cmp.Diff([]hermes.Question{q}, s.State().Questions); diff != "" {
			r.Error(diff)
		}
	})
}
