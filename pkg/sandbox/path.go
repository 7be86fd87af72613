package sandbox

import "strings"

const (
	maxPathBytes = 4096
	maxDepth     = 32 // components below a root
)

// location is a path as the tools take it: the name of a root, and the names
// that lead from there to a file or directory. The zero location stands above
// all roots.
type location struct {
	root  string
	names []string
}

// parsePath splits a path. There is one way to write each location: no leading
// slash, no empty, "." or ".." component, nothing that any layer could take for
// a separator or an end. A single slash at the end is let pass, because models
// like to mark directories by it.
func parsePath(path string) (location, error) {
	if path == "" {
		return location{}, nil
	}
	if len(path) > maxPathBytes {
		return location{}, ErrNotReadable
	}
	root, rest, found := strings.Cut(strings.TrimSuffix(path, "/"), "/")
	if !isPlain(root) {
		return location{}, ErrNotReadable
	}
	if !found {
		return location{root: root}, nil
	}
	names := strings.Split(rest, "/")
	if len(names) > maxDepth {
		return location{}, ErrNotReadable
	}
	for _, name := range names {
		// Names that begin with a dot are closed, which takes care of "." and "..".
		if isClosed(name) {
			return location{}, ErrNotReadable
		}
	}
	return location{root: root, names: names}, nil
}

// String is the inverse of parsePath.
func (l location) String() string {
	if len(l.names) == 0 {
		return l.root
	}
	return l.root + "/" + strings.Join(l.names, "/")
}
