package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/newos4/relay/pkg/hermes"
)

// phase is how far a session's turn is.
type phase int

const (
	idle       phase = iota // nothing was submitted
	submitting              // sent, and not acknowledged
	unknown                 // the acknowledgement was lost, or is being looked for
	behind                  // admitted behind a turn that is not ours
	executing               // admitted
	over                    // the terminal event was told
)

// session is one [hermes.Session].
type session struct {
	client  *Client
	queue   *queue
	life    context.Context // ends with the session
	cancel  context.CancelFunc
	group   sync.WaitGroup
	nudge   chan struct{} // asks for a look at the session
	rebind  chan struct{} // holds one value while nobody resumes
	dead    chan struct{} // closed when connections are restored no longer
	ended   chan struct{} // closed with the session or its turn
	endOnce sync.Once

	mu        sync.Mutex
	closed    bool
	state     hermes.State
	link      *link
	linked    chan struct{} // closed while there is a link
	epoch     string
	seq       int64
	parking   bool // frames wait until the session is known
	parked    []frame
	created   bool // by this handle, so that it may be unknown upstream yet
	unproven  bool // the server could not tell the session's profile
	questions map[string]*question
	asked     int

	phase       phase
	turn        hermes.Marker
	scrub       *scrubber
	previewed   int           // bytes of the preview
	stopping    bool          // an interrupt was asked for
	idleNow     bool          // the session did not execute when it was looked at
	foreignOver bool          // the turn before ours has ended
	lookAgain   bool          // what was seen of the turn may change in a moment
	failure     *hermes.Error // of an error event that may be the last one
}

// Open makes or resumes a session.
func (c *Client) Open(ctx context.Context, request hermes.OpenRequest) (hermes.Session, error) {
	life, cancel := context.WithCancel(context.Background())
	s := &session{
		client: c, queue: newQueue(), life: life, cancel: cancel, dead: make(chan struct{}), nudge: make(chan struct{}, 1), rebind: make(chan struct{}, 1),
		state:  hermes.State{Profile: request.Profile, StoredID: request.StoredID},
		linked: make(chan struct{}), ended: make(chan struct{}), questions: make(map[string]*question), turn: request.Turn, scrub: newScrubber(request.Turn),
	}
	s.rebind <- struct{}{}
	if !request.Turn.IsZero() {
		s.phase = unknown
	}
	if err := s.open(ctx, request); err != nil {
		cancel()
		s.dropLink()
		return nil, err
	}
	if err := c.keep(s); err != nil {
		cancel()
		s.dropLink()
		return nil, err
	}
	s.spawn(s.supervise)
	s.spawn(s.queue.pump)
	return s, nil
}

// spawn starts a goroutine that Close waits for, unless the session is closed.
// The lock is not held.
func (s *session) spawn(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawnLocked(f)
}

// spawnLocked is spawn with the lock held.
func (s *session) spawnLocked(f func(ctx context.Context)) {
	if !s.closed {
		s.group.Go(func() { f(s.life) })
	}
}

// State returns what is known of the session.
func (s *session) State() hermes.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot()
}

// snapshot copies the state. The lock is held.
func (s *session) snapshot() hermes.State {
	state := s.state
	state.Aliases = slices.Clone(s.state.Aliases)
	state.Questions = nil
	for _, q := range s.questions {
		if !q.closed {
			state.Questions = append(state.Questions, q.Question)
		}
	}
	slices.SortFunc(state.Questions, func(a, b hermes.Question) int { return s.questions[a.ID].number - s.questions[b.ID].number })
	return state
}

// Events returns the turn's events.
func (s *session) Events() <-chan hermes.Event { return s.queue.out }

// Close lets go of the session.
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.endOnce.Do(func() { close(s.ended) })
	s.dropLink()
	s.group.Wait()
	s.client.forget(s)
	return nil
}

// dropLink ends the connection, if there is one.
func (s *session) dropLink() {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// supervise restores the connection when it is lost and looks at the session when
// it is asked to, or when a turn is silent for long.
func (s *session) supervise(ctx context.Context) {
	defer close(s.dead)
	defer s.dropLink()
	s.settleLoop(ctx)
	for ctx.Err() == nil {
		l := s.current()
		silence := time.NewTimer(s.client.timers.Silence)
		select {
		case <-l.done:
			silence.Stop()
			if !s.restore(ctx, l) {
				return
			}
		case <-s.nudge:
			silence.Stop()
			s.look(ctx)
		case <-silence.C:
			if s.pending() && time.Since(time.Unix(0, l.heard.Load())) >= s.client.timers.Silence {
				s.look(ctx)
			}
		case <-ctx.Done():
			silence.Stop()
		}
	}
}

// current returns the present link, or the one that was lost last.
func (s *session) current() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
}

// pending reports whether there is a turn whose end was not told.
func (s *session) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase > submitting && s.phase < over
}

// poke asks the supervisor for a look.
func (s *session) poke() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// restore connects anew with growing pauses, and reports whether it did. When it
// takes too long the turn is lost to this handle, but perhaps not upstream.
func (s *session) restore(ctx context.Context, lost *link) bool {
	lost.close()
	cause := s.client.closeFailure("keep the connection", lost.err)
	if s.turnIs(over) {
		return false
	}
	s.queue.add(hermes.Disconnected{Err: cause})
	deadline := time.Now().Add(s.client.timers.Restore)
	for pause := 500 * time.Millisecond; ; pause = min(pause*2, 30*time.Second) {
		if !sleep(ctx, jitter(pause)) {
			return false
		}
		err := s.reopen(ctx)
		if err == nil {
			s.queue.add(hermes.Reconnected{State: s.State()})
			s.settleLoop(ctx)
			return true
		}
		if ctx.Err() != nil || s.gone(err) {
			return false
		}
		if failure, ok := errors.AsType[*hermes.Error](err); ok {
			cause = failure
			if !worthwhile(failure) || time.Now().After(deadline) {
				s.finish(hermes.Lost{Err: cause})
				return false
			}
		}
	}
}

// worthwhile reports whether connecting may succeed later.
func worthwhile(failure *hermes.Error) bool {
	switch failure.Kind {
	case hermes.KindAuth, hermes.KindForbidden, hermes.KindIdentity, hermes.KindTooLarge, hermes.KindNotFound:
		return false
	case hermes.KindProtocol:
		return failure.Retryable
	default:
		return true
	}
}

// gone ends the turn of a session that does not exist upstream, and reports
// whether it did: what was never stored was never prompted.
func (s *session) gone(err error) bool {
	if hermes.KindOf(err) != hermes.KindNotFound {
		return false
	}
	s.mu.Lock()
	created, phase := s.created, s.phase
	s.mu.Unlock()
	failure, _ := errors.AsType[*hermes.Error](err)
	if created && phase != executing {
		s.finish(hermes.NotAccepted{})
		return true
	}
	s.finish(hermes.Lost{Err: failure})
	return true
}

// unlink marks the session as disconnected, if l is its connection.
func (s *session) unlink(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l {
		return
	}
	select {
	case <-s.linked:
		s.linked = make(chan struct{})
	default:
	}
}

// await returns the link once there is one.
func (s *session) await(ctx context.Context, doing string) (*link, error) {
	timer := time.NewTimer(s.client.timers.Call)
	defer timer.Stop()
	s.mu.Lock()
	linked := s.linked
	s.mu.Unlock()
	select {
	case <-linked:
		return s.current(), nil
	case <-timer.C:
	case <-s.dead:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, &hermes.Error{Kind: hermes.KindDisconnected, Doing: doing, Text: "there is no connection", Retryable: true}
}

// sleep lets d pass and reports whether it did.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter returns between three quarters of d and d, so that many sessions do not
// come back at once.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // no secret
}

// turnIs reports whether the turn is in a phase.
func (s *session) turnIs(p phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == p
}

// finish tells the turn's terminal event, once.
func (s *session) finish(event hermes.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked(event)
}

// finishLocked is finish with the lock held.
func (s *session) finishLocked(event hermes.Event) {
	if s.phase == over {
		return
	}
	s.phase = over
	s.endOnce.Do(func() { close(s.ended) })
	s.state.Running = false
	s.closeQuestions("the turn ended")
	if rest := s.scrub.rest(); rest != "" {
		s.queue.add(hermes.Delta{Text: rest})
	}
	s.queue.add(event)
}
