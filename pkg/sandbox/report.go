package sandbox

import (
	"fmt"
	"strings"
)

// MinLandlockABI is the oldest Landlock that [Strict] accepts (Linux 5.13). It
// has what only Landlock can do: refuse to read outside the roots. All that
// later versions add is refused by the seccomp filter as well.
const MinLandlockABI = 1

// The mechanisms that a [Guard] names.
const (
	byLandlock = "landlock"
	bySeccomp  = "seccomp"
	byLimits   = "resource limits"
	byPrivs    = "no_new_privs"
)

// Guard is one promise about the child.
type Guard struct {
	// Promise says what cannot happen, as a phrase: "no program runs".
	Promise string
	// By names the mechanisms that enforce it, each of them alone.
	By []string
	// Needs says what would enforce it and why it does not, where By is empty.
	Needs string
}

// Report says what the kernel enforces on the child.
type Report struct {
	// LandlockABI is the version of Landlock in use, 0 for none.
	LandlockABI int
	// Seccomp says whether a system call filter is in use.
	Seccomp bool
	// Guards are all promises, in a fixed order.
	Guards []Guard
	// Notes are sentences that the operator should know of: a denied path
	// beneath a root, which only the reader's own rules keep closed.
	Notes []string
}

// Missing returns the promises that nothing enforces.
func (r Report) Missing() []Guard {
	var missing []Guard
	for _, guard := range r.Guards {
		if len(guard.By) == 0 {
			missing = append(missing, guard)
		}
	}
	return missing
}

// The promises that the child tries out itself. Their texts are also how it
// tells the parent which one does not hold.
const (
	promiseRead    = "no file outside the roots is read"
	promiseWrite   = "no file is written, made, moved or removed"
	promiseExec    = "no program runs"
	promiseProcess = "no process or thread starts"
	promiseSocket  = "no socket opens"
	promiseKernel  = "no wider kernel interface is reached (mounts, namespaces, keys, bpf, io_uring)"
)

// newReport tells what a child is confined by, given what the kernel supports.
// Landlock's part depends on its version: write access can be refused by all of
// them, but truncation is covered from 3 on, TCP from 4, signals from 6.
func newReport(s support) Report {
	guard := func(promise string, landlockABI int) Guard {
		g := Guard{Promise: promise}
		if landlockABI > 0 && s.LandlockABI >= landlockABI {
			g.By = append(g.By, byLandlock)
		}
		if s.Seccomp {
			g.By = append(g.By, bySeccomp)
		}
		if len(g.By) == 0 {
			g.Needs = s.seccompNeed()
		}
		return g
	}
	read := Guard{Promise: promiseRead, By: []string{byLandlock}}
	if s.LandlockABI < MinLandlockABI {
		read = Guard{Promise: promiseRead, Needs: s.landlockNeed()}
	}
	return Report{
		LandlockABI: s.LandlockABI,
		Seccomp:     s.Seccomp,
		Guards: []Guard{
			read,
			guard(promiseWrite, 3),
			guard("no mode, owner, time or attribute of a file changes", 0),
			guard(promiseExec, 1),
			guard(promiseProcess, 0),
			guard(promiseSocket, 0),
			guard("no TCP port is bound or connected to", 4),
			guard("no signal reaches another process", 6),
			guard("no other process is traced or its memory touched", 1),
			guard(promiseKernel, 0),
			{Promise: "memory, descriptors and processor time are bounded, no file grows", By: []string{byLimits}},
			{Promise: "no privilege is gained, no capability is kept", By: []string{byPrivs}},
		},
	}
}

func (s support) landlockNeed() string {
	return fmt.Sprintf("Landlock ABI %d (Linux 5.13 with CONFIG_SECURITY_LANDLOCK and landlock among its LSMs): %s",
		MinLandlockABI, s.LandlockWhy)
}

func (s support) seccompNeed() string {
	return fmt.Sprintf("seccomp filters (Linux 4.14 with CONFIG_SECCOMP_FILTER, on amd64 or arm64): %s", s.SeccompWhy)
}

// UnsupportedError means that the running kernel, or a filter around this
// process, cannot enforce what [Strict] asks for.
type UnsupportedError struct {
	// Missing lists the promises that nothing would enforce, at least one.
	Missing []Guard
}

// Error names each missing promise and what would enforce it.
func (e *UnsupportedError) Error() string {
	parts := make([]string, len(e.Missing))
	for i, guard := range e.Missing {
		parts[i] = fmt.Sprintf("%s (needs %s)", guard.Promise, guard.Needs)
	}
	return "sandbox: not enforceable here: " + strings.Join(parts, "; ")
}
