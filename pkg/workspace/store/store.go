package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/newos4/relay/pkg/secretfile"
	"github.com/newos4/relay/pkg/workspace"
)

// defaultReaders is how many reads go on at once.
const defaultReaders = 4

// Options says where the data is. Only Dir is required.
type Options struct {
	// Dir is the data directory. It is made with mode 0700 unless it is there.
	Dir string
	// Readers is how many reads may go on at once; 0 means 4.
	Readers int
	// Now is the clock; nil means the system's.
	Now func() time.Time
	// NewID returns a fresh lower-case UUID; nil means random ones that grow
	// with time.
	NewID func() string
}

// Store is an open database. All methods may be called by many goroutines.
type Store struct {
	opts            Options
	writer, readers *pool
	sealer          sealer
	wakes           *wakes

	closing  sync.Once
	closeErr error

	// pruning guards prunedTo, the sequence up to which Prune has looked.
	pruning  sync.Mutex
	prunedTo int64
}

// Open opens the database in the directory, makes it when there is none, and
// brings its schema up to date. It returns [ErrNewer] for a schema that this
// program does not know, and an error for data that others may read. The caller
// closes the store.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts = withDefaults(opts)
	s, err := open(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("opening the workspace in %s: %w", opts.Dir, err)
	}
	return s, nil
}

func withDefaults(opts Options) Options {
	if opts.Readers <= 0 {
		opts.Readers = defaultReaders
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.NewID == nil {
		// Keys that grow with time keep an index's new entries together.
		opts.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	return opts
}

func open(ctx context.Context, opts Options) (*Store, error) {
	if err := prepareDir(opts.Dir); err != nil {
		return nil, err
	}
	key, err := secretfile.Load(filepath.Join(opts.Dir, KeyName))
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, sealer: sealer, wakes: newWakes(opts.Now)}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect opens both pools. The schema is brought up to date between them, since
// no reader may see an old one.
func (s *Store) connect(ctx context.Context) error {
	path := filepath.Join(s.opts.Dir, FileName)
	var err error
	if s.writer, err = newPool(path, readWrite, 1); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if s.readers, err = newPool(path, readOnly, s.opts.Readers); err != nil {
		return err
	}
	// The first connections are opened now, so that a setting that does not
	// hold stops the start.
	for _, p := range []*pool{s.writer, s.readers} {
		c, err := p.take(ctx)
		if err != nil {
			return err
		}
		p.give(c)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) (err error) {
	unlock, err := lockDir(s.opts.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return migrate(ctx, s.writer)
}

// Close waits for all transactions and closes the database. Later calls fail;
// closing again does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() {
		for _, p := range []*pool{s.readers, s.writer} {
			if p != nil {
				s.closeErr = errors.Join(s.closeErr, p.close())
			}
		}
	})
	return s.closeErr
}

func (s *Store) now() workspace.Millis { return workspace.Millis(s.opts.Now().UnixMilli()) }
