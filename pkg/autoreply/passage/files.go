package passage

import (
	"context"
	"errors"
	"strings"

	"github.com/newos4/relay/pkg/sandbox"
)

const (
	maxDepth = 16   // how many directories deep files are looked for
	maxDirs  = 2000 // how many directories are listed
)

// file is what tells one state of the files from another.
type file struct {
	path string
	size int64
}

// list returns the readable files beneath all roots, those of a directory
// before those of the directories beneath it, so that a limit takes the deepest
// away.
func (x *Index) list(ctx context.Context) ([]file, error) {
	var files []file
	dirs := []string{""}
	for i := 0; i < len(dirs) && i < maxDirs; i++ {
		listing, err := x.files.List(ctx, dirs[i])
		if isPassedOver(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, entry := range listing.Entries {
			switch {
			case !entry.Dir:
				files = append(files, file{entry.Path, entry.Size})
			case strings.Count(entry.Path, "/") < maxDepth:
				dirs = append(dirs, entry.Path)
			}
		}
		if len(files) >= x.maxFiles {
			return files[:x.maxFiles], nil
		}
	}
	return files, nil
}

// read returns the lines of a file as far as there is room for them, of which
// it takes what it uses. A file that cannot be read any more has none.
func (x *Index) read(ctx context.Context, path string, room *int) ([]string, error) {
	var lines []string
	for next := 1; *room > 0; {
		excerpt, err := x.files.Read(ctx, path, next, 0)
		if isPassedOver(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if excerpt.LastLine >= next {
			*room -= len(excerpt.Text)
			lines = append(lines, strings.Split(excerpt.Text, "\n")...)
			next = excerpt.LastLine + 1
		} else {
			// Not even one line fits a result: it cannot be shown, those behind it can.
			lines = append(lines, "")
			next++
		}
		if next > excerpt.TotalLines {
			return lines, nil
		}
	}
	return lines, nil
}

// isPassedOver reports whether an error is one file's, or one directory's, own.
// Files may go while they are looked at.
func isPassedOver(err error) bool {
	return errors.Is(err, sandbox.ErrNotReadable) || errors.Is(err, sandbox.ErrTooLarge) || errors.Is(err, sandbox.ErrBinary)
}
