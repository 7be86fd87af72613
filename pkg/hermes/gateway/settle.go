package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/newos4/relay/pkg/hermes"
)

// looks are the pauses before the history is read: rows may lag behind.
func looks() []time.Duration {
	return []time.Duration{0, 2 * time.Second, 6 * time.Second}
}

// againPause is how long a session is left alone that executes a turn that is not
// ours, or is about to end one.
const againPause = 5 * time.Second

// reopen restores the connection and binds it to the session.
func (s *session) reopen(ctx context.Context) error {
	l, ready, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return s.bind(ctx, l, ready)
}

// again resumes the session on a connection that stands.
func (s *session) again(ctx context.Context, l *link) error {
	select {
	case <-s.rebind:
		defer func() { s.rebind <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	result, err := s.resume(ctx, l, "resume the session")
	if err != nil {
		return err
	}
	s.adopt(result)
	return nil
}

// bind resumes the session and catches up with what happened meanwhile.
func (s *session) bind(ctx context.Context, l *link, ready readyPayload) error {
	const doing = "resume the session"
	result, err := s.resume(ctx, l, doing)
	if err == nil {
		err = s.identify(ctx, ready, doing, result)
	}
	if err != nil {
		l.close()
		return err
	}
	before := s.lastSeen()
	s.adopt(result)
	replayed := before > 0 && s.lastSeen() == before && s.replay(ctx, l, before)
	s.restoreQuestions(result)
	s.sort(result, replayed)
	s.unpark()
	return nil
}

// lastSeen returns the number of the last event that was handled.
func (s *session) lastSeen() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// replay handles the events since the last one that was seen, and reports whether
// all of them were kept.
func (s *session) replay(ctx context.Context, l *link, since int64) bool {
	s.mu.Lock()
	runtime, epoch := s.state.RuntimeID, s.epoch
	s.mu.Unlock()
	var result struct {
		Events    []json.RawMessage `json:"events"`
		Truncated bool              `json:"truncated"`
		Epoch     string            `json:"epoch"`
	}
	err := l.call(ctx, "catch up with events", "session.events.since", map[string]any{"session_id": runtime, "last_seen": since}, s.client.timers.Call, &result)
	if err != nil || result.Truncated || result.Epoch != "" && result.Epoch != epoch {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == unknown {
		return false // whose events they are is not known yet
	}
	for _, raw := range result.Events {
		s.handle(frame{Method: "event", Params: raw})
	}
	return true
}

// restoreQuestions shows the questions that are open, of which some may be known.
func (s *session) restoreQuestions(result opened) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == idle || s.phase == over {
		return
	}
	for _, f := range result.OpenRequests {
		s.requested(f)
	}
	if present(result.PendingApproval) {
		s.ask(approvalOf(result.PendingApproval, form{event: true}))
	}
	if present(result.PendingClarify) {
		s.ask(clarificationOf(result.PendingClarify, form{event: true}))
	}
}

// sort decides what a resumed session's state says of our turn.
func (s *session) sort(result opened, replayed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idleNow, s.lookAgain = false, false
	if s.phase <= submitting || s.phase == over {
		return
	}
	if !result.busy() {
		s.idleNow = true
		return
	}
	user, assistant := "", ""
	if result.Inflight != nil {
		user, assistant = result.Inflight.User, result.Inflight.Assistant
	}
	switch {
	case s.turn.In(user), user == "" && s.phase == executing, present(result.AutoContinue):
		s.executes(assistant, replayed)
	case result.Queued != nil && s.turn.In(result.Queued.User):
		s.phase, s.foreignOver = behind, false
	case s.phase == executing:
		s.phase = unknown // ours has ended, and another began
	}
	s.lookAgain = s.phase == unknown || result.Inflight == nil // a turn that ends has its state cleared first
}

// executes notes that our turn goes on, and replaces the preview unless its
// events were replayed. The lock is held.
func (s *session) executes(assistant string, replayed bool) {
	s.phase = executing
	if replayed {
		return
	}
	s.scrub = newScrubber(s.turn)
	s.previewed = len(assistant)
	s.queue.add(hermes.Started{})
	if assistant != "" {
		s.queue.add(hermes.Preview{Text: s.scrub.feed(assistant)})
	}
}

// look resumes the session to see how the turn is, and settles it if it is not
// executing.
func (s *session) look(ctx context.Context) {
	if s.failedAlone(ctx) {
		return
	}
	l, submitted := s.current(), s.pending()
	result, err := s.resume(ctx, l, "look at the session")
	if err != nil {
		if codeOf(err) != 0 && s.pending() {
			s.gone(err)
		}
		return // a lost connection is restored
	}
	s.adopt(result)
	if !submitted || !s.pending() {
		return // what was seen may be from before the prompt was admitted
	}
	s.restoreQuestions(result)
	s.pollApprovals(ctx, l, result)
	s.sort(result, s.turnIs(executing))
	s.settleLoop(ctx)
}

// failedAlone ends a turn whose error event was its last: it waits a moment for
// the completion that may follow.
func (s *session) failedAlone(ctx context.Context) bool {
	s.mu.Lock()
	failure := s.failure
	s.mu.Unlock()
	if failure == nil || !s.pending() {
		return false
	}
	sleep(ctx, interruptGrace)
	if s.pending() {
		s.finish(hermes.Failed{Err: failure})
	}
	return true
}

// pollApprovals asks for approvals whose event was lost, as older builds lose
// them.
func (s *session) pollApprovals(ctx context.Context, l *link, result opened) {
	if result.Status != "waiting" || len(result.OpenRequests) > 0 {
		return
	}
	var pending struct {
		Approvals []json.RawMessage `json:"approvals"`
	}
	if l.call(ctx, "ask for approvals", "approval.pending", map[string]any{"session_id": s.State().RuntimeID}, s.client.timers.Call, &pending) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range pending.Approvals {
		if q := approvalOf(raw, form{event: true}); q != nil && q.ID != "" {
			s.ask(q)
		}
	}
}

// settleLoop finds out what became of a turn that does not execute, and sees to it
// that the session is looked at again while a turn that is not ours executes.
func (s *session) settleLoop(ctx context.Context) {
	s.mu.Lock()
	settle, again := s.pendingLocked() && s.idleNow, s.lookAgain
	s.mu.Unlock()
	if settle {
		s.settle(ctx)
		return
	}
	if again {
		s.spawn(func(context.Context) {
			select {
			case <-time.After(againPause):
				s.poke()
			case <-s.ended:
			}
		})
	}
}

// pendingLocked is pending with the lock held.
func (s *session) pendingLocked() bool { return s.phase > submitting && s.phase < over }

// settle reads the history of an idle session until it tells what became of the
// turn (hermes-upstream section 3.11). It submits nothing, ever.
func (s *session) settle(ctx context.Context) {
	var failed error
	for n, pause := range looks() {
		if pause > 0 && !sleep(ctx, pause) || !s.pending() {
			return
		}
		found, err := s.search(ctx)
		failed = err
		last := n == len(looks())-1
		if err == nil && last && !found.Answered && s.executesAfterAll(ctx) {
			return
		}
		if err == nil && s.conclude(found, last) {
			return
		}
	}
	if ctx.Err() == nil {
		s.finish(hermes.Lost{Err: s.whyLost(failed)})
	}
}

// executesAfterAll looks at the session once more before a turn is given up, and
// reports whether it executes now, as one may that was admitted meanwhile.
func (s *session) executesAfterAll(ctx context.Context) bool {
	result, err := s.resume(ctx, s.current(), "look at the session")
	if err != nil || !result.busy() {
		return false
	}
	s.adopt(result)
	s.sort(result, s.turnIs(executing))
	s.poke()
	return true
}

// whyLost returns why nothing is known of the turn.
func (s *session) whyLost(err error) *hermes.Error {
	if failure, ok := errors.AsType[*hermes.Error](err); ok {
		return failure
	}
	return &hermes.Error{Kind: hermes.KindUncertain, Doing: "look for the turn", Text: "the history tells nothing of it", Retryable: true}
}

// conclude tells what the history says, and reports whether that is final. A
// missing answer or prompt is believed at the last look alone.
func (s *session) conclude(found hermes.Finding, last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case found.Answered:
		s.finishLocked(hermes.Completed{Text: s.scrub.scrub(found.Text), Truncated: found.Truncated})
	case s.failure != nil:
		s.finishLocked(hermes.Failed{Err: s.failure})
	case found.Partial && (last || s.stopping):
		s.finishLocked(hermes.Interrupted{Text: s.scrub.scrub(found.Text)})
	case found.Accepted && (last || s.stopping):
		s.finishLocked(hermes.Interrupted{})
	case s.stopping && last:
		s.finishLocked(hermes.Interrupted{})
	case found.Absent && last && s.phase == unknown:
		s.finishLocked(hermes.NotAccepted{})
	default:
		return false
	}
	return true
}

// search looks for the turn in the stored history. A session that is not stored
// was never prompted.
func (s *session) search(ctx context.Context) (hermes.Finding, error) {
	s.mu.Lock()
	request := hermes.HistoryRequest{Profile: s.state.Profile, StoredID: s.state.StoredID}
	search := hermes.Search{Turn: s.turn}
	s.mu.Unlock()
	for request.Page = range hermes.HistoryPages {
		page, err := s.client.History(ctx, request)
		if hermes.KindOf(err) == hermes.KindNotFound && request.Page == 0 {
			page, err = hermes.Page{Last: true, Whole: true}, nil
		}
		if err != nil {
			return hermes.Finding{}, err
		}
		if search.Add(page) {
			break
		}
	}
	return search.Result(), nil
}

// storedUnder reports by its error whether a session is stored under a profile.
func (c *Client) storedUnder(ctx context.Context, id, profile string) error {
	_, err := c.do(ctx, call{
		doing: "look for the session", method: http.MethodGet, path: "/api/sessions/" + url.PathEscape(id),
		query: url.Values{"profile": {profile}}, limit: maxProfiles,
	})
	return err
}
