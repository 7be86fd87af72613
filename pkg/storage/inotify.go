package storage

import (
	"errors"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// inotify is the notifier of the real kernel.
type inotify struct{ watcher *fsnotify.Watcher }

func openNotifier(dir string) (notifier, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := watcher.Add(dir); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return inotify{watcher}, nil
}

func (n inotify) Events() <-chan fsnotify.Event { return n.watcher.Events }
func (n inotify) Errors() <-chan error          { return n.watcher.Errors }
func (n inotify) Close() error                  { return n.watcher.Close() }

// TryWatch reports whether the kernel would tell of changes in the directory
// now. The error is a [*WatchError].
func TryWatch(dir string) error {
	n, err := openNotifier(dir)
	if err == nil {
		err = n.Close()
	}
	if err != nil {
		return watchError(err)
	}
	return nil
}

// WatchError is why a directory cannot be watched.
type WatchError struct {
	// Sysctl is the limit of the kernel that was reached, "" for another reason.
	Sysctl string

	reason error
	mend   string
}

// Error returns the reason.
func (e *WatchError) Error() string { return e.reason.Error() }

// Unwrap returns the reason.
func (e *WatchError) Unwrap() error { return e.reason }

// Mend says what would help.
func (e *WatchError) Mend() string { return e.mend }

// watchError explains an error of inotify. They speak of devices and files when
// they mean inotify's own limits, so it names those.
func watchError(err error) *WatchError {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return &WatchError{
			Sysctl: "fs.inotify.max_user_watches",
			reason: errors.New("the user's inotify watches are used up"),
			mend:   "raise the sysctl fs.inotify.max_user_watches; the disk is not full",
		}
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return &WatchError{
			Sysctl: "fs.inotify.max_user_instances",
			reason: errors.New("the user's inotify instances or the open files are used up"),
			mend:   "raise the sysctl fs.inotify.max_user_instances, or the limit of open files",
		}
	}
	return &WatchError{reason: err, mend: "none known"}
}
