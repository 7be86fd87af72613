package store

import (
	"context"
	"database/sql"
	"errors"
)

// view is a snapshot of the database: all that is read through it is of one
// moment. It lives as long as one call, which is why it may carry a context.
type view struct {
	ctx context.Context
	c   *conn
}

// row is what a query found, to be scanned once.
type row interface{ Scan(into ...any) error }

// scanner reads one row into a value.
type scanner[T any] func(row) (T, error)

// all returns what the query finds. The result is never nil.
func all[T any](v view, scan scanner[T], query string, args ...any) ([]T, error) {
	found := []T{}
	err := each(v, func(r row) error {
		value, err := scan(r)
		found = append(found, value)
		return err
	}, query, args...)
	return found, err
}

// each calls visit with every row that the query finds.
func each(v view, visit func(row) error, query string, args ...any) (err error) {
	stmt, err := v.c.statement(v.ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(v.ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one returns the single row that the query finds, or [sql.ErrNoRows].
func one[T any](v view, scan scanner[T], query string, args ...any) (T, error) {
	stmt, err := v.c.statement(v.ctx, query)
	if err != nil {
		var none T
		return none, err
	}
	return scan(stmt.QueryRowContext(v.ctx, args...))
}

// scalar reads a row of one column.
func scalar[T any](r row) (T, error) {
	var value T
	err := r.Scan(&value)
	return value, err
}

// maybe turns a row that is not there into false.
func maybe[T any](value T, err error) (T, bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		var none T
		return none, false, nil
	}
	return value, err == nil, err
}
