package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

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
	fs, err := fileSystem(dir)
	if err != nil {
		return "", err
	}
	const loadScale = 1 << 16 // the kernel's fixed point
	return fmt.Sprintf("%d cores, load %.1f before the run, Linux %s, %s under %s, %s", runtime.NumCPU(),
		float64(info.Loads[0])/loadScale, unix.ByteSliceToString(name.Release[:]), fs, dir, runtime.Version()), nil
}

// fileSystem returns the type of the file system that dir lies on, as it was
// mounted.
func fileSystem(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", fmt.Errorf("looking at %s: %w", dir, err)
	}
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("reading the mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); len(fields) > 2 && fields[2] == device {
			kind, _, _ := strings.Cut(after, " ")
			return kind, nil
		}
	}
	return "unknown file system", nil
}

// memory is what a process has taken of the machine, in bytes.
type memory struct {
	resident int
	peak     int
}

// memoryOf reads the resident memory of a process from the kernel.
func memoryOf(pid int) (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("reading the memory of a process: %w", err)
	}
	var m memory
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			m.resident = kib << 10
		case "VmHWM":
			m.peak = kib << 10
		}
	}
	if m.resident == 0 || m.peak == 0 {
		return memory{}, fmt.Errorf("the kernel does not tell the memory of process %d", pid)
	}
	return m, nil
}
