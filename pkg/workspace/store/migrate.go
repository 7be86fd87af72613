package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrNewer says that the database was written by a newer version of the program.
var ErrNewer = errors.New("the database was written by a newer version of this program")

// migrate brings the database to the schema of this program. Each step is one
// transaction, so that a process that dies leaves the last whole one.
func migrate(ctx context.Context, p *pool) error {
	steps, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, p.db, steps, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	has, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of the schema: %w", err)
	}
	if has > knows {
		return fmt.Errorf("%w: it has schema %d, and this one knows %d\nhint: install the newer version again, or restore a backup that this one wrote", ErrNewer, has, knows)
	}
	if has == knows {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating the database from schema %d to %d: %w", has, knows, err)
	}
	return nil
}
