package tools

import (
	"context"

	"github.com/newos4/relay/pkg/sandbox"
)

// Files is what the tools look at. A [*sandbox.Reader] is one; it returns no
// more than one answer may hold, with every character visible.
type Files interface {
	// List returns what a directory holds, or the roots for "".
	List(ctx context.Context, dir string) (sandbox.Listing, error)
	// Read returns lines first to last of a file, counted from 1 and both
	// included; 0 stands for the first and the last there is.
	Read(ctx context.Context, path string, first, last int) (sandbox.Excerpt, error)
	// Search returns the lines that match.
	Search(ctx context.Context, q sandbox.Query) (sandbox.Matches, error)
}

var _ Files = (*sandbox.Reader)(nil)
