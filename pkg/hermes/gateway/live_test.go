package gateway_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/gateway"
	"github.com/newos4/relay/pkg/hermes/livetest"
)

// live is a client of a real Hermes.
type live struct {
	*testing.T
	ctx    context.Context
	hermes string
	home   livetest.Home
	server *livetest.Server
	model  *livetest.Model
	client *gateway.Client
}

// goLive starts a real Hermes with two profiles.
func goLive(t *testing.T) *live {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	l := &live{T: t, ctx: ctx, model: livetest.NewModel()}
	var err error
	if l.hermes, err = livetest.Install(ctx); err != nil {
		t.Fatal(err)
	}
	models := httptest.NewServer(l.model)
	t.Cleanup(models.Close)
	if l.home, err = livetest.NewHome(t.TempDir(), models.URL, profile, "writer"); err != nil {
		t.Fatal(err)
	}
	l.start("0")
	t.Cleanup(func() { l.server.Kill() })
	l.client, err = gateway.New(gateway.Config{URL: l.server.URL(), Token: livetest.Token, Source: "relay-live"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.client.Close() })
	return l
}

// start starts the server.
func (l *live) start(port string) {
	l.Helper()
	server, err := l.home.Start(l.ctx, l.hermes, port)
	if err != nil {
		l.Fatal(err)
	}
	l.server = server
}

// marker returns the marker of a message.
func (l *live) marker(message string) hermes.Marker {
	l.Helper()
	m, err := hermes.NewMarker("live", message)
	if err != nil {
		l.Fatal(err)
	}
	return m
}

// open opens a session of a profile.
func (l *live) open(request hermes.OpenRequest) hermes.Session {
	l.Helper()
	if request.Profile == "" {
		request.Profile = profile
	}
	s, err := l.client.Open(l.ctx, request)
	if err != nil {
		l.Fatalf("open: %v", err)
	}
	return s
}

// submit submits a prompt that must be admitted.
func (l *live) submit(s hermes.Session, message, text string, references ...string) {
	l.Helper()
	if err := s.Submit(l.ctx, hermes.Prompt{Marker: l.marker(message), Text: text, References: references}); err != nil {
		l.Fatalf("submit: %v", err)
	}
}

// next returns the next event, or fails when none comes.
func (l *live) next(s hermes.Session) hermes.Event {
	l.Helper()
	select {
	case event, ok := <-s.Events():
		if !ok {
			l.Fatal("the events ended")
		}
		return event
	case <-l.ctx.Done():
		l.Fatal("no event came in time")
		return nil
	}
}

// end returns the terminal event and the preview up to it.
func (l *live) end(s hermes.Session) (hermes.Event, string) {
	l.Helper()
	var events []hermes.Event
	for {
		event := l.next(s)
		events = append(events, event)
		if hermes.Terminal(event) {
			return event, preview(events)
		}
	}
}

// question returns the next question.
func (l *live) question(s hermes.Session) hermes.Question {
	l.Helper()
	for {
		event := l.next(s)
		if asked, ok := event.(hermes.Asked); ok {
			return asked.Question
		}
		if hermes.Terminal(event) {
			l.Fatalf("the turn ended before: %#v", event)
		}
	}
}

// Ensures that a real Hermes of the pinned release does with this client what the
// fake does: profiles, turns, questions, stops, files, history, and a crash amid
// a turn.
func TestLive(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	for _, step := range []struct {
		name string
		do   func(l *live)
	}{
		{"status and profiles", (*live).sources},
		{"turn and history", (*live).turn},
		{"attachments", (*live).attachments},
		{"approval", (*live).approval},
		{"clarification", (*live).clarification},
		{"stop", (*live).stop},
		{"dropped connection", (*live).dropped},
		{"profile that is gone", (*live).gone},
		{"wrong token", (*live).wrongToken},
		{"crash amid the turn", (*live).crash},
	} {
		if !t.Run(step.name, func(t *testing.T) { l.T = t; step.do(l) }) {
			break
		}
	}
	l.T = t
}

func (l *live) sources() {
	status, err := l.client.Status(l.ctx)
	if err != nil || status.Version != "0.19.0" || status.Gated || status.Kind != "" {
		l.Errorf("status %+v, %v", status, err)
	}
	profiles, err := l.client.ListProfiles(l.ctx)
	if err != nil || len(profiles) != 3 || profiles[1].Name != profile || !profiles[0].Default {
		l.Errorf("profiles %+v, %v", profiles, err)
	}
}

func (l *live) turn() {
	l.model.Script(profile, livetest.Reply{Pieces: []string{"The ", "plan ", "is ", "short."}})
	s := l.open(hermes.OpenRequest{})
	l.submit(s, "turn", "Summarise @file:/etc/hostname please.")
	end, shown := l.end(s)
	if done, ok := end.(hermes.Completed); !ok || done.Text != "The plan is short." || shown != done.Text || done.Usage.Max == 0 {
		l.Fatalf("ended by %#v, shown %q", end, shown)
	}
	asked := l.model.Asked(profile)
	if last := asked[len(asked)-1]; !strings.Contains(last, "[relay-run:live:turn]") || strings.Contains(last, "Attached") {
		l.Errorf("the model saw %q", last)
	}
	if usage, err := s.Usage(l.ctx); err != nil || usage.Used == 0 {
		l.Errorf("usage %+v, %v", usage, err)
	}
	page, err := l.client.History(l.ctx, hermes.HistoryRequest{Profile: profile, StoredID: s.State().StoredID})
	search := hermes.Search{Turn: l.marker("turn")}
	search.Add(page)
	if found := search.Result(); err != nil || !found.Answered || found.Text != "The plan is short." {
		l.Errorf("history %+v: %+v, %v", page, found, err)
	}
	again := l.open(hermes.OpenRequest{StoredID: s.State().StoredID, Turn: l.marker("turn")})
	if end, _ := l.end(again); end.(hermes.Completed).Text != "The plan is short." {
		l.Errorf("found again: %#v", end)
	}
}

func (l *live) attachments() {
	s := l.open(hermes.OpenRequest{})
	reference, err := s.Attach(l.ctx, hermes.File{Name: "my notes.txt", Type: "text/plain", Data: []byte("words of the file")})
	if err != nil || reference == "" {
		l.Fatalf("reference %q, %v", reference, err)
	}
	l.submit(s, "attach", "Read it.", reference)
	if end, _ := l.end(s); end.(hermes.Completed).Text != "ok" {
		l.Errorf("ended by %#v", end)
	}
	asked := l.model.Asked(profile)
	if last := asked[len(asked)-1]; !strings.Contains(last, "words of the file") {
		l.Errorf("the model saw %q", last)
	}
}

func (l *live) approval() {
	l.model.Script(profile, livetest.Reply{Tool: "terminal", Arguments: `{"command":"rm -rf /tmp/relay-live-nothing"}`}, livetest.Reply{Pieces: []string{"done"}})
	s := l.open(hermes.OpenRequest{})
	l.submit(s, "approval", "Clean up.")
	q := l.question(s)
	if q.Kind != hermes.Approval || q.Detail != "rm -rf /tmp/relay-live-nothing" || len(q.Choices) == 0 {
		l.Errorf("question %+v", q)
	}
	if err := s.AnswerApproval(l.ctx, q.ID, hermes.Deny); err != nil {
		l.Fatal(err)
	}
	if end, _ := l.end(s); end.(hermes.Completed).Text != "done" {
		l.Errorf("ended by %#v", end)
	}
	asked := l.model.Asked(profile)
	if last := asked[len(asked)-1]; !strings.Contains(strings.ToLower(last), "denied") {
		l.Errorf("the model saw %q", last)
	}
}

func (l *live) clarification() {
	l.model.Script(profile, livetest.Reply{Tool: "clarify", Arguments: `{"question":"Which quarter?","choices":["Q1","Q2"]}`}, livetest.Reply{Pieces: []string{"done"}})
	s := l.open(hermes.OpenRequest{})
	l.submit(s, "clarify", "Report.")
	q := l.question(s)
	if q.Kind != hermes.Clarification || len(q.Items) != 1 || q.Items[0].Text != "Which quarter?" || len(q.Items[0].Choices) != 2 {
		l.Fatalf("question %+v", q)
	}
	if err := s.AnswerClarification(l.ctx, q.ID, hermes.Answers{q.Items[0].ID: {"Q2"}}); err != nil {
		l.Fatal(err)
	}
	if end, _ := l.end(s); end.(hermes.Completed).Text != "done" {
		l.Errorf("ended by %#v", end)
	}
	if err := s.AnswerClarification(l.ctx, q.ID, hermes.Answers{}); hermes.KindOf(err) != hermes.KindExpired {
		l.Errorf("a second answer: %v", err)
	}
	asked := l.model.Asked(profile)
	if last := asked[len(asked)-1]; !strings.Contains(last, "Q2") {
		l.Errorf("the model saw %q", last)
	}
}

// held scripts an answer that stops amid its text.
func (l *live) held() (reached <-chan struct{}, release func()) {
	there, gate := make(chan struct{}), make(chan struct{})
	l.model.Script(profile, livetest.Reply{Pieces: []string{"half ", "and half"}, Gate: gate, Reached: there})
	return there, func() { close(gate) }
}

func (l *live) stop() {
	reached, release := l.held()
	defer release()
	s := l.open(hermes.OpenRequest{})
	l.submit(s, "stop", "Go.")
	<-reached
	if err := s.Interrupt(l.ctx); err != nil {
		l.Fatal(err)
	}
	if end, _ := l.end(s); !isInterrupted(end) {
		l.Errorf("ended by %#v", end)
	}
}

func isInterrupted(event hermes.Event) bool { _, ok := event.(hermes.Interrupted); return ok }

// dropped closes the first handle and finds the turn again on another one.
func (l *live) dropped() {
	reached, release := l.held()
	s := l.open(hermes.OpenRequest{})
	l.submit(s, "dropped", "Go.")
	<-reached
	stored := s.State().StoredID
	_ = s.Close()
	again := l.open(hermes.OpenRequest{StoredID: stored, Turn: l.marker("dropped")})
	release()
	if end, _ := l.end(again); end.(hermes.Completed).Text != "half and half" {
		l.Errorf("ended by %#v", end)
	}
}

func (l *live) gone() {
	_, err := l.client.Open(l.ctx, hermes.OpenRequest{Profile: "nobody"})
	if hermes.KindOf(err) != hermes.KindIdentity {
		l.Errorf("opened: %v", err)
	}
	_, err = l.client.Open(l.ctx, hermes.OpenRequest{Profile: profile, StoredID: "20200101_000000_abcdef"})
	if hermes.KindOf(err) != hermes.KindNotFound {
		l.Errorf("resumed: %v", err)
	}
}

func (l *live) wrongToken() {
	client, err := gateway.New(gateway.Config{URL: l.server.URL(), Token: "wrong"})
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.ListProfiles(l.ctx); hermes.KindOf(err) != hermes.KindAuth {
		l.Errorf("listed: %v", err)
	}
	if _, err := client.Open(l.ctx, hermes.OpenRequest{Profile: profile}); hermes.KindOf(err) != hermes.KindAuth {
		l.Errorf("opened: %v", err)
	}
}

// crash kills the server amid a turn and starts it again on the same port.
func (l *live) crash() {
	reached, release := l.held()
	defer release()
	s := l.open(hermes.OpenRequest{})
	l.submit(s, "crash", "Go.")
	<-reached
	port := l.server.Port()
	l.server.Kill()
	l.start(port)
	if end, _ := l.end(s); !isInterrupted(end) {
		l.Errorf("ended by %#v", end)
	}
	next := l.open(hermes.OpenRequest{StoredID: s.State().StoredID})
	l.submit(next, "after", "Again.")
	if end, _ := l.end(next); end.(hermes.Completed).Text != "ok" {
		l.Errorf("ended by %#v", end)
	}
}
