package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

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
