package gateway_test

import (
	"testing"
	"testing/synctest"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/gateway"
	"github.com/newos4/relay/pkg/hermes/hermestest"
)

// profile is the one that tests open sessions of.
const profile = "planner"

// rig is a client and the fake that it speaks with, in a bubble of
// testing/synctest.
type rig struct {
	*testing.T
	fake   *hermestest.Server
	client *gateway.Client
}

// inBubble runs f with a client of a fake in memory.
func inBubble(t *testing.T, f func(r *rig), options ...hermestest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		options := append([]hermestest.Option{
			hermestest.InMemory(), hermestest.WithProfiles(hermestest.Profile{Name: profile}, hermestest.Profile{Name: "writer"}),
		}, options...)
		r := &rig{T: t, fake: hermestest.New(t, options...)}
		r.client = r.connect(func(*gateway.Config) {})
		f(r)
	})
}

// connect returns another client of the fake, with a configuration of its own.
func (r *rig) connect(change func(*gateway.Config)) *gateway.Client {
	r.Helper()
	config := gateway.Config{
		URL: r.fake.URL(), Token: hermestest.Token, Username: hermestest.Username, Password: hermestest.Password,
		Source: "relay-test", Dial: r.fake.Dial,
	}
	change(&config)
	client, err := gateway.New(config)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = client.Close() })
	return client
}

// inDialects runs f once for each dialect, or for those that are given.
func inDialects(t *testing.T, f func(r *rig, dialect hermestest.Dialect), only ...hermestest.Dialect) {
	t.Helper()
	if len(only) == 0 {
		only = hermestest.Dialects()
	}
	for _, dialect := range only {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) { f(r, dialect) }, hermestest.WithDialect(dialect))
		})
	}
}

// marker returns the marker of a message.
func (r *rig) marker(message string) hermes.Marker {
	r.Helper()
	m, err := hermes.NewMarker("run-1", message)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// open opens a session that must open.
func (r *rig) open(request hermes.OpenRequest) hermes.Session {
	r.Helper()
	if request.Profile == "" {
		request.Profile = profile
	}
	s, err := r.client.Open(r.Context(), request)
	if err != nil {
		r.Fatalf("open: %v", err)
	}
	return s
}

// submit opens a new session and submits a prompt that must be admitted.
func (r *rig) submit(text string) hermes.Session {
	r.Helper()
	s := r.open(hermes.OpenRequest{})
	r.send(s, text)
	return s
}

// send submits a prompt that must be admitted.
func (r *rig) send(s hermes.Session, text string) {
	r.Helper()
	if err := s.Submit(r.Context(), hermes.Prompt{Marker: r.marker("m1"), Text: text}); err != nil {
		r.Fatalf("submit: %v", err)
	}
}

// rest returns the events up to the terminal one.
func (r *rig) rest(s hermes.Session) []hermes.Event {
	r.Helper()
	var events []hermes.Event
	for event := range s.Events() {
		events = append(events, event)
	}
	if len(events) == 0 || !hermes.Terminal(events[len(events)-1]) {
		r.Fatalf("no terminal event: %#v", events)
	}
	for _, event := range events[:len(events)-1] {
		if hermes.Terminal(event) {
			r.Fatalf("terminal before the last: %#v", events)
		}
	}
	return events
}

// end returns the terminal event.
func (r *rig) end(s hermes.Session) hermes.Event {
	r.Helper()
	events := r.rest(s)
	return events[len(events)-1]
}

// completed returns the answer of a turn that must be complete.
func (r *rig) completed(s hermes.Session) string {
	r.Helper()
	end, ok := r.end(s).(hermes.Completed)
	if !ok {
		r.Fatalf("the turn ended otherwise: %#v", end)
	}
	return end.Text
}

// until reads events up to the first of a kind and returns it.
func until[E hermes.Event](r *rig, s hermes.Session) E {
	r.Helper()
	for event := range s.Events() {
		if found, ok := event.(E); ok {
			return found
		}
		if hermes.Terminal(event) {
			r.Fatalf("the turn ended before: %#v", event)
		}
	}
	r.Fatal("the events ended before")
	panic("unreachable")
}

// preview returns what a reader of events shows as text.
func preview(events []hermes.Event) string {
	text := ""
	for _, event := range events {
		switch e := event.(type) {
		case hermes.Delta:
			text += e.Text
		case hermes.Preview:
			text = e.Text
		}
	}
	return text
}

// submits returns how many prompts were sent.
func (r *rig) submits() int { return len(r.fake.Calls("prompt.submit")) }

// wantKind fails unless err is of a kind.
func (r *rig) wantKind(err error, kind hermes.Kind) {
	r.Helper()
	if hermes.KindOf(err) != kind {
		r.Fatalf("error %v (kind %q), want kind %q", err, hermes.KindOf(err), kind)
	}
}
