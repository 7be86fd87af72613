package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// errClosed is what a closed store answers.
var errClosed = errors.New("the store is closed")

// conn is one connection with its prepared statements. One goroutine uses it at
// a time.
type conn struct {
	raw        *sql.Conn
	statements map[string]prepared
}

// prepared is a statement that lives as long as its connection.
type prepared struct{ *sql.Stmt }

// statement returns the query as a statement that is prepared once.
func (c *conn) statement(ctx context.Context, query string) (prepared, error) {
	if known, ok := c.statements[query]; ok {
		return known, nil
	}
	fresh, err := c.raw.PrepareContext(ctx, query)
	if err != nil {
		return prepared{}, err
	}
	c.statements[query] = prepared{fresh}
	return prepared{fresh}, nil
}

func (c *conn) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// finalize closes the statements. They must not outlive their connection.
func (c *conn) finalize() error {
	var errs []error
	for _, stmt := range c.statements {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

func (c *conn) close() error { return errors.Join(c.finalize(), c.raw.Close()) }

// pool lends connections of one kind. A slot without a connection gets one when
// it is taken.
type pool struct {
	db      *sql.DB
	access  access
	slots   chan *conn
	closing chan struct{}
}

func newPool(path string, a access, size int) (*pool, error) {
	db, err := sql.Open("sqlite", dataSource(path, a))
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(size)
	p := &pool{db: db, access: a, slots: make(chan *conn, size), closing: make(chan struct{})}
	for range size {
		p.slots <- nil
	}
	return p, nil
}

// take waits for a connection. Who took it calls give, or discard when it may
// be in a state that nobody knows.
func (p *pool) take(ctx context.Context) (*conn, error) {
	select {
	case <-p.closing:
		return nil, errClosed
	default:
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closing:
		return nil, errClosed
	case c := <-p.slots:
		if c != nil {
			return c, nil
		}
	}
	c, err := p.open(ctx)
	if err != nil {
		p.slots <- nil
		return nil, err
	}
	return c, nil
}

func (p *pool) open(ctx context.Context) (*conn, error) {
	raw, err := p.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening a connection: %w", err)
	}
	err = assertSettings(ctx, raw, p.access)
	if err == nil && p.access == readWrite {
		err = shortenWaits(ctx, raw)
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &conn{raw: raw, statements: make(map[string]prepared)}, nil
}

func (p *pool) give(c *conn) { p.slots <- c }

// discard closes the connection for good: a bad connection is not used again.
func (p *pool) discard(c *conn) error {
	err := c.finalize()
	_ = c.raw.Raw(func(any) error { return driver.ErrBadConn }) // the error is the one given
	p.slots <- nil
	return err
}

// close waits until all connections are given back and closes them. Whoever
// waits for one gets errClosed.
func (p *pool) close() error {
	close(p.closing)
	var errs []error
	for range cap(p.slots) {
		if c := <-p.slots; c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(append(errs, p.db.Close())...)
}
