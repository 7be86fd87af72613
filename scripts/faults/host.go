package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// describeHost returns the conditions under which the numbers hold.
func describeHost(dir string) (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("asking for the kernel's version: %w", err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return "", fmt.Errorf("asking for the load: %w", err)
	}
	const loadScale = 1 << 16 // the kernel's fixed point
	return fmt.Sprintf("%d cores, load %.1f before the run, Linux %s, data under %s, %s", runtime.NumCPU(),
		float64(info.Loads[0])/loadScale, unix.ByteSliceToString(name.Release[:]), dir, runtime.Version()), nil
}

// hashOf turns a name into a number, the same in every run.
func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return h.Sum64()
}

// openFiles returns how many file descriptors a process has.
func openFiles(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, fmt.Errorf("counting the open files of relayd: %w", err)
	}
	return len(entries), nil
}

// cpuTime returns how long a process has computed.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the time of relayd: %w", err)
	}
	const user, system = 11, 12 // among the fields behind the name
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	ticks := 0
	for _, i := range []int{user, system} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0, fmt.Errorf("reading the time of relayd: %w", err)
		}
		ticks += n
	}
	const tick = 10 * time.Millisecond // USER_HZ, which is 100 for every program
	return time.Duration(ticks) * tick, nil
}

// raiseOpenFiles lets this process and those that it starts have so many files.
func raiseOpenFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	if limit.Cur >= n {
		return nil
	}
	limit.Cur, limit.Max = n, max(n, limit.Max)
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%d open files are needed: %w\nhint: raise the hard limit (ulimit -Hn), or lower -scale", n, err)
	}
	if err != nil {
		return fmt.Errorf("raising the limit of open files to %d: %w", n, err)
	}
	return nil
}
