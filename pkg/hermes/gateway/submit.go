package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/defuse"
)

// Definite refusals that pass, such as an agent that is not built yet, are tried
// again so often, with growing pauses.
const refusedTries = 6

// uncertain turns a failure of something that may have arrived into one that says
// so.
func uncertain(doing string, err error) error {
	if !errors.Is(err, errSent) && hermes.KindOf(err) != hermes.KindUncertain {
		return err
	}
	return &hermes.Error{
		Kind: hermes.KindUncertain, Doing: doing, Text: "it was sent, and nothing acknowledged it", Code: codeOf(err), Err: err,
	}
}

// callScoped calls a method of the session. A session that the server forgot is
// resumed, and the call repeated, once: a call to an unknown session did nothing.
func (s *session) callScoped(ctx context.Context, doing, method string, params map[string]any, timeout time.Duration, into any) error {
	for repeat := false; ; repeat = true {
		l, err := s.await(ctx, doing)
		if err != nil {
			return err
		}
		params["session_id"] = s.State().RuntimeID
		err = l.call(ctx, doing, method, params, timeout, into)
		if codeOf(err) != codeNoRuntime || repeat {
			return err
		}
		if err := s.again(ctx, l); err != nil {
			return err
		}
	}
}

// compose writes a prompt: the marker first, so that nothing of the text can be
// read as a command, then the text without anything that Hermes would act on,
// then the references that are ours.
func compose(prompt hermes.Prompt) string {
	parts := append([]string{prompt.Marker.String() + "\n" + defuse.Text(prompt.Text)}, prompt.References...)
	return strings.Join(parts, "\n")
}

// Submit sends the prompt.
func (s *session) Submit(ctx context.Context, prompt hermes.Prompt) error {
	const doing = "submit the prompt"
	if prompt.Marker.IsZero() {
		return &hermes.Error{Kind: hermes.KindRejected, Doing: doing, Text: "the prompt has no marker"}
	}
	if err := s.begin(doing, prompt.Marker); err != nil {
		return err
	}
	var result struct {
		Status string `json:"status"`
	}
	err := s.admit(ctx, doing, compose(prompt), &result)
	if err == nil {
		s.admitted(result.Status)
		return s.prove(ctx, doing)
	}
	if err = uncertain(doing, err); hermes.KindOf(err) != hermes.KindUncertain {
		s.setPhase(submitting, idle)
		return err
	}
	s.setPhase(submitting, unknown)
	s.poke()
	return err
}

// begin reserves the session for its one turn.
func (s *session) begin(doing string, marker hermes.Marker) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != idle {
		return &hermes.Error{Kind: hermes.KindRejected, Doing: doing, Text: "the session has had its turn"}
	}
	if s.state.Running {
		return &hermes.Error{Kind: hermes.KindBusy, Doing: doing, Text: "the session still executes another turn", Retryable: true}
	}
	s.phase, s.turn, s.scrub = submitting, marker, newScrubber(marker)
	return nil
}

// admit sends the prompt until it is admitted, refused for good, or uncertain.
// Only a definite refusal is followed by another try.
func (s *session) admit(ctx context.Context, doing, text string, result any) error {
	pause := time.Second
	for try := 1; ; try++ {
		err := s.callScoped(ctx, doing, "prompt.submit", map[string]any{"text": text}, s.client.timers.Call, result)
		code := codeOf(err)
		if code != codeNotBuilt && code != codeBusy && code != codeCap || try == refusedTries {
			return err
		}
		if !sleep(ctx, jitter(pause)) {
			return ctx.Err()
		}
		pause *= 2
	}
}

// admitted notes how the prompt was admitted.
func (s *session) admitted(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != submitting {
		return
	}
	s.phase, s.state.Running = executing, true
	if status == "queued" {
		s.phase = behind
	}
	if s.failure != nil {
		s.poke() // it failed before it was acknowledged
	}
	if s.stopping {
		s.spawnLocked(func(ctx context.Context) { _ = s.interrupt(ctx) })
	}
}

// prove makes sure that the prompt went to the right profile, where the session
// could not tell: its row is stored before the prompt is acknowledged. A prompt
// that is not there went to another agent, and is stopped.
func (s *session) prove(ctx context.Context, doing string) error {
	s.mu.Lock()
	unproven, id, profile := s.unproven, s.state.StoredID, s.state.Profile
	s.mu.Unlock()
	if !unproven {
		return nil
	}
	err := s.client.storedUnder(ctx, id, profile)
	if hermes.KindOf(err) != hermes.KindNotFound {
		return nil // an unreadable answer proves nothing
	}
	_ = s.Interrupt(ctx)
	failure := &hermes.Error{Kind: hermes.KindIdentity, Doing: doing, Text: "the prompt went to another profile"}
	s.finish(hermes.Failed{Err: failure})
	return failure
}

// setPhase moves the turn from one phase to another, if it is there.
func (s *session) setPhase(from, to phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == from {
		s.phase = to
	}
}

// Interrupt stops the turn.
func (s *session) Interrupt(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	done := s.phase == over || s.phase == idle && !s.state.Running
	s.mu.Unlock()
	if done {
		return nil
	}
	return s.interrupt(ctx)
}

// interrupt calls the server. The turn's end is told by its event; where none
// comes, as for a turn that had not begun, the supervisor finds out.
func (s *session) interrupt(ctx context.Context) error {
	const doing = "interrupt the turn"
	if err := s.callScoped(ctx, doing, "session.interrupt", map[string]any{}, s.client.timers.Call, nil); err != nil {
		return uncertain(doing, err)
	}
	s.spawn(func(context.Context) {
		timer := time.NewTimer(interruptGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			s.poke()
		case <-s.ended:
		}
	})
	return nil
}

// interruptGrace is how long an interrupted turn has for its last event.
const interruptGrace = 3 * time.Second

// Attach hands a file over.
func (s *session) Attach(ctx context.Context, file hermes.File) (string, error) {
	const doing = "attach a file"
	if len(file.Data) > hermes.MaxAttachment {
		return "", &hermes.Error{Kind: hermes.KindTooLarge, Doing: doing, Text: "the file is larger than 25 MiB"}
	}
	encoded := base64.StdEncoding.EncodeToString(file.Data)
	if strings.HasPrefix(file.Type, "image/") {
		return "", s.callScoped(ctx, doing, "image.attach_bytes", map[string]any{"content_base64": encoded, "filename": file.Name}, s.client.timers.Resume, nil)
	}
	var result struct {
		RefText string `json:"ref_text"`
	}
	err := s.callScoped(ctx, doing, "file.attach", map[string]any{
		"data_url": "data:" + mimeOr(file.Type) + ";base64," + encoded, "name": file.Name,
	}, s.client.timers.Resume, &result)
	return result.RefText, err
}

// mimeOr returns a MIME type that may stand in a data URL.
func mimeOr(kind string) string {
	if kind == "" || strings.ContainsAny(kind, ";, \t\r\n") {
		return "application/octet-stream"
	}
	return kind
}

// Usage asks for the session's context usage.
func (s *session) Usage(ctx context.Context) (hermes.Usage, error) {
	var result usage
	err := s.callScoped(ctx, "ask for the usage", "session.usage", map[string]any{}, s.client.timers.Call, &result)
	return result.public(), err
}
