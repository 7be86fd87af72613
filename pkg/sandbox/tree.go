package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxNames is how many names of one directory are looked at.
const maxNames = 50_000

// fileID tells files and directories apart whatever they are called.
type fileID struct{ dev, inode uint64 }

// tree is a root as the child sees it.
type tree struct {
	name string
	root *os.Root
	// closed holds the folded paths below the root that are denied, joined by
	// slashes, and closedIDs what they lead to, should it have another name too.
	closed    map[string]bool
	closedIDs map[fileID]bool
}

// directory is an open directory of a tree. Whoever gets one closes it.
type directory struct {
	tree   *tree
	root   *os.Root
	names  []string // that lead here from the tree's root
	folded string   // the same, folded and joined
}

// top returns the tree's own directory.
func (t *tree) top() (*directory, error) {
	root, err := t.root.OpenRoot(".")
	if err != nil {
		return nil, ErrNotReadable
	}
	return &directory{tree: t, root: root}, nil
}

// walk opens the directory that names lead to.
func (t *tree) walk(names []string) (*directory, error) {
	here, err := t.top()
	for _, name := range names {
		if err != nil {
			return nil, err
		}
		var next *directory
		next, err = here.enter(name)
		here.Close()
		here = next
	}
	return here, err
}

// Close lets go of the directory.
func (d *directory) Close() { _ = d.root.Close() }

// path is how the tools call name in this directory.
func (d *directory) path(name string) string {
	return location{root: d.tree.name, names: append(slices.Clone(d.names), name)}.String()
}

// admits reports whether the rules leave name open, before anything is asked of
// the file system: what is denied takes the same time whether it exists or not.
func (d *directory) admits(name string) (folded string, ok bool) {
	if isClosed(name) || len(d.names) >= maxDepth {
		return "", false
	}
	folded = fold(name)
	if d.folded != "" {
		folded = d.folded + "/" + folded
	}
	return folded, !d.tree.closed[folded]
}

// enter opens a directory in d, not through a link.
//
// os.Root lets nothing outside be reached, but it follows links that stay
// inside, to what may have a closed name. What is opened must therefore be the
// very directory that stood under the name when it was looked at.
func (d *directory) enter(name string) (*directory, error) {
	folded, ok := d.admits(name)
	if !ok {
		return nil, ErrNotReadable
	}
	want, err := d.root.Lstat(name)
	if err != nil || !want.IsDir() {
		return nil, ErrNotReadable
	}
	// The dot makes name a directory to be passed through, which the kernel
	// checks before it opens: a FIFO put in its place meanwhile cannot block.
	root, err := d.root.OpenRoot(name + "/.")
	if err != nil {
		return nil, ErrNotReadable
	}
	got, err := root.Stat(".")
	if err != nil || !os.SameFile(want, got) || d.tree.closedIDs[identify(got)] {
		_ = root.Close()
		return nil, ErrNotReadable
	}
	return &directory{tree: d.tree, root: root, names: append(slices.Clone(d.names), name), folded: folded}, nil
}

// lookup tells what name is; ok is false unless it is a directory or a readable
// file.
func (d *directory) lookup(name string) (info fs.FileInfo, ok bool) {
	if _, ok := d.admits(name); !ok {
		return nil, false
	}
	info, err := d.root.Lstat(name)
	if err != nil || d.tree.closedIDs[identify(info)] {
		return nil, false
	}
	return info, info.IsDir() || isReadable(info)
}

// open opens a readable file in d.
func (d *directory) open(name string) (*os.File, fs.FileInfo, error) {
	want, ok := d.lookup(name)
	if !ok || want.IsDir() {
		return nil, nil, ErrNotReadable
	}
	// Looked at first, opened without blocking, and looked at again: neither a
	// FIFO nor a device can hold the child up, even if it is put there between.
	file, err := d.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, ErrNotReadable
	}
	got, err := file.Stat()
	if err != nil || !os.SameFile(want, got) || !isReadable(got) || isKernelFS(int(file.Fd())) {
		_ = file.Close()
		return nil, nil, ErrNotReadable
	}
	return file, got, nil
}

// list returns the names in d, sorted; complete is false if there are more than
// maxNames, of which it returns some.
func (d *directory) list() (names []string, complete bool, err error) {
	handle, err := d.root.OpenFile(".", os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, ErrNotReadable
	}
	defer func() { _ = handle.Close() }()
	if isKernelFS(int(handle.Fd())) {
		return nil, false, ErrNotReadable
	}
	for len(names) < maxNames {
		more, err := handle.Readdirnames(1024)
		names = append(names, more...)
		if errors.Is(err, io.EOF) {
			complete = true
			break
		}
		if err != nil {
			return nil, false, ErrNotReadable
		}
	}
	slices.Sort(names)
	return names, complete, nil
}

// isReadable reports whether info is of a regular file with one name. Another
// name could be a closed one, or lie outside.
func isReadable(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && stat.Nlink == 1
}

func identify(info fs.FileInfo) fileID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{dev: stat.Dev, inode: stat.Ino}
}

// openRoots opens the roots, before the process is confined, and notes what is
// denied beneath each.
func openRoots(s setup) ([]*tree, error) {
	closedIDs := make(map[fileID]bool)
	for _, path := range s.Deny {
		if info, err := os.Stat(path); err == nil {
			closedIDs[identify(info)] = true
		}
	}
	trees := make([]*tree, 0, len(s.Roots))
	for _, r := range s.Roots {
		t, err := openRoot(r, closedIDs)
		if err != nil {
			return nil, err
		}
		for _, path := range s.Deny {
			if rel, ok := beneath(path, r.Path); ok {
				t.closed[foldPath(rel)] = true
			}
		}
		trees = append(trees, t)
	}
	return trees, nil
}

func openRoot(r rootSetup, closedIDs map[fileID]bool) (*tree, error) {
	root, err := os.OpenRoot(r.Path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	id := identify(info)
	if id != (fileID{r.Dev, r.Inode}) {
		return nil, fmt.Errorf("open root %s: %w", r.Path, errReplaced)
	}
	if closedIDs[id] {
		return nil, fmt.Errorf("open root %s: it is a denied directory under another name", r.Path)
	}
	return &tree{name: r.Name, root: root, closed: make(map[string]bool), closedIDs: closedIDs}, nil
}

func foldPath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = fold(name)
	}
	return strings.Join(names, "/")
}
