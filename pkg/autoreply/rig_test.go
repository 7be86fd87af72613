package autoreply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

const testThread = chat.ThreadID("60e05bd1b195af2f")

func thread(n int) chat.ThreadID { return chat.Token(fmt.Sprint(n)).Thread() }

// scripted is a back end that asks the test what to answer.
type scripted struct {
	mu      sync.Mutex
	asked   []Question
	running int
	most    int // runs at once
	closed  int
	answer  func(ctx context.Context, q Question) (Answer, error)
}

func (s *scripted) Probe(context.Context) error { return nil }

func (s *scripted) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	if s.running > 0 {
		return errors.New("closed in mid-run")
	}
	return nil
}

func (s *scripted) Answer(ctx context.Context, q Question) (Answer, error) {
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.running++
	s.most = max(s.most, s.running)
	answer := s.answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	}()
	return answer(ctx, q)
}

func (s *scripted) questions() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// closes returns how often the back end was closed.
func (s *scripted) closes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// echo answers with the newest message.
func echo(_ context.Context, q Question) (Answer, error) {
	return Answer{Text: "re: " + q.Messages[len(q.Messages)-1].Text, Tokens: 10}, nil
}

// rig is an agent over a real store under a fake clock.
type rig struct {
	*testing.T
	store   *storage.Store
	backend *scripted
	changes chan []storage.Change
	path    string
	agent   *Agent
	stop    func()
}

func testSettings(b Backend) Settings {
	return Settings{
		Quiet: 2 * time.Second, Concurrency: 2, Limit: 4000, Backend: b, Outgoing: NewOutgoing(nil),
		Budget: Budget{Time: time.Minute, ToolCalls: 5, Bytes: 1000, Tokens: 1000},
		Bounds: Bounds{Retries: 2},
	}
}

// bubble runs a test with a rig whose agent runs.
func bubble(t *testing.T, change func(*Settings), test func(*rig)) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, backend: &scripted{answer: echo}, changes: make(chan []storage.Change), path: filepath.Join(root, "state", StateFile)}
		r.store = storage.Open(storage.Options{
			Root: root, Space: "newos4", Bounds: storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 200, MaxAge: 720 * time.Hour}},
		})
		defer func() { _ = r.store.Close() }()
		settings := testSettings(r.backend)
		if change != nil {
			change(&settings)
		}
		r.start(settings)
		defer func() { r.stop() }()
		test(r)
	})
}

// start runs an agent, the first or the one after a restart, and tells it of
// every thread that stands.
func (r *rig) start(settings Settings) {
	r.Helper()
	r.agent = New(settings, r.store, r.path, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.agent.Run(ctx, r.changes) })
	r.stop = func() { cancel(); wg.Wait() }
	ids, err := r.store.Threads()
	if err != nil {
		r.Fatal(err)
	}
	for _, id := range ids {
		r.changes <- []storage.Change{{Thread: id}}
	}
}

// say appends a message and tells the agent.
func (r *rig) say(id chat.ThreadID, author chat.Author, text string) {
	r.Helper()
	if _, err := r.store.Append(r.Context(), id, storage.Post{Author: author, Text: text, Create: true}); err != nil {
		r.Fatal(err)
	}
	r.changes <- []storage.Change{{Thread: id}}
	synctest.Wait()
}

// tell passes on what the store's own feed would tell.
func (r *rig) tell(id chat.ThreadID) {
	r.changes <- []storage.Change{{Thread: id}}
	synctest.Wait()
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want compares the texts of a thread.
func (r *rig) want(id chat.ThreadID, texts ...string) {
	r.Helper()
	th, err := r.store.Thread(id)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, m := range th.Messages() {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, texts) {
		r.Errorf("thread %s: %q, want %q", id, got, texts)
	}
}

// state returns what the agent says of the test's thread in its file.
func (r *rig) state() ThreadState {
	r.Helper()
	state, err := ReadState(r.path)
	if err != nil {
		r.Fatal(err)
	}
	return state.Threads[testThread]
}
