package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/newos4/relay/pkg/hermes"
)

// opened is the result of session.create and session.resume.
type opened struct {
	SessionID       string `json:"session_id"`
	StoredSessionID string `json:"stored_session_id"`
	SessionKey      string `json:"session_key"`
	Resumed         string `json:"resumed"`
	Running         bool   `json:"running"`
	Status          string `json:"status"`
	Info            struct {
		ProfileName     string `json:"profile_name"`
		StoredSessionID string `json:"stored_session_id"`
	} `json:"info"`
	Inflight *struct {
		User      string `json:"user"`
		Assistant string `json:"assistant"`
	} `json:"inflight"`
	Queued *struct {
		User string `json:"user"`
	} `json:"queued"`
	OpenRequests    []frame         `json:"open_requests"`
	PendingApproval json.RawMessage `json:"pending_approval"`
	PendingClarify  json.RawMessage `json:"pending_clarify"`
	AutoContinue    json.RawMessage `json:"auto_continue"`
}

// stored returns the stored id by whichever name the build has for it.
func (o opened) stored() string {
	for _, id := range []string{o.StoredSessionID, o.Info.StoredSessionID, o.SessionKey, o.Resumed} {
		if id != "" {
			return id
		}
	}
	return ""
}

// busy reports whether the session executes.
func (o opened) busy() bool { return o.Running || present(o.AutoContinue) }

// present reports whether a JSON value is there and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// open connects for the first time, and creates or resumes the session.
func (s *session) open(ctx context.Context, request hermes.OpenRequest) error {
	const doing = "open session"
	l, ready, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var result opened
	if request.StoredID == "" {
		result, err = s.create(ctx, l, request)
	} else {
		result, err = s.resume(ctx, l, doing)
	}
	if err != nil {
		return err
	}
	if err := s.identify(ctx, ready, doing, result); err != nil {
		return err
	}
	s.adopt(result)
	if request.Turn.IsZero() && result.busy() {
		return &hermes.Error{Kind: hermes.KindBusy, Doing: doing, Text: "the session still executes another turn", Retryable: true}
	}
	s.restoreQuestions(result)
	s.sort(result, false)
	s.unpark()
	return nil
}

// connect dials, tells the server what can be answered here, and parks events
// until the session is known.
func (s *session) connect(ctx context.Context) (*link, readyPayload, error) {
	s.mu.Lock()
	s.parking, s.parked = true, nil
	s.mu.Unlock()
	l, ready, err := s.client.dial(ctx, s)
	if err != nil {
		return nil, readyPayload{}, err
	}
	s.mu.Lock()
	s.link = l
	if s.epoch != ready.ReplayEpoch {
		s.epoch, s.seq = ready.ReplayEpoch, 0
		s.closeQuestions("the server restarted")
	}
	s.mu.Unlock()
	err = l.call(ctx, "announce capabilities", "client.capabilities", map[string]any{"server_requests": true}, s.client.timers.Call, nil)
	if err != nil && codeOf(err) == 0 {
		l.close()
		return nil, readyPayload{}, err
	}
	return l, ready, nil
}

// create makes a hidden session that survives a lost connection.
func (s *session) create(ctx context.Context, l *link, request hermes.OpenRequest) (opened, error) {
	params := map[string]any{
		"profile": request.Profile, "source": s.client.config.Source, "hidden": true, "room_plumbing": true, "close_on_disconnect": false,
	}
	if request.Title != "" {
		params["title"] = request.Title
	}
	var result opened
	err := s.lenient(ctx, l, "open session", "session.create", params, &result, "profile")
	if codeOf(err) == codeTitle {
		delete(params, "title")
		err = s.lenient(ctx, l, "open session", "session.create", params, &result, "profile")
	}
	s.mu.Lock()
	s.created = err == nil
	s.mu.Unlock()
	return result, err
}

// resume binds this connection to the stored session.
func (s *session) resume(ctx context.Context, l *link, doing string) (opened, error) {
	s.mu.Lock()
	params := map[string]any{
		"session_id": s.state.StoredID, "profile": s.state.Profile, "source": s.client.config.Source,
		"omit_messages": true, "close_on_disconnect": false,
	}
	s.mu.Unlock()
	var result opened
	err := s.lenient(ctx, l, doing, "session.resume", params, &result, "session_id", "profile")
	return result, err
}

// lenient calls a method that may be repeated. Parameters that the server does
// not know are done without, now and from then on; those that are needed are not.
func (s *session) lenient(ctx context.Context, l *link, doing, method string, params map[string]any, into any, needed ...string) error {
	s.client.withoutDropped(method, params, needed)
	for {
		err := l.call(ctx, doing, method, params, s.client.timers.Resume, into)
		code := codeOf(err)
		if code != codeUnknownParam && code != codeBadParams {
			return err
		}
		if !s.client.drop(method, params, needed, err) {
			return err
		}
	}
}

// withoutDropped removes what the server was found not to know.
func (c *Client) withoutDropped(method string, params map[string]any, needed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range params {
		if c.dropped[method+" "+key] && !slices.Contains(needed, key) {
			delete(params, key)
		}
	}
}

// drop removes the parameters that an error names, or all that are not needed if
// it names none, and reports whether there were any.
func (c *Client) drop(method string, params map[string]any, needed []string, err error) bool {
	failure, ok := errors.AsType[*hermes.Error](err)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	spare := func(key string) bool { return !slices.Contains(needed, key) }
	named := func(key string) bool { return spare(key) && containsWord(failure.Text, key) }
	return c.dropWhere(method, params, named) || c.dropWhere(method, params, spare)
}

// dropWhere removes the parameters for which which reports true.
func (c *Client) dropWhere(method string, params map[string]any, which func(string) bool) bool {
	found := false
	for key := range params {
		if which(key) {
			delete(params, key)
			c.dropped[method+" "+key] = true
			found = true
		}
	}
	return found
}

// containsWord reports whether text has word as a whole one.
func containsWord(text, word string) bool {
	for _, found := range strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		if found == word {
			return true
		}
	}
	return false
}

// identify makes sure that the session is one of the profile that was asked for
// (section 7.1). The oldest builds name the profile of their process; of them the
// profile must be listed, for one that is not there becomes another without a
// word, and a new session is looked for under its profile once it is stored.
func (s *session) identify(ctx context.Context, ready readyPayload, doing string, result opened) error {
	if result.SessionID == "" || result.stored() == "" {
		return &hermes.Error{Kind: hermes.KindIdentity, Doing: doing, Text: "the session has no ids"}
	}
	wanted, got := s.profile(), result.Info.ProfileName
	if got == wanted || got == "" && !ready.oldest() {
		return nil
	}
	mismatch := &hermes.Error{
		Kind: hermes.KindIdentity, Doing: doing,
		Text: "another profile answered: " + s.client.safe(got), Hint: "check that the profile still exists on the server",
	}
	if !ready.oldest() {
		return mismatch
	}
	profiles, err := s.client.ListProfiles(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(profiles, func(p hermes.Profile) bool { return p.Name == wanted }) {
		return mismatch
	}
	s.mu.Lock()
	s.unproven = true
	s.mu.Unlock()
	return nil
}

// profile returns the session's profile, which never changes.
func (s *session) profile() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Profile
}

// adopt takes over the ids of a result.
func (s *session) adopt(result opened) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.state.RuntimeID != "" && s.state.RuntimeID != result.SessionID
	if changed {
		s.seq = 0
	}
	s.state.RuntimeID = result.SessionID
	s.state.Running = result.busy()
	if s.renamed(result.stored()) || changed {
		s.queue.add(hermes.Rebound{State: s.snapshot()})
	}
}

// renamed follows the session to another stored id and reports whether it
// changed. The lock is held.
func (s *session) renamed(id string) bool {
	if id == "" || id == s.state.StoredID {
		return false
	}
	if before := s.state.StoredID; before != "" && !slices.Contains(s.state.Aliases, before) {
		s.state.Aliases = append(s.state.Aliases, before)
	}
	first := s.state.StoredID == ""
	s.state.StoredID = id
	return !first
}

// unpark handles what came while the session was not known, and opens the
// connection to everybody.
func (s *session) unpark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parking = false
	parked := s.parked
	s.parked = nil
	for _, f := range parked {
		s.handle(f)
	}
	select {
	case <-s.linked:
	default:
		close(s.linked)
	}
}
