package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/newos4/relay/pkg/workspace"
)

// tx is a write transaction of one owner.
type tx struct {
	view
	store *Store
	owner workspace.OwnerID
	now   workspace.Millis
	// last is the highest sequence of the events appended so far.
	last int64
}

func (t *tx) newID() string { return t.store.opts.NewID() }

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.c.exec(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insert runs a statement that adds a row and returns the row's number.
func (t *tx) insert(query string, args ...any) (int64, error) {
	result, err := t.c.exec(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// read runs do on a snapshot. what says in an error what was being done.
func (s *Store) read(ctx context.Context, what string, do func(view) error) error {
	return failed(what, transaction(ctx, s.readers, "BEGIN", do))
}

// peek is read for a single statement, which is a snapshot by itself.
func (s *Store) peek(ctx context.Context, what string, do func(view) error) error {
	c, err := s.readers.take(ctx)
	if err != nil {
		return failed(what, err)
	}
	defer s.readers.give(c)
	return failed(what, do(view{context.WithoutCancel(ctx), c}))
}

// write runs do in a transaction of the owner and makes it durable, or nothing
// of it. Once it is begun it no longer heeds ctx: it takes milliseconds, and a
// client that leaves must not cost the connection its state.
func (s *Store) write(ctx context.Context, owner workspace.OwnerID, what string, do func(*tx) error) error {
	if owner == "" {
		return failed(what, errors.New("a write without an owner"))
	}
	t := &tx{store: s, owner: owner, now: s.now()}
	err := transaction(ctx, s.writer, "BEGIN IMMEDIATE", func(v view) error {
		t.view = v
		return do(t)
	}, func() { s.wakes.publish(owner, t.last) })
	return failed(what, err)
}

// maintain is write for work on the rows of all owners. It appends no event.
func (s *Store) maintain(ctx context.Context, what string, do func(*tx) error) error {
	t := &tx{store: s, now: s.now()}
	return failed(what, transaction(ctx, s.writer, "BEGIN IMMEDIATE", func(v view) error {
		t.view = v
		return do(t)
	}))
}

// begun begins a transaction, once other processes let it.
func begun(ctx context.Context, c *conn, begin string) error {
	deadline := time.Now().Add(busyTimeout)
	for {
		_, err := c.exec(ctx, begin)
		if sqliteCode(err)&0xff != sqlite3.SQLITE_BUSY || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// transaction runs do between begin and COMMIT on a connection of the pool. What
// is to follow the commit is called before the next transaction of the same
// writer begins, so that it happens in the order of commits.
func transaction(ctx context.Context, p *pool, begin string, do func(view) error, committed ...func()) (err error) {
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	if err := begun(ctx, c, begin); err != nil {
		return errors.Join(err, p.discard(c)) // nobody knows whether it was begun
	}
	v := view{context.WithoutCancel(ctx), c}
	done := false
	defer func() {
		if !done { // by an error or a panic of do
			err = errors.Join(err, abandon(p, c))
		}
	}()
	if err := do(v); err != nil {
		return err
	}
	if _, err := c.exec(v.ctx, "COMMIT"); err != nil {
		return err
	}
	for _, follow := range committed {
		follow()
	}
	done = true
	p.give(c)
	return nil
}

// abandon rolls back and gives the connection back, or gives it up when that
// fails: after some failures SQLite has rolled back already, and a new
// connection is cheaper than knowing which.
func abandon(p *pool, c *conn) error {
	if _, err := c.exec(context.Background(), "ROLLBACK"); err != nil {
		return p.discard(c)
	}
	p.give(c)
	return nil
}

// failed says what was being done when err happened. An error with a code goes
// as it is; a full disk is made known as [unix.ENOSPC].
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*workspace.Error](err); ok {
		return err
	}
	if sqliteCode(err)&0xff == sqlite3.SQLITE_FULL {
		return fmt.Errorf("%s: %w: %w", what, unix.ENOSPC, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// sqliteCode returns SQLite's extended code of an error, or 0.
func sqliteCode(err error) int {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		return failure.Code()
	}
	return 0
}

// isTaken reports whether err says that a row with the same key is there.
func isTaken(err error) bool {
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}
