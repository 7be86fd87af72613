package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Backup writes a consistent copy of the database to path, which must not exist,
// while others go on reading and writing. The copy is whole and durable under
// its name, or there is none; its mode is 0600. Without the key file beside the
// database its secrets cannot be read.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.backup(ctx, path); err != nil {
		return fmt.Errorf("backing up the workspace to %s: %w", path, err)
	}
	return nil
}

func (s *Store) backup(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return os.ErrExist
	}
	dir := filepath.Dir(path)
	temporary, err := os.CreateTemp(dir, ".backup-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, temporary.Close(), os.Remove(temporary.Name()))
	}()
	if err := s.copyTo(ctx, temporary.Name()); err != nil {
		return err
	}
	if err := temporary.Sync(); err != nil {
		return err
	}
	if err := checkFile(ctx, temporary.Name()); err != nil {
		return fmt.Errorf("checking the copy: %w", err)
	}
	// A link, unlike a renaming, replaces nothing.
	if err := os.Link(temporary.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// copyTo fills the empty file at path. The connection is one of its own: the
// readers may not write, not even another file, and the writer is to go on.
func (s *Store) copyTo(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dataSource(filepath.Join(s.opts.Dir, FileName), readWrite))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", path)
	return err
}

// Check looks for damage in the whole database and returns an error that names
// it. It takes as long as reading everything; others go on meanwhile.
func (s *Store) Check(ctx context.Context) error {
	if err := checkFile(ctx, filepath.Join(s.opts.Dir, FileName)); err != nil {
		return fmt.Errorf("checking the workspace: %w", err)
	}
	return nil
}

// checkFile checks the pages, indices and references of the database at path.
func checkFile(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", uri(path, url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, check := range []string{
		"SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
		"SELECT format('row %s of %s refers to a row of %s that is missing', rowid, \"table\", parent) FROM pragma_foreign_key_check",
	} {
		if err := nothingFound(ctx, db, check); err != nil {
			return err
		}
	}
	return nil
}

func nothingFound(ctx context.Context, db *sql.DB, check string) (err error) {
	rows, err := db.QueryContext(ctx, check)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		found = append(found, line)
	}
	if len(found) > 0 {
		return fmt.Errorf("the database is damaged: %s", strings.Join(found, "; "))
	}
	return rows.Err()
}
