package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// SweepAge is how old bytes must be that nothing refers to before they are
// swept: no upload takes that long (section 9.5).
const SweepAge = 24 * time.Hour

// Sweep removes staged bytes, and bytes of files for which known is false, that
// are older than [SweepAge]. They are what a crash left. It returns how many it
// removed.
func (d *Dir) Sweep(ctx context.Context, now time.Time, known func(ctx context.Context, owner, name string) (bool, error)) (removed int, err error) {
	sweep := sweep{dir: d, ctx: ctx, before: now.Add(-SweepAge)}
	err = errors.Join(
		sweep.folder(stagingName, func(string) (bool, error) { return false, nil }),
		sweep.owners(known),
	)
	if err != nil {
		return sweep.removed, fmt.Errorf("sweeping the directory of files: %w", err)
	}
	return sweep.removed, nil
}

// sweep is one pass.
type sweep struct {
	dir     *Dir
	ctx     context.Context
	before  time.Time
	removed int
}

func (s *sweep) owners(known func(ctx context.Context, owner, name string) (bool, error)) error {
	owners, err := s.list(filesName)
	if err != nil {
		return err
	}
	var failed error
	for _, owner := range owners {
		if !owner.IsDir() {
			continue
		}
		failed = errors.Join(failed, s.folder(path.Join(filesName, owner.Name()), func(name string) (bool, error) {
			return known(s.ctx, owner.Name(), name)
		}))
	}
	return failed
}

func (s *sweep) list(folder string) ([]fs.DirEntry, error) {
	return fs.ReadDir(s.dir.root.FS(), folder)
}

func (s *sweep) folder(folder string, known func(name string) (bool, error)) error {
	entries, err := s.list(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if err := s.entry(folder, entry, known); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweep) entry(folder string, entry fs.DirEntry, known func(name string) (bool, error)) error {
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.ModTime().After(s.before)) {
		return nil
	}
	if err != nil {
		return err
	}
	has, err := known(entry.Name())
	if err != nil || has {
		return err
	}
	err = s.dir.root.Remove(path.Join(folder, entry.Name()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		s.removed++
	}
	return err
}
