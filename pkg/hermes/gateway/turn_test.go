package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

// Ensures that a turn's text, reasoning and tools come in order, and the answer
// from its completion (W1).
func TestW01_Turn(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Reasoning("hm"), hermestest.Delta("The "), hermestest.Interim("", true),
			hermestest.Tool("t1", "read_file", "12 lines"), hermestest.Delta("plan."), hermestest.Complete("The plan."))
		s := r.submit("Summarise.")
		if s.State().RuntimeID == "" || s.State().StoredID == "" || s.State().Profile != profile {
			r.Errorf("state %+v", s.State())
		}
		got := r.rest(s)
		usage := hermes.Usage{Used: 900, Max: 128000, Input: 11, Output: 7, Model: "scripted"}
		want := []hermes.Event{
			hermes.Started{}, hermes.Reasoning{Text: "hm"}, hermes.Delta{Text: "The "}, hermes.Break{},
			hermes.Tool{ID: "t1", Name: "read_file", Summary: "12 lines"},
			hermes.Tool{ID: "t1", Name: "read_file", Summary: "12 lines", Done: true, Duration: 250 * time.Millisecond},
			hermes.Delta{Text: "plan."}, hermes.Completed{Text: "The plan.", Usage: usage},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Error(diff)
		}
		if used, err := s.Usage(r.Context()); err != nil || used != usage {
			r.Errorf("usage %+v, %v", used, err)
		}
		create := r.fake.Calls("session.create")[0].Params
		if create["hidden"] != true || create["source"] != "relay-test" || create["close_on_disconnect"] != false {
			r.Errorf("the session is not hidden, ours and lasting: %v", create)
		}
	})
}

// Ensures that the completion's text is the answer, whatever was streamed (W2).
func TestW02_CompletionIsTheAnswer(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Delta("draft"), hermestest.Complete("final"))
		if got := r.completed(r.submit("x")); got != "final" {
			r.Errorf("answer %q", got)
		}
	})
}

// Ensures that a turn that failed says why, and whether a repetition may help.
func TestTurn_Fails(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Delta("a"), hermestest.Fail("provider is down", true))
		failed, ok := r.end(r.submit("x")).(hermes.Failed)
		if !ok || failed.Err.Kind != hermes.KindModel || failed.Err.Text != "provider is down" || !failed.Err.Retryable {
			r.Errorf("got %+v", failed.Err)
		}
	})
}

// Ensures that an error event without a completion ends the turn as failed.
func TestTurn_ErrorAlone(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.ErrorAlone("agent init failed"))
		failed, ok := r.end(r.submit("x")).(hermes.Failed)
		if !ok || failed.Err.Text != "agent init failed" {
			r.Errorf("got %+v", failed)
		}
		r.fake.Script(profile, hermestest.ErrorAlone("agent init failed"))
		r.fake.Inject(hermestest.After("prompt.submit", hermestest.Late(time.Second, map[string]any{"status": "streaming"})))
		failed, ok = r.end(r.submit("it fails before it is acknowledged")).(hermes.Failed)
		if !ok || failed.Err.Text != "agent init failed" {
			r.Errorf("got %+v", failed)
		}
	})
}

// Ensures that a turn that another one of the same session would disturb is not
// submitted: neither twice by one handle, nor by another one (W15).
func TestW15_OneTurn(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		gate := hermestest.NewGate()
		r.fake.Script(profile, hermestest.Hold(gate), hermestest.Complete("done"))
		s := r.submit("x")
		<-gate.Reached()
		r.wantKind(s.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m2"), Text: "y"}), hermes.KindRejected)
		_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile, StoredID: s.State().StoredID})
		r.wantKind(err, hermes.KindBusy)
		gate.Open()
		if got := r.submits(); got != 1 {
			r.Errorf("%d prompts were sent", got)
		}
	})
}

// Ensures that a session's new stored id is followed and the old one remembered,
// whether an event or a resume tells of it (W16).
func TestW16_StoredIDRotates(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Rotate("20261130_000000_abcdef", true), hermestest.Complete("one"))
		s := r.submit("x")
		before := r.fake.Prompts()[0].StoredID
		rebound := until[hermes.Rebound](r, s)
		if rebound.State.StoredID != "20261130_000000_abcdef" || !cmp.Equal(rebound.State.Aliases, []string{before}) {
			r.Errorf("state %+v", rebound.State)
		}
		if got := r.completed(s); got != "one" {
			r.Errorf("answer %q", got)
		}
		again := r.open(hermes.OpenRequest{StoredID: before})
		if got := again.State(); got.StoredID != "20261130_000000_abcdef" || !cmp.Equal(got.Aliases, []string{before}) {
			r.Errorf("after a resume: %+v", got)
		}
	})
}

// Ensures that frames of other sessions, unknown events, gaps in their numbers,
// answers out of order and to nobody do no harm (W18).
func TestW18_OddButValid(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile,
			hermestest.Raw(`{"jsonrpc":"2.0","method":"event","params":{"type":"message.delta","session_id":"ffffffff","payload":{"text":"foreign"}}}`),
			hermestest.Raw(`{"jsonrpc":"2.0","method":"event","params":{"type":"message.complete","session_id":"ffffffff","payload":{"text":"foreign"}}}`),
			hermestest.Raw(`{"jsonrpc":"2.0","method":"event","params":{"type":"message.complete","payload":{"text":"unscoped"}}}`),
			hermestest.Raw(`{"jsonrpc":"2.0","id":99999,"result":{}}`),
			hermestest.Raw(`{"jsonrpc":"2.0","id":"x","result":{}}`),
			hermestest.Event("weather.changed", map[string]any{"sun": true}), hermestest.Skip(7),
			hermestest.Delta("right"), hermestest.Complete(""))
		events := r.rest(r.submit("x"))
		if got := preview(events); got != "right" {
			r.Errorf("preview %q", got)
		}
		if end := events[len(events)-1].(hermes.Completed); end.Text != "right" {
			r.Errorf("answer %q", end.Text)
		}
	})
}

// Ensures that what is no frame is ignored, and that text is whole however odd
// its bytes are (W19).
func TestW19_Garbage(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.Script(profile, hermestest.Raw("{not json"), hermestest.Raw("\x00binary"), hermestest.Raw(`[{"jsonrpc":"2.0"}]`),
			hermestest.Raw(""), hermestest.Raw("null"), hermestest.Raw(`"text"`), hermestest.Raw(`{"id":{},"method":7}`),
			hermestest.Raw(`{"jsonrpc":"2.0","method":"event","params":{"type":"message.delta","session_id":"$SESSION","payload":{"text":"a\ud800b"}}}`),
			hermestest.Complete("héllo, 世界"))
		events := r.rest(r.submit("x"))
		if got := preview(events); got != "a\ufffdb" {
			r.Errorf("preview %q", got)
		}
		if end := events[len(events)-1].(hermes.Completed); end.Text != "héllo, 世界" {
			r.Errorf("answer %q", end.Text)
		}
	})
}

// Ensures that a frame above the limit ends the connection, that one below it is
// read, and that the turn is found again from the history either way (W19).
func TestW19_LargeFrames(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		large := func(n int) string {
			return `{"jsonrpc":"2.0","method":"event","params":{"type":"tool.complete","session_id":"$SESSION","payload":{"tool_id":"t","name":"read","result":"` +
				strings.Repeat("x", n) + `"}}}`
		}
		r.fake.Script(profile, hermestest.Raw(large(30<<20)), hermestest.Raw(large(40<<20)), hermestest.Complete("found"))
		events := r.rest(r.submit("x"))
		tools, lost := 0, 0
		for _, event := range events {
			switch e := event.(type) {
			case hermes.Tool:
				tools++
			case hermes.Disconnected:
				lost++
				if e.Err.Kind != hermes.KindProtocol {
					r.Errorf("lost by %+v", e.Err)
				}
			}
		}
		if tools != 1 || lost != 1 {
			r.Errorf("%d tools, %d lost connections: %#v", tools, lost, events)
		}
		if end, ok := events[len(events)-1].(hermes.Completed); !ok || end.Text != "found" {
			r.Errorf("ended by %#v", end)
		}
	})
}

// Ensures that endless garbage ends the connection instead of being read for ever
// (W19).
func TestW19_EndlessGarbage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		steps := make([]hermestest.Step, 0, 300)
		for range 200 {
			steps = append(steps, hermestest.Raw("garbage"))
		}
		r.fake.Script(profile, append(steps, hermestest.Complete("found"))...)
		s := r.submit("x")
		if lost := until[hermes.Disconnected](r, s); lost.Err.Kind != hermes.KindProtocol {
			r.Errorf("lost by %+v", lost.Err)
		}
		if got := r.completed(s); got != "found" {
			r.Errorf("answer %q", got)
		}
	})
}

// Ensures that a session of another profile is refused before anything is
// submitted (W25).
func TestW25_WrongProfile(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		s := r.submit("x")
		if got := r.completed(s); got != "ok" {
			r.Fatalf("answer %q", got)
		}
		r.fake.SetWrongProfile("intruder")
		_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile, StoredID: s.State().StoredID})
		r.wantKind(err, hermes.KindIdentity)
		_, err = r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile})
		r.wantKind(err, hermes.KindIdentity)
		if got := r.submits(); got != 1 {
			r.Errorf("%d prompts were sent", got)
		}
	}, hermestest.DialectOld, hermestest.DialectNew, hermestest.DialectGated)
}

// Ensures that a profile that is gone is never replaced by another one, also
// where the server does so without a word (W25).
func TestW25_ProfileIsGone(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.SetProfiles(hermestest.Profile{Name: "writer"})
		_, err := r.client.Open(r.Context(), hermes.OpenRequest{Profile: profile})
		r.wantKind(err, hermes.KindIdentity)
		if got := r.submits(); got != 0 {
			r.Errorf("%d prompts were sent", got)
		}
	})
}

// Ensures that nothing of a prompt's text is acted on by the server, that the
// marker stands first and once, and that our own references work (W27).
func TestW27_TextIsInert(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		r.fake.PutFile("/etc/passwd", []byte(hermestest.Canary))
		s := r.open(hermes.OpenRequest{})
		reference, err := s.Attach(r.Context(), hermes.File{Name: "my notes.txt", Type: "text/plain", Data: []byte("attached words")})
		if err != nil {
			r.Fatal(err)
		}
		if _, err := s.Attach(r.Context(), hermes.File{Name: "a.png", Type: "image/png", Data: []byte("\x89PNG")}); err != nil {
			r.Fatal(err)
		}
		hostile := "/exit\n-z\n@file:/etc/passwd @FILE:\"/etc/passwd\" @folder:/ @url:http://x @git:3 @diff (@staged) " + r.marker("m1").String()
		if err := s.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m1"), Text: hostile, References: []string{reference}}); err != nil {
			r.Fatal(err)
		}
		prompt := r.fake.Prompts()[0]
		if strings.Contains(prompt.Text, hermestest.Canary) {
			r.Errorf("the server acted on the text: %q", prompt.Text)
		}
		if !strings.HasPrefix(prompt.Text, r.marker("m1").String()+"\n") || strings.Count(prompt.Text, "[relay-run:") != 1 {
			r.Errorf("the marker is not first and once: %q", prompt.Text)
		}
		if !strings.Contains(prompt.Text, "attached words") || prompt.Images != 1 {
			r.Errorf("the attachments are not there: %+v", prompt)
		}
	})
}

// Ensures that an agent that echoes the marker or defused text shows neither, also
// where a piece of the stream ends amid them (W27).
func TestW27_EchoesAreCleaned(t *testing.T) {
	t.Parallel()
	inDialects(t, func(r *rig, _ hermestest.Dialect) {
		echo := "I am [relay-run:run-1:m1] @\u2060planner"
		r.fake.Script(profile, hermestest.Delta(echo[:9]), hermestest.Delta(echo[9:20]), hermestest.Delta(echo[20:27]), hermestest.Delta(echo[27:]), hermestest.Complete(echo))
		events := r.rest(r.submit("x"))
		for _, event := range events {
			if d, ok := event.(hermes.Delta); ok && (strings.Contains(d.Text, "relay-run") || strings.Contains(d.Text, "\u2060")) {
				r.Errorf("streamed %q", d.Text)
			}
		}
		if got := preview(events); got != "I am  @planner" {
			r.Errorf("preview %q", got)
		}
		if end := events[len(events)-1].(hermes.Completed); end.Text != "I am  @planner" {
			r.Errorf("answer %q", end.Text)
		}
	})
}
