//go:build cgo

package sandbox

import (
	"fmt"
	"os"
)

// threadList is a directory that must stay listable: with the C library's
// threads, psx looks for threads that it has missed once more after the
// restriction is in force. What can be learned there is the numbers of the
// process's own threads. The released binaries are built without cgo; this is
// for the race detector.
func threadList() string { return fmt.Sprintf("/proc/%d/task", os.Getpid()) }
