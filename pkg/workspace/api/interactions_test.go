package api_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/api"
)

// exec changes the database behind the store's back, as a runtime of another
// process would.
func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, "workspace.sqlite3")+"?_pragma=busy_timeout(5000)")
	if err == nil {
		_, err = db.ExecContext(f.Context(), query, args...)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		f.Fatal(err)
	}
}

// ask stores an open question of the run's first task and returns its id.
func (f *fixture) ask(run, kind string) string {
	f.Helper()
	id := uuid()
	f.exec(`INSERT INTO interaction (owner, id, conversation_id, run_id, task_id, agent_id, kind, resolved, response_state,
		upstream_request_id, created_at, message, choices, answer)
		SELECT owner, ?, conversation_id, run_id, id, agent_id, ?, 0, '', ?, 1, 'may I?', '["once","deny"]', ''
		FROM task WHERE run_id = ? LIMIT 1`, id, kind, "request-"+id, run)
	return id
}

func (f *fixture) idOf(name string) workspace.OwnerID {
	f.Helper()
	users, err := f.accounts.List(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	for _, u := range users {
		if u.Username == name {
			return workspace.OwnerID(u.ID)
		}
	}
	f.Fatalf("there is no %s", name)
	return ""
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// executor is a runtime that does as the test says.
type executor struct {
	mu      sync.Mutex
	online  bool
	err     error
	answers []string
	wakes   int
	stopped []workspace.Task
	checked []workspace.Task
}

func (e *executor) Wake() { e.mu.Lock(); defer e.mu.Unlock(); e.wakes++ }
func (e *executor) Interrupt(tasks []workspace.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = append(e.stopped, tasks...)
}
func (e *executor) Check(tasks []workspace.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checked = append(e.checked, tasks...)
}
func (e *executor) Online(workspace.Interaction) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.online
}
func (e *executor) Answer(_ context.Context, _ workspace.OwnerID, i workspace.Interaction) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = append(e.answers, i.Answer)
	return e.err
}

func withRuntime(e *executor) func(*api.Options) { return func(o *api.Options) { o.Runtime = e } }

// Ensures the order of checks of an answer, that the upstream is called once, and
// that a lost acknowledgement is never sent again (section 6.11).
func TestRespond(t *testing.T) {
	t.Parallel()
	e := &executor{}
	f := newFixture(t, withRuntime(e))
	c := f.as("ann")
	chat := c.direct(c.agent("Ann"))
	run := c.say(chat, "hello")
	answer := func(id string, text any) answer { return c.post("/interactions/"+id+"/respond", obj{"answer": text}) }

	id := f.ask(run, "approval")
	for _, text := range []any{"", nil, 5, repeated(16_001)} {
		answer(id, text).want(http.StatusBadRequest, "invalid_workspace_request")
	}
	answer(id, "once").want(http.StatusConflict, "interaction_offline")
	e.online = true
	answer(id, "perhaps").want(http.StatusBadRequest, "invalid_approval")
	e.err = api.ErrRejected
	answer(id, "deny").want(http.StatusConflict, "interaction_offline")
	if detail := c.get("/conversations/" + chat); detail.list("interactions")[0].(obj)["responseState"] != nil {
		t.Errorf("a rejected answer stays: %s", detail.body)
	}
	e.err = nil
	answer(id, "once").want(http.StatusOK)
	answer(id, "once").want(http.StatusOK)
	answer(id, "deny").want(http.StatusConflict, "interaction_answer_conflict")
	if !equal(e.answers, []string{"deny", "once"}) {
		t.Errorf("the upstream got %v", e.answers)
	}
	if detail := c.get("/conversations/" + chat); len(detail.list("interactions")) != 0 {
		t.Errorf("an answered question is open: %s", detail.body)
	}

	lost := f.ask(run, "clarification")
	e.err = errors.New("the connection was lost")
	answer(lost, "free text").want(http.StatusConflict, "interaction_uncertain")
	e.err = nil
	answer(lost, "free text").want(http.StatusConflict, "interaction_uncertain")
	if len(e.answers) != 3 {
		t.Errorf("the upstream got %v", e.answers)
	}
}

// Ensures that the runtime is woken by what creates or ends tasks, and is told
// which tasks to interrupt and to look at.
func TestRuntime_IsTold(t *testing.T) {
	t.Parallel()
	e := &executor{}
	f := newFixture(t, withRuntime(e))
	c := f.as("ann")
	agent := c.agent("Ann")
	run := c.say(c.direct(agent), "hello")
	if e.wakes != 1 {
		t.Errorf("after a message it was woken %d times", e.wakes)
	}
	f.exec(`UPDATE task SET status = 'uncertain', submitted = 1 WHERE run_id = ?`, run)
	c.post("/runs/"+run+"/reconcile", obj{}).want(http.StatusAccepted)
	c.post("/runs/"+run+"/stop", obj{}).want(http.StatusOK)
	if len(e.checked) != 1 || len(e.stopped) != 1 || string(e.stopped[0].RunID) != run || e.stopped[0].Owner != f.idOf("ann") {
		t.Errorf("it was told of %v and %v", e.checked, e.stopped)
	}
	c.patch("/agents/"+agent, obj{"archived": true}).want(http.StatusOK)
	if len(e.stopped) != 2 || e.wakes < 3 {
		t.Errorf("after archiving it was told of %v, woken %d times", e.stopped, e.wakes)
	}
}
