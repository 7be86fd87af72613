package diagnosis

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/newos4/relay/pkg/permission"
	"github.com/newos4/relay/pkg/sandbox"
	"github.com/newos4/relay/pkg/storage"
)

// Host is what is asked of the machine. Every field is set.
type Host struct {
	Now  func() time.Time
	User func() permission.Identity
	// Sysctl returns a setting of the kernel, such as fs.inotify.max_user_watches.
	Sysctl func(name string) (int, error)
	// Watch reports whether the kernel would tell of changes in a directory; the
	// error is that of [storage.TryWatch].
	Watch func(dir string) error
	// OpenFiles returns how many files this process may have open.
	OpenFiles func() (uint64, error)
	// Sandbox returns what the reader of files would be confined by.
	Sandbox func() sandbox.Report
	// FileSystem returns room and kind of the file system at a path, and
	// SyncsDirectories whether it can sync that directory.
	FileSystem       func(path string) (storage.FileSystem, error)
	SyncsDirectories func(dir string) (bool, error)
}

// ThisHost returns the machine that this process is on.
func ThisHost() *Host {
	return &Host{
		Now:              time.Now,
		User:             permission.Current,
		Sysctl:           readSysctl,
		Watch:            storage.TryWatch,
		OpenFiles:        openFiles,
		Sandbox:          sandbox.Probe,
		FileSystem:       storage.FileSystemOf,
		SyncsDirectories: storage.SyncsDirectories,
	}
}

func readSysctl(name string) (int, error) {
	data, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")))
	if err != nil {
		return 0, fmt.Errorf("reading a setting of the kernel: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", name, err)
	}
	return n, nil
}

// openFiles returns the hard limit: the Go runtime takes all of it.
func openFiles() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	return limit.Max, nil
}
