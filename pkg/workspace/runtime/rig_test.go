package runtime_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/gateway"
	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/runtime"
	"github.com/newos4/relay/pkg/workspace/store"
)

// The owners of tests.
const (
	ann workspace.OwnerID = "11111111-1111-4111-8111-111111111111"
	bob workspace.OwnerID = "22222222-2222-4222-8222-222222222222"
)

// letters are the agents of tests; agent A stands on the profile "a", and so on,
// so that a script is for an agent.
var letters = []string{"A", "B", "C", "D", "E"}

// rig is a runtime with its store and the fake Hermes that it drives, in a bubble
// of testing/synctest.
type rig struct {
	*testing.T
	fake  *hermestest.Server
	dir   string
	store *store.Store
	files *memory

	client  *gateway.Client
	runtime *runtime.Runtime
	// gone says that no node is there.
	gone atomic.Bool

	agents map[string]workspace.Agent
	sent   int
	// runs are those of Ann's, by her events up to cursor.
	runs   map[workspace.RunID]workspace.Run
	cursor int64
}

// inBubble runs f with a runtime that has nothing to do yet.
func inBubble(t *testing.T, f func(r *rig), options ...hermestest.Option) {
	t.Helper()
	dir := memoryDir(t) // outside of the bubble, whose clock it must not have
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, filepath.Join(dir, "workspace"), options...)
		f(r)
		r.stop()
		r.must(r.store.Check(context.Background()))
	})
}

// memoryDir returns a directory of the test that is kept in memory, where there is
// such a place: what a store is made to outlive is no matter of these tests, and
// waiting for a disk is most of their time.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "relay-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newRig(t *testing.T, dir string, options ...hermestest.Option) *rig {
	t.Helper()
	profiles := []hermestest.Profile{}
	for _, letter := range letters {
		profiles = append(profiles, hermestest.Profile{Name: strings.ToLower(letter)})
	}
	options = append([]hermestest.Option{hermestest.InMemory(), hermestest.WithProfiles(profiles...)}, options...)
	r := &rig{T: t, dir: dir, fake: hermestest.New(t, options...), files: newMemory(), agents: make(map[string]workspace.Agent), runs: make(map[workspace.RunID]workspace.Run)}
	r.openStore(nil)
	t.Cleanup(func() {
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
	r.enable(ann)
	r.start()
	return r
}

// start starts a runtime with a client of its own.
func (r *rig) start() {
	r.Helper()
	var err error
	r.client, err = gateway.New(gateway.Config{URL: r.fake.URL(), Token: hermestest.Token, Source: "relay-test", Dial: r.fake.Dial})
	r.must(err)
	r.runtime = runtime.New(runtime.Options{Store: r.store, Upstreams: r, Files: r.files, Logger: slog.New(slog.DiscardHandler)})
	r.must(r.runtime.Start(context.Background()))
}

// stop stops the runtime, as the daemon does.
func (r *rig) stop() {
	r.Helper()
	r.runtime.Stop()
	r.must(r.client.Close())
}

// restart stops the runtime and starts another one.
func (r *rig) restart() {
	r.Helper()
	r.stop()
	r.start()
}

// Upstream returns the fake for every node that is there.
func (r *rig) Upstream(_ context.Context, _ workspace.OwnerID, _ workspace.NodeID) (hermes.Upstream, error) {
	if r.gone.Load() {
		return nil, runtime.ErrNoNode
	}
	return r.client, nil
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// enable gives an owner an account.
func (r *rig) enable(owner workspace.OwnerID) {
	r.Helper()
	user := account.User{ID: string(owner), Username: string(owner), Role: account.RoleUser, Enabled: true}
	r.must(r.store.Accounts().AddUser(context.Background(), account.Record{User: user, Key: string(owner)}))
}

// agent returns Ann's agent of that letter.
func (r *rig) agent(letter string) workspace.Agent {
	r.Helper()
	if a, ok := r.agents[letter]; ok {
		return a
	}
	r.agents[letter] = r.agentOf(ann, letter)
	return r.agents[letter]
}

func (r *rig) agentOf(owner workspace.OwnerID, letter string) workspace.Agent {
	r.Helper()
	profile := strings.ToLower(letter)
	a, err := r.store.CreateAgent(context.Background(), owner, workspace.NewAgent{
		Name: workspace.Some(letter), Profile: workspace.Some(profile), Instructions: workspace.Some("rules of " + letter),
	}, func(context.Context) ([]workspace.Source, error) {
		return []workspace.Source{{NodeID: workspace.LocalNode, Profile: profile}}, nil
	})
	r.must(err)
	return a
}

// direct returns the direct chat of an agent of Ann's.
func (r *rig) direct(letter string) workspace.ConversationID {
	r.Helper()
	return r.directOf(ann, r.agent(letter))
}

func (r *rig) directOf(owner workspace.OwnerID, a workspace.Agent) workspace.ConversationID {
	r.Helper()
	list, err := r.store.Conversations(context.Background(), owner)
	r.must(err)
	for _, c := range list.Conversations {
		if c.Kind == workspace.Direct && c.AdministratorID == a.ID {
			return c.ID
		}
	}
	r.Fatal("the agent has no direct chat")
	return ""
}

// group creates a group of Ann's; the first member administers it.
func (r *rig) group(mode workspace.Mode, members string, automatic string, limit int) workspace.ConversationID {
	r.Helper()
	ids := r.ids(members)
	c, err := r.store.CreateGroup(context.Background(), ann, workspace.NewGroup{
		Name: workspace.Some("group"), MemberIDs: workspace.Some(ids), AdministratorID: workspace.Some(ids[0]), Mode: workspace.Some(mode),
		AutoReplyIDs: workspace.Some(r.ids(automatic)), MaxReplyRounds: workspace.Some(limit), Instructions: workspace.Some("rules of the group"),
	})
	r.must(err)
	return c.ID
}

// ids returns the ids of agents by their letters.
func (r *rig) ids(letters string) []workspace.AgentID {
	r.Helper()
	ids := []workspace.AgentID{}
	for _, letter := range letters {
		ids = append(ids, r.agent(string(letter)).ID)
	}
	return ids
}

// edit edits a conversation of Ann's and wakes the scheduler, as the API does.
func (r *rig) edit(id workspace.ConversationID, p workspace.ConversationPatch) {
	r.Helper()
	_, stopped, err := r.store.EditConversation(context.Background(), ann, id, p)
	r.must(err)
	r.runtime.Interrupt(stopped.Interrupt)
	r.runtime.Wake()
}

// send sends a message of Ann's, as the API does.
func (r *rig) send(to workspace.ConversationID, text string, files ...workspace.FileID) workspace.Run {
	r.Helper()
	return r.sendAs(ann, to, text, files...)
}

func (r *rig) sendAs(owner workspace.OwnerID, to workspace.ConversationID, text string, files ...workspace.FileID) workspace.Run {
	r.Helper()
	r.sent++
	run, err := r.store.Send(context.Background(), owner, to, workspace.SendMessage{
		RequestID: workspace.Some(workspace.RequestID(fmt.Sprintf("00000000-0000-4000-8000-%012d", r.sent))),
		Content:   workspace.Some(text), FileIDs: workspace.Some(files),
	})
	r.must(err)
	r.runtime.Wake()
	return run
}

// stopRun stops a run of Ann's, as the API does.
func (r *rig) stopRun(id workspace.RunID) {
	r.Helper()
	stopped, err := r.store.StopRun(context.Background(), ann, id)
	r.must(err)
	r.runtime.Interrupt(stopped.Interrupt)
	r.runtime.Wake()
}

// stopMember stops a member of a chat of Ann's, as the API does.
func (r *rig) stopMember(chat workspace.ConversationID, letter string) {
	r.Helper()
	stopped, err := r.store.StopMember(context.Background(), ann, chat, r.agent(letter).ID)
	r.must(err)
	r.runtime.Interrupt(stopped.Interrupt)
	r.runtime.Wake()
}

// reconcile checks the uncertain tasks of a run of Ann's, as the API does.
func (r *rig) reconcile(id workspace.RunID) {
	r.Helper()
	tasks, err := r.store.UncertainTasks(context.Background(), ann, id)
	r.must(err)
	r.runtime.Check(tasks)
}

// respond answers a question of Ann's, as the API does.
func (r *rig) respond(id workspace.InteractionID, answer string) error {
	r.Helper()
	ctx := context.Background()
	question, call, err := r.store.Respond(ctx, ann, id, workspace.AnswerInteraction{Answer: workspace.Some(answer)}, r.runtime.Online)
	if err != nil || !call {
		return err
	}
	outcome := workspace.Interaction.Sent
	failure := r.runtime.Answer(ctx, ann, question)
	if errors.Is(failure, runtime.ErrRejected) {
		outcome = workspace.Interaction.Rejected
	} else if failure != nil {
		outcome = workspace.Interaction.Lost
	}
	if _, err := r.store.Responded(ctx, ann, id, outcome); err != nil {
		return err
	}
	r.runtime.Wake()
	return failure
}

// detail returns a chat of Ann's as clients see it.
func (r *rig) detail(id workspace.ConversationID) store.ConversationDetail {
	r.Helper()
	d, err := r.store.Conversation(context.Background(), ann, id)
	r.must(err)
	return d
}

// status returns the state of a run of Ann's.
func (r *rig) status(run workspace.Run) workspace.RunStatus {
	r.Helper()
	return r.run(run).Status
}

// run returns a run of Ann's by the newest of its events.
func (r *rig) run(run workspace.Run) workspace.Run {
	r.Helper()
	for {
		page, err := r.store.Events(context.Background(), ann, r.cursor, workspace.EventPage)
		r.must(err)
		if len(page.Events) == 0 {
			break
		}
		r.cursor = page.Cursor
		for _, e := range page.Events {
			var known workspace.Run
			if e.Type == workspace.EventRun && decode(e.Data, &known) {
				r.runs[known.ID] = known
			}
		}
	}
	known, ok := r.runs[run.ID]
	if !ok {
		r.Fatalf("run %s has no event", run.ID)
	}
	return known
}

// events returns all events of Ann's.
func (r *rig) events() []workspace.Event {
	r.Helper()
	var events []workspace.Event
	for after := int64(0); ; {
		page, err := r.store.Events(context.Background(), ann, after, workspace.EventPage)
		r.must(err)
		if len(page.Events) == 0 {
			return events
		}
		events, after = append(events, page.Events...), page.Cursor
	}
}

// until lets time pass until something holds.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	for range 20_000 {
		synctest.Wait()
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.Fatalf("it never came to this: %s", what)
}

// ends waits for the end of a run and fails unless it is the given one.
func (r *rig) ends(run workspace.Run, want workspace.RunStatus) {
	r.Helper()
	r.until("the end of the run", func() bool { return r.status(run).Terminal() })
	if got := r.run(run); got.Status != want {
		r.Errorf("the run is %s (%s), want %s", got.Status, got.Error, want)
	}
}

// becomes waits until a run is in a state.
func (r *rig) becomes(run workspace.Run, want workspace.RunStatus) {
	r.Helper()
	r.until("the run is "+string(want), func() bool { return r.status(run) == want })
}

// reached waits until a turn stands at a gate.
func (r *rig) reached(gates ...*hermestest.Gate) {
	r.Helper()
	for _, gate := range gates {
		select {
		case <-gate.Reached():
		case <-time.After(time.Hour):
			r.Fatal("no turn came to the gate")
		}
	}
	synctest.Wait()
}

// prompts returns the letters of the agents that were prompted, in order.
func (r *rig) prompts() string {
	r.Helper()
	names := ""
	for _, p := range r.fake.Prompts() {
		names += strings.ToUpper(p.Profile)
	}
	return names
}

// prompt returns the text of the n-th prompt of an agent, counted from 0.
func (r *rig) prompt(letter string, n int) string {
	r.Helper()
	for _, p := range r.fake.Prompts() {
		if p.Profile != strings.ToLower(letter) {
			continue
		}
		if n == 0 {
			return strings.ReplaceAll(p.Text, "\u2060", "") // made inert
		}
		n--
	}
	r.Fatalf("%s was not prompted so often", letter)
	return ""
}

// says returns the visible messages of a chat as "speaker: text" or, if they are
// not complete, "speaker: text (state)".
func (r *rig) says(id workspace.ConversationID) []string {
	r.Helper()
	lines := []string{}
	for _, m := range r.detail(id).Messages {
		who := m.AgentName
		if m.Role != workspace.RoleAssistant {
			who = string(m.Role)
		}
		line := who + ": " + m.Content
		if m.Status != workspace.MessageComplete {
			line += " (" + string(m.Status) + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// wantSays fails unless the chat has these visible messages.
func (r *rig) wantSays(id workspace.ConversationID, want ...string) {
	r.Helper()
	if got := r.says(id); !slices.Equal(got, want) {
		r.Errorf("the chat has\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// answers makes the next turns of an agent answer these texts.
func (r *rig) answers(letter string, texts ...string) {
	r.Helper()
	for _, text := range texts {
		r.fake.Script(strings.ToLower(letter), hermestest.Complete(text))
	}
}

// script sets what the next turn of an agent does.
func (r *rig) script(letter string, steps ...hermestest.Step) {
	r.Helper()
	r.fake.Script(strings.ToLower(letter), steps...)
}

// memory keeps files of tests.
type memory struct {
	mu    sync.Mutex
	bytes map[string][]byte
	held  atomic.Bool
}

func newMemory() *memory { return &memory{bytes: make(map[string][]byte)} }

// Read returns the bytes of a file.
func (m *memory) Read(_ context.Context, owner workspace.OwnerID, path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.bytes[string(owner)+"/"+path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

// hold makes the next Keep wait for the end of its context.
func (m *memory) hold() { m.held.Store(true) }

// Keep stores the bytes of a file.
func (m *memory) Keep(ctx context.Context, owner workspace.OwnerID, data []byte) (string, string, error) {
	if m.held.Swap(false) {
		<-ctx.Done()
		return "", "", ctx.Err()
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes[string(owner)+"/"+digest] = data
	return digest, digest, nil
}

// forget loses all files.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.bytes)
}
