package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/workspace"
)

// The owners of tests.
const (
	ann workspace.OwnerID = "11111111-1111-4111-8111-111111111111"
	bob workspace.OwnerID = "22222222-2222-4222-8222-222222222222"
)

// clock is a clock that stands still until it is moved. It counts from a time
// at which milliseconds are whole.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(1_760_000_000_000)
	return c
}

func (c *clock) now() time.Time           { return time.UnixMilli(c.ms.Load()) }
func (c *clock) millis() workspace.Millis { return workspace.Millis(c.ms.Load()) }
func (c *clock) advance(d time.Duration)  { c.ms.Add(d.Milliseconds()) }

// mustOpen opens a store in a directory of the test and closes it with it.
func mustOpen(t testing.TB, opts ...func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: filepath.Join(t.TempDir(), "workspace")}
	for _, set := range opts {
		set(&o)
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func withClock(c *clock) func(*Options) { return func(o *Options) { o.Now = c.now } }
func inDir(dir string) func(*Options)   { return func(o *Options) { o.Dir = dir } }

// id returns a UUID that is the same for the same number.
func id[ID ~string](n int) ID { return ID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

func sources(context.Context) ([]workspace.Source, error) {
	return []workspace.Source{{NodeID: workspace.LocalNode, Profile: "default"}}, nil
}

func newAgent(name string) workspace.NewAgent {
	return workspace.NewAgent{Name: workspace.Some(name), Profile: workspace.Some("default")}
}

func mustAgent(t testing.TB, s *Store, owner workspace.OwnerID, name string) workspace.Agent {
	t.Helper()
	a, err := s.CreateAgent(context.Background(), owner, newAgent(name), sources)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustList(t testing.TB, s *Store, owner workspace.OwnerID) ConversationList {
	t.Helper()
	list, err := s.Conversations(context.Background(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// mustDirect returns the direct chat of an agent.
func mustDirect(t testing.TB, s *Store, owner workspace.OwnerID, agent workspace.AgentID) workspace.ConversationSummary {
	t.Helper()
	for _, c := range mustList(t, s, owner).Conversations {
		if c.Kind == workspace.Direct && c.AdministratorID == agent {
			return c
		}
	}
	t.Fatalf("agent %s has no direct chat", agent)
	return workspace.ConversationSummary{}
}

// mustGroup creates a group whose first member is its administrator.
func mustGroup(t testing.TB, s *Store, owner workspace.OwnerID, mode workspace.Mode, members ...workspace.Agent) workspace.ConversationSummary {
	t.Helper()
	ids := make([]workspace.AgentID, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	c, err := s.CreateGroup(context.Background(), owner, workspace.NewGroup{
		Name:            workspace.Some("team"),
		MemberIDs:       workspace.Some(ids),
		AdministratorID: workspace.Some(ids[0]),
		Mode:            workspace.Some(mode),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// text is a message of text alone with the request id of the number.
func text(n int, content string) workspace.SendMessage {
	return workspace.SendMessage{RequestID: workspace.Some(id[workspace.RequestID](n)), Content: workspace.Some(content)}
}

func mustSend(t testing.TB, s *Store, owner workspace.OwnerID, to workspace.ConversationID, in workspace.SendMessage) workspace.Run {
	t.Helper()
	run, err := s.Send(context.Background(), owner, to, in)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func mustDetail(t testing.TB, s *Store, owner workspace.OwnerID, c workspace.ConversationID) ConversationDetail {
	t.Helper()
	d, err := s.Conversation(context.Background(), owner, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// mustEvents returns all events of an owner after a sequence.
func mustEvents(t testing.TB, s *Store, owner workspace.OwnerID, after int64) []workspace.Event {
	t.Helper()
	var events []workspace.Event
	for {
		page, err := s.Events(context.Background(), owner, after, workspace.EventPage)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			return events
		}
		events = append(events, page.Events...)
		after = page.Cursor
	}
}

// types returns the types of events as one line.
func types(events []workspace.Event) string {
	var words []string
	for _, e := range events {
		words = append(words, strings.TrimSuffix(string(e.Type), ".changed"))
	}
	return strings.Join(words, " ")
}

// wantCode fails the test unless err has the code.
func wantCode(t testing.TB, err error, code workspace.Code) {
	t.Helper()
	if workspace.CodeOf(err) != code {
		t.Errorf("the error is %v, want code %q", err, code)
	}
}

// mustExec runs a statement of the test in a transaction of the owner.
func mustExec(t testing.TB, s *Store, owner workspace.OwnerID, query string, args ...any) {
	t.Helper()
	if err := s.write(context.Background(), owner, "test", func(t *tx) error {
		_, err := t.exec(query, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// count returns the number that a query finds.
func count(t testing.TB, s *Store, query string, args ...any) (n int) {
	t.Helper()
	if err := s.read(context.Background(), "test", func(v view) (err error) {
		n, err = one(v, scalar[int], query, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// Ensures that the data directory and all files in it are closed to others
// (section 9.2), and that a directory or database that others may read is
// refused with a hint instead of used.
func TestOpen_NothingIsOpenToOthers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	s := mustOpen(t, inDir(dir))
	mustAgent(t, s, ann, "Ann")
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 5 {
		t.Fatalf("the directory holds %v, %v", entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", entry.Name(), info.Mode(), err)
		}
	}
	for path, mode := range map[string]fs.FileMode{"": 0o755, FileName: 0o640, KeyName: 0o604} {
		closed := filepath.Join(t.TempDir(), "workspace")
		if err := mustOpen(t, inDir(closed)).Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(closed, path), mode); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), Options{Dir: closed})
		if err == nil || !strings.Contains(err.Error(), "hint: chmod") {
			t.Errorf("with %q at mode %#o Open says %v", path, mode, err)
		}
	}
}

// Ensures that each connection has the settings that durability and integrity
// rest on, whenever it was opened, and that readers cannot write.
func TestOpen_EveryConnectionHasItsSettings(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "trusted_schema": "0"}
	for kind, p := range map[string]*pool{"writer": s.writer, "reader": s.readers} {
		want["busy_timeout"] = map[string]string{"writer": milliseconds(busyStep), "reader": milliseconds(busyTimeout)}[kind]
		var taken []*conn
		for range cap(p.slots) {
			c, err := p.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, c)
			for pragma, value := range want {
				var got string
				if err := c.raw.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != value {
					t.Errorf("a %s has %s = %q, %v", kind, pragma, got, err)
				}
			}
			_, err = c.exec(t.Context(), `DELETE FROM agent`)
			if (err == nil) != (kind == "writer") {
				t.Errorf("a %s that writes gets %v", kind, err)
			}
		}
		for _, c := range taken {
			p.give(c)
		}
	}
}

// Ensures that a setting that SQLite does not take stops the start.
func TestAssertSettings_FindsWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	c, err := s.readers.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.readers.discard(c) }()
	if _, err := c.raw.ExecContext(t.Context(), "PRAGMA synchronous = NORMAL"); err != nil {
		t.Fatal(err)
	}
	if err := assertSettings(t.Context(), c.raw, readOnly); err == nil || !strings.Contains(err.Error(), "synchronous") {
		t.Errorf("the settings are said to hold: %v", err)
	}
}

// Ensures that a transaction that fails or panics leaves nothing, and that its
// connection goes on working.
func TestWrite_AllOrNothing(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	before := mustList(t, s, ann)
	broken := errors.New("broken")
	insert := func(t *tx) error {
		if err := t.changed(workspace.NodesChanged()); err != nil {
			return err
		}
		_, err := t.exec(`INSERT INTO selected_voice (owner, voice_id) VALUES (?, 'v')`, t.owner)
		return err
	}
	err := s.write(t.Context(), ann, "failing", func(t *tx) error { return errors.Join(insert(t), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("the failed write says %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.write(t.Context(), ann, "panicking", func(t *tx) error {
			_ = insert(t)
			panic("on purpose")
		})
	}()
	if n := count(t, s, `SELECT (SELECT count(*) FROM selected_voice) + (SELECT count(*) FROM event)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if after := mustList(t, s, ann); after.Cursor != before.Cursor {
		t.Errorf("the cursor went from %d to %d", before.Cursor, after.Cursor)
	}
	mustAgent(t, s, ann, "Ann")
}

// Ensures that a canceled call waits for nothing, and that a closed store says
// so instead of hanging.
func TestWrite_CanceledAndClosed(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	busy, err := s.writer.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.CreateAgent(ctx, ann, newAgent("Ann"), sources); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled write says %v", err)
	}
	s.writer.give(busy)
	other := mustOpen(t)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Agents(t.Context(), ann); !errors.Is(err, errClosed) {
		t.Errorf("a closed store says %v", err)
	}
}

// waiting reports whether somebody waits for the owner's events.
func (w *wakes) waiting(owner workspace.OwnerID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.owners[owner]
	return ok && t.next != nil
}

// waitFor gives other goroutines the processor until the condition holds.
func waitFor(t testing.TB, holds func() bool) {
	t.Helper()
	for !holds() {
		if t.Context().Err() != nil {
			t.Fatal("it never came to be")
		}
		runtime.Gosched()
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Ensures that a write waits for another process's until its context ends, and is
// made once the other is done.
func TestWrite_WaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	s, other := mustOpen(t, inDir(dir)), mustOpen(t, inDir(dir))
	held, err := other.writer.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.exec(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*busyStep)
	defer cancel()
	write := func(ctx context.Context) error { return s.write(ctx, ann, "writing", func(*tx) error { return nil }) }
	if err := write(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("while the other writes: %v, %v", err, ctx.Err())
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { err = write(t.Context()) })
	if _, err := held.exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	other.writer.give(held)
	waiting.Wait()
	if err != nil {
		t.Errorf("after the other: %v", err)
	}
}

// Ensures that what asks once for a lock, as opening and migrating do, waits for
// another process as long as everything else: a connection has the long wait until
// the writer takes it.
func TestOpen_WaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	for _, a := range []access{readWrite, readOnly} {
		db, err := sql.Open("sqlite", dataSource(filepath.Join(s.opts.Dir, FileName), a))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&got); err != nil || got != milliseconds(busyTimeout) {
			t.Errorf("a new connection waits for %s ms, %v", got, err)
		}
	}
}
