package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Ensures that a backup that is made while others write is whole, private, opens
// as a database with everything that was acknowledged before, and replaces no
// file.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
	mustSend(t, s, ann, direct.ID, text(0, "before"))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	started := make(chan struct{})
	group.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			if _, err := s.Send(context.Background(), ann, direct.ID, text(n, "meanwhile")); err != nil {
				t.Error(err)
			}
			if n == 10 {
				close(started)
			}
		}
	})
	<-started
	dir := filepath.Join(t.TempDir(), "restored ? #%41") // a name that is no URI
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	cancel()
	group.Wait()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("beside the backup there is %v, %v", entries, err)
	}
	if err := s.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second backup to the same path says %v", err)
	}
	restored := mustOpen(t, inDir(dir))
	if err := restored.Check(t.Context()); err != nil {
		t.Error(err)
	}
	d := mustDetail(t, restored, ann, direct.ID)
	if len(d.Messages) < 11 || len(d.Messages) > len(mustEvents(t, restored, ann, 0)) {
		t.Errorf("the backup has %d messages", len(d.Messages))
	}
	mustSend(t, restored, ann, direct.ID, text(100_000, "after"))
}

// Ensures that a backup that cannot be finished leaves nothing behind.
func TestBackup_FailsWhole(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ctx, filepath.Join(dir, "b")); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled backup says %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("it leaves %v, %v", entries, err)
	}
	if err := s.Backup(t.Context(), filepath.Join(dir, "none", "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a backup to nowhere says %v", err)
	}
}

// Ensures that the check finds a damaged index and a row that refers to nothing.
func TestCheck_FindsDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		// An index that lacks the entries of its definition.
		"index": `PRAGMA writable_schema = ON;
			UPDATE sqlite_schema SET sql = replace(sql, 'hidden = 1', 'hidden = 0') WHERE name = 'message_hidden'`,
		"reference": `UPDATE message SET conversation_id = 'nowhere'`,
	} {
		dir := filepath.Join(t.TempDir(), "workspace")
		s := mustOpen(t, inDir(dir))
		direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID)
		mustSend(t, s, ann, direct.ID, text(0, "hello"))
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wreck(t, filepath.Join(dir, FileName), damage)
		if err := mustOpen(t, inDir(dir)).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: the check says %v", name, err)
		}
	}
}

// wreck damages a database that nobody has open.
func wreck(t *testing.T, path, damage string) {
	t.Helper()
	db, err := sql.Open("sqlite", uri(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := db.ExecContext(t.Context(), damage); err != nil {
		t.Fatal(err)
	}
}

// Ensures that an empty directory gets the newest schema, and that opening again
// changes nothing.
func TestMigrate_FromNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "workspace")
	for range 2 {
		s := mustOpen(t, inDir(dir))
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if n := count(t, s, `SELECT count(*) FROM goose_db_version WHERE version_id > 0`); n != 5 {
			t.Errorf("%d migrations were applied", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensures that of several programs that start at once on an empty directory each
// finds a whole schema.
func TestMigrate_SeveralAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			s, err := Open(context.Background(), Options{Dir: dir})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Agents(context.Background(), ann); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// Ensures that an older schema is brought up to date with its rows.
func TestMigrate_FromAnOlderSchema(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	s := mustOpen(t, inDir(dir))
	mustAgent(t, s, ann, "A")
	mustExec(t, s, ann, `DROP TABLE session_context`)
	mustExec(t, s, ann, `DROP TABLE selected_voice`)
	mustExec(t, s, ann, `DROP TABLE secret`)
	mustExec(t, s, ann, `DROP TABLE node`)
	mustExec(t, s, ann, `DELETE FROM goose_db_version WHERE version_id = 5`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, inDir(dir))
	if agents, err := s.Agents(t.Context(), ann); err != nil || len(agents) != 1 {
		t.Errorf("the agents are %+v, %v", agents, err)
	}
	if nodes, err := s.Nodes(t.Context(), ann); err != nil || len(nodes) != 0 {
		t.Errorf("the nodes are %+v, %v", nodes, err)
	}
}

// Ensures that a schema newer than the program knows stops the start with what
// to do, and leaves the database as it is.
func TestMigrate_RefusesANewerSchema(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	s := mustOpen(t, inDir(dir))
	mustExec(t, s, ann, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Dir: dir})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "schema 99") || !strings.Contains(err.Error(), "hint:") {
		t.Errorf("Open says %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || string(before) != string(after) {
		t.Errorf("the database was changed: %v", err)
	}
}
