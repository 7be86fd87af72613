package sandbox

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// brokenPromises tries the confinement out and returns the promises that do not
// hold although a mechanism in force should keep them.
//
// No attempt does harm where it succeeds, or could end the process where a
// service manager filters as well: each call belongs to systemd's
// @system-service, and its arguments are ones that the kernel would turn down
// with another error than the filter's, if it ever saw them.
func brokenPromises(s support) []string {
	var broken []string
	report := func(promise string, holds bool) {
		if !holds && !slices.Contains(broken, promise) {
			broken = append(broken, promise)
		}
	}
	if s.LandlockABI > 0 {
		report(promiseRead, !opens("/", unix.O_RDONLY|unix.O_DIRECTORY))
	}
	if s.LandlockABI > 0 || s.Seccomp {
		report(promiseWrite, !opens("/dev/null", unix.O_WRONLY))
	}
	if !s.Seccomp {
		return broken
	}
	const noDescriptor = ^uintptr(0)
	empty := []byte{0}
	report(promiseWrite, isRefused(unix.SYS_FTRUNCATE, noDescriptor))
	report(promiseExec, isRefused(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&empty[0]))))
	// Shared signal handlers without shared memory are not to be had.
	report(promiseProcess, isRefused(unix.SYS_CLONE, unix.CLONE_SIGHAND))
	report(promiseSocket, isRefused(unix.SYS_SOCKET, noDescriptor))
	report(promiseKernel, isRefused(unix.SYS_KEYCTL, noDescriptor))
	runtime.KeepAlive(empty)
	return broken
}

// opens reports whether path can be opened at all.
func opens(path string, mode int) bool {
	fd, err := unix.Openat(unix.AT_FDCWD, path, mode|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// isRefused reports whether a call with one argument that is not zero is turned
// down by the filter.
func isRefused(nr, argument uintptr) bool {
	_, _, errno := unix.RawSyscall(nr, argument, 0, 0)
	return errors.Is(errno, unix.EPERM)
}
