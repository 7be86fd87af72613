package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"math"
)

// Reader lists, reads and searches the files beneath its roots, through a
// confined child process. Its methods may be called at the same time; requests
// are served one by one.
type Reader struct {
	setup    setup
	report   Report
	log      *slog.Logger
	childArg string

	// life ends with Close, and every request with it.
	life context.Context
	end  context.CancelFunc

	// turn is held by the one request under way, and what follows is its.
	turn   chan struct{}
	child  *process // nil until a request needs one
	last   *process // the child before, perhaps not reaped yet
	served int      // requests that child has served
	nextID uint64
}

// Start checks what the kernel can enforce, starts a child and waits until it
// has confined itself and proved it. The context bounds the start alone.
//
// In [Strict] mode it fails with an [UnsupportedError] where a promise cannot be
// kept. In any mode it fails with [ErrNotConfined] where the kernel says that it
// enforces something and does not, and where a root is not one (see
// [Options.Roots]) or a limit is out of range. The caller closes the Reader.
func Start(ctx context.Context, o Options) (*Reader, error) {
	r, err := newReader(o)
	if err != nil {
		return nil, err
	}
	if r.child, err = r.start(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

func newReader(o Options) (*Reader, error) {
	limits, err := o.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	roots, deny, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if o.probe == nil {
		o.probe = probeKernel
	}
	kernel := o.probe()
	report := newReport(kernel)
	if missing := report.Missing(); len(missing) > 0 && o.Mode != BestEffort {
		return nil, &UnsupportedError{Missing: missing}
	}
	report.Notes = notes(roots, deny)
	r := &Reader{
		setup:    setup{Roots: roots, Deny: deny, Support: kernel, Limits: limits, CPUSeconds: cpuSeconds(limits)},
		report:   report,
		log:      o.Logger,
		childArg: o.childArg,
		turn:     make(chan struct{}, 1),
	}
	r.life, r.end = context.WithCancel(context.Background())
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.childArg == "" {
		r.childArg = childArg
	}
	return r, nil
}

// resolve follows the links in the paths and checks that the roots can be ones.
func (o Options) resolve() ([]rootSetup, []string, error) {
	deny, err := resolveDeny(o.Deny)
	if err != nil {
		return nil, nil, err
	}
	roots, err := resolveRoots(o.Roots, deny)
	return roots, deny, err
}

// DeniedBeneath returns the denied paths that lie beneath a root, where the
// reader's own rules keep them closed and the kernel does not, or the error with
// which [Start] would refuse the paths. It starts nothing and does not ask what
// the kernel can enforce.
func (o Options) DeniedBeneath() ([]string, error) {
	roots, deny, err := o.resolve()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, root := range roots {
		paths = append(paths, deniedBeneath(root, deny)...)
	}
	return paths, nil
}

func deniedBeneath(root rootSetup, deny []string) []string {
	var paths []string
	for _, path := range deny {
		if _, ok := beneath(path, root.Path); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// cpuSeconds is what a child may use in all: the time of each of its requests,
// and some to start with. One that was taken over and idles away the processor
// runs into it.
func cpuSeconds(l Limits) uint64 {
	each := (l.Time + answerGrace).Seconds()
	return uint64(math.Ceil(each*float64(l.Requests))) + 10
}

// notes warns of what the kernel cannot keep apart: Landlock allows a directory
// with all beneath it.
func notes(roots []rootSetup, deny []string) []string {
	var notes []string
	for _, root := range roots {
		for _, path := range deniedBeneath(root, deny) {
			notes = append(notes, fmt.Sprintf(
				"the denied %s lies in the root %s: only the reader's own rules keep it closed, the kernel does not",
				path, root.Path))
		}
	}
	return notes
}

// Report says what the child is confined by.
func (r *Reader) Report() Report { return r.report }

// Close ends the child and any request under way, which fails with
// [ErrClosed], and waits until the child is gone. It can be called again.
func (r *Reader) Close() error {
	r.end()
	r.turn <- struct{}{}
	defer r.release()
	r.dismiss()
	if r.last != nil {
		<-r.last.exited
	}
	return nil
}

// List returns what a directory holds: the roots for "", else the directory at
// a path such as "docs" or "docs/guide". It fails with [ErrNotReadable].
func (r *Reader) List(ctx context.Context, dir string) (Listing, error) {
	resp, err := r.do(ctx, request{Op: opList, Path: dir})
	if err != nil {
		return Listing{}, err
	}
	return *resp.Listing, nil
}

// Read returns lines first to last of a file, counted from 1 and both included;
// 0 stands for the first and the last there is. It fails with [ErrNotReadable],
// [ErrTooLarge], [ErrBinary], or [ErrInvalid] for an empty range.
func (r *Reader) Read(ctx context.Context, path string, first, last int) (Excerpt, error) {
	resp, err := r.do(ctx, request{Op: opRead, Path: path, FirstLine: first, LastLine: last})
	if err != nil {
		return Excerpt{}, err
	}
	return *resp.Excerpt, nil
}

// Query is what a Search looks for.
type Query struct {
	// Pattern is looked for in each line by itself: 1 to 1000 bytes.
	Pattern string
	// Regexp makes the pattern one of RE2, in Go's syntax, instead of a literal.
	Regexp bool
	// Path is a file or a directory, "" for all roots.
	Path string
}

// Search returns the lines that match. Files that are closed, too large or not
// text are passed over, unless the query names one. It fails with [ErrInvalid]
// for a bad pattern, and like Read for what Path names.
func (r *Reader) Search(ctx context.Context, q Query) (Matches, error) {
	resp, err := r.do(ctx, request{Op: opSearch, Path: q.Path, Pattern: q.Pattern, Regexp: q.Regexp})
	if err != nil {
		return Matches{}, err
	}
	return *resp.Matches, nil
}
