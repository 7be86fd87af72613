package gateway_test

import (
	"testing"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

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
