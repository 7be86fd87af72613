package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// spareAddresses is address space beyond the memory budget: the runtime
	// reserves it in large pieces without using it.
	spareAddresses = 512 * mib
	maxStack       = 8 * mib
	// descriptors holds the pipes, the runtime's few, and a walk down to
	// maxDepth; the roots come on top.
	descriptors = 64
)

// limitResources sets soft and hard limits. The two on memory are relative to
// what the process has now. An absolute RLIMIT_AS is of no use to Go, which
// reserves gigabytes that it never touches, and RLIMIT_DATA counts only private
// writable memory, to which the system call filter confines new mappings.
func limitResources(s setup) error {
	size, data, err := memoryInUse()
	if err != nil {
		return err
	}
	memory := uint64(s.Limits.Memory)
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"RLIMIT_MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},
		// Counts all threads of the user, so that it can only mean "no more". It
		// does not bind root; the filter does.
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, descriptors + uint64(len(s.Roots))},
		{"RLIMIT_STACK", unix.RLIMIT_STACK, maxStack},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, s.CPUSeconds},
		{"RLIMIT_DATA", unix.RLIMIT_DATA, data + memory},
		{"RLIMIT_AS", unix.RLIMIT_AS, size + memory + spareAddresses},
	} {
		if err := lowerLimit(limit.resource, limit.value); err != nil {
			return fmt.Errorf("%s: %w", limit.name, err)
		}
	}
	return nil
}

// lowerLimit never raises a limit that the surroundings set lower.
func lowerLimit(resource int, value uint64) error {
	var current unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &current); err != nil {
		return err
	}
	value = min(value, current.Max)
	return unix.Prlimit(0, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
}

// memoryInUse returns the bytes of address space and of private writable memory
// that the process has.
func memoryInUse() (size, data uint64, err error) {
	const path = "/proc/self/statm"
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 6 {
		return 0, 0, fmt.Errorf("%s has %d fields, want 7", path, len(fields))
	}
	if size, err = pages(fields[0]); err != nil {
		return 0, 0, err
	}
	data, err = pages(fields[5])
	return size, data, err
}

func pages(field string) (bytes uint64, err error) {
	n, err := strconv.ParseUint(field, 10, 64)
	return n * uint64(os.Getpagesize()), err
}
