// Package passage finds the passages of public files that may answer a question,
// without a model.
//
// Every file is listed and read through the confined reader, so that nothing
// can be found that could not be read. What was read is kept in a full-text
// index in memory (SQLite FTS5) and ranked by BM25. English is matched by word
// stems; Chinese, Japanese and Korean, which are written without spaces or with
// endings on every word, by pairs of neighbouring characters.
//
// A question is data. No character of it reaches the index as query syntax.
package passage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/newos4/relay/pkg/sandbox"
)

// Passage is a range of lines that belong together.
type Passage struct {
	// Path names the file as in [sandbox.Entry].
	Path string
	// First and Last are the range, counted from 1 and both included.
	First, Last int
	// Text is the lines, joined by line feeds and made visible.
	Text string
}

// Files is what of a [sandbox.Reader] is used.
type Files interface {
	List(ctx context.Context, dir string) (sandbox.Listing, error)
	Read(ctx context.Context, path string, first, last int) (sandbox.Excerpt, error)
}

// Defaults of [Options].
const (
	DefaultCheckEvery = 30 * time.Second
	DefaultMaxAge     = 10 * time.Minute
	DefaultMaxFiles   = 2000
	DefaultMaxBytes   = 16 << 20
)

// Options says what is indexed, and how fresh it is.
type Options struct {
	// Files are indexed.
	Files Files
	// Now is the clock. Nil stands for [time.Now].
	Now func() time.Time
	// CheckEvery is how long a listing of the files is taken for current. When
	// the next one has other paths or sizes, all is indexed anew.
	CheckEvery time.Duration
	// MaxAge is how old the index may grow while the listing stays the same,
	// which it does when a file is changed in place.
	MaxAge time.Duration
	// MaxFiles is how many files are indexed; those that come later in the order
	// of the walk are passed over.
	MaxFiles int
	// MaxBytes is how many bytes of text are indexed in all.
	MaxBytes int
	// Closed, unless nil, reports whether a passage must not be quoted. Such a
	// passage is passed over, so that it does not spoil an answer that quotes
	// others beside it.
	Closed func(text string) bool
}

// Index finds passages. It builds itself when it is first asked. Its methods
// may be called at the same time; questions are served one by one.
type Index struct {
	files                Files
	now                  func() time.Time
	checkEvery, maxAge   time.Duration
	maxFiles, maxBytes   int
	closed               func(string) bool
	turn                 chan struct{} // held by the one question under way, and what follows is its
	table                *table        // nil until it is built
	listed               []file
	checkedAt, indexedAt time.Time
}

// New returns an index of nothing yet. Zero options take their defaults.
func New(o Options) *Index {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Index{
		files:      o.Files,
		now:        o.Now,
		checkEvery: positive(o.CheckEvery, DefaultCheckEvery),
		maxAge:     positive(o.MaxAge, DefaultMaxAge),
		maxFiles:   positive(o.MaxFiles, DefaultMaxFiles),
		maxBytes:   positive(o.MaxBytes, DefaultMaxBytes),
		closed:     o.Closed,
		turn:       make(chan struct{}, 1),
	}
}

func positive[T int | time.Duration](value, preset T) T {
	if value > 0 {
		return value
	}
	return preset
}

// Search returns at most n passages that have enough of the question's words in
// common with it, the best first; none when there is no such passage. It brings
// the index up to date before, which reads the files, and fails when the reader
// or the index does.
func (x *Index) Search(ctx context.Context, question string, n int) ([]Passage, error) {
	terms := termsOf(question)
	if len(terms) == 0 || n <= 0 {
		return nil, nil
	}
	if err := x.acquire(ctx); err != nil {
		return nil, err
	}
	defer x.release()
	if err := x.refresh(ctx); err != nil {
		return nil, fmt.Errorf("indexing the readable files: %w", err)
	}
	found, err := x.table.search(ctx, terms, n)
	if err != nil {
		// The table may have gone with its connection.
		return nil, fmt.Errorf("searching the index: %w", errors.Join(err, x.drop()))
	}
	return found, nil
}

// Close waits for the question under way and frees the index. It does not close
// the reader. The index can be used again and is then built again.
func (x *Index) Close() error {
	x.turn <- struct{}{}
	defer x.release()
	return x.drop()
}

func (x *Index) acquire(ctx context.Context) error {
	select {
	case x.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Index) release() { <-x.turn }

// drop frees the table.
func (x *Index) drop() error {
	if x.table == nil {
		return nil
	}
	gone := x.table
	x.table = nil
	return gone.close()
}

// refresh builds the table unless there is one of the files as they are.
func (x *Index) refresh(ctx context.Context) error {
	now := x.now()
	tooOld := now.Sub(x.indexedAt) >= x.maxAge
	if x.table != nil && !tooOld && now.Sub(x.checkedAt) < x.checkEvery {
		return nil
	}
	listed, err := x.list(ctx)
	if err != nil {
		return err
	}
	x.checkedAt = now
	if x.table != nil && !tooOld && slices.Equal(listed, x.listed) {
		return nil
	}
	if err := x.drop(); err != nil {
		return err
	}
	x.table, err = x.build(ctx, listed)
	x.listed, x.indexedAt = listed, now
	return err
}

// build reads the listed files and indexes their passages.
func (x *Index) build(ctx context.Context, listed []file) (*table, error) {
	var passages []section
	room := x.maxBytes
	for _, f := range listed {
		lines, err := x.read(ctx, f.path, &room)
		if err != nil {
			return nil, err
		}
		for _, found := range split(f.path, lines) {
			if x.closed == nil || !x.closed(found.Text) {
				passages = append(passages, found)
			}
		}
	}
	return newTable(ctx, passages)
}
