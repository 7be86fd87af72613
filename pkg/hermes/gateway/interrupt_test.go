package gateway_test

import (
	"testing"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

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
