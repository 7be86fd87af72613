package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

var (
	errReplaced = errors.New("another directory has taken its place since the start")
	errNotUTF8  = errors.New("it is not valid UTF-8")
)

// resolveRoots follows the links in the given paths once and checks that each
// leads to a directory that may be readable at all. A directory that is given
// twice is taken once.
func resolveRoots(paths, deny []string) ([]rootSetup, error) {
	if len(paths) > maxRoots {
		return nil, fmt.Errorf("sandbox: %d roots, at most %d are possible", len(paths), maxRoots)
	}
	roots := make([]rootSetup, 0, len(paths))
	taken := make(map[string]bool)
	seen := make(map[fileID]bool)
	for _, path := range paths {
		root, err := resolveRoot(path)
		if err != nil {
			return nil, fmt.Errorf("sandbox: root %q: %w", path, err)
		}
		for _, closed := range deny {
			if _, ok := beneath(root.Path, closed); ok {
				return nil, fmt.Errorf("sandbox: root %q: it lies in the denied %q", path, closed)
			}
		}
		id := fileID{root.Dev, root.Inode}
		if seen[id] {
			continue
		}
		seen[id] = true
		root.Name = uniqueName(filepath.Base(filepath.Clean(path)), taken)
		roots = append(roots, root)
	}
	return roots, nil
}

func resolveRoot(path string) (rootSetup, error) {
	if !filepath.IsAbs(path) {
		return rootSetup{}, errors.New("it is not an absolute path")
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return rootSetup{}, err
	}
	if !utf8.ValidString(resolved) {
		return rootSetup{}, errNotUTF8
	}
	if resolved == "/" {
		return rootSetup{}, errors.New("the root of the file system cannot be readable as a whole")
	}
	for _, closed := range []string{"/proc", "/sys", "/dev"} {
		if _, ok := beneath(resolved, closed); ok {
			return rootSetup{}, fmt.Errorf("nothing in %s is readable", closed)
		}
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return rootSetup{}, err
	}
	if !info.IsDir() {
		return rootSetup{}, errors.New("it is not a directory")
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(resolved, &stat); err != nil {
		return rootSetup{}, fmt.Errorf("statfs: %w", err)
	}
	if isKernelMagic(uint32(stat.Type)) {
		return rootSetup{}, errors.New("it is the kernel's, not a directory of files")
	}
	id := identify(info)
	return rootSetup{Path: resolved, Dev: id.dev, Inode: id.inode}, nil
}

// uniqueName returns name, or name-2, name-3 and so on where it is taken.
func uniqueName(name string, taken map[string]bool) string {
	if !isPlain(name) {
		name = "root"
	}
	unique := name
	for n := 2; taken[unique]; n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	taken[unique] = true
	return unique
}

// resolveDeny returns the denied paths as they were given and, where that
// differs, as links lead to them now.
func resolveDeny(paths []string) ([]string, error) {
	if len(paths) > maxDeny {
		return nil, fmt.Errorf("sandbox: %d denied paths, at most %d are possible", len(paths), maxDeny)
	}
	var deny []string
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("sandbox: denied path %q is not absolute", path)
		}
		path = filepath.Clean(path)
		resolved := resolveExisting(path)
		if !utf8.ValidString(path + resolved) {
			return nil, fmt.Errorf("sandbox: denied path %q: %w", path, errNotUTF8)
		}
		if deny = append(deny, path); resolved != path {
			deny = append(deny, resolved)
		}
	}
	return deny, nil
}

// resolveExisting follows the links in as much of path as exists.
func resolveExisting(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolveExisting(parent), filepath.Base(path))
}

// beneath returns the path that leads from directory to path, both absolute and
// clean; ok is false where path does not lie in it. A directory lies in itself,
// at ".".
func beneath(path, directory string) (rel string, ok bool) {
	rel, err := filepath.Rel(directory, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}

// isKernelFS reports whether an open file belongs to a file system that is not
// one of files, or whether that cannot be told.
func isKernelFS(fd int) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(fd, &stat) != nil || isKernelMagic(uint32(stat.Type))
}

// isKernelMagic lists the file systems through which the kernel shows itself or
// its processes.
func isKernelMagic(magic uint32) bool {
	switch magic {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC,
		unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.RDTGROUP_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC,
		unix.SMACK_MAGIC, unix.AAFS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC,
		unix.BPF_FS_MAGIC, unix.BINFMTFS_MAGIC, unix.BINDERFS_SUPER_MAGIC, unix.NSFS_MAGIC,
		unix.PID_FS_MAGIC, unix.SOCKFS_MAGIC, unix.PIPEFS_MAGIC, unix.ANON_INODE_FS_MAGIC,
		unix.BDEVFS_MAGIC, unix.HUGETLBFS_MAGIC, unix.SECRETMEM_MAGIC, unix.DMA_BUF_MAGIC,
		unix.DEVMEM_MAGIC, unix.XENFS_SUPER_MAGIC, unix.OPENPROM_SUPER_MAGIC,
		unix.USBDEVICE_SUPER_MAGIC, unix.AUTOFS_SUPER_MAGIC,
		configfsMagic, fusectlMagic, mqueueMagic:
		return true
	}
	return false
}

// Magic numbers that golang.org/x/sys does not have.
const (
	configfsMagic = 0x62656570
	fusectlMagic  = 0x65735543
	mqueueMagic   = 0x19800202
)
