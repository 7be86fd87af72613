package sandbox

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// support is what the kernel can enforce, and why not where it cannot. The
// parent asks once and the child enforces exactly that, so that what was
// reported and what is in force never differ.
type support struct {
	LandlockABI int    `json:"landlock_abi"`
	LandlockWhy string `json:"landlock_why"`
	Seccomp     bool   `json:"seccomp"`
	SeccompWhy  string `json:"seccomp_why"`
}

// Probe reports what a child would be confined by on the running kernel, from
// where this process stands: a service manager's own filter may hide what the
// kernel has. It changes nothing and starts no process.
func Probe() Report { return newReport(probeKernel()) }

func probeKernel() support {
	var s support
	abi, err := landlockABI()
	if err != nil {
		s.LandlockWhy = why(err)
	}
	s.LandlockABI = abi
	if err := seccompAvailable(); err != nil {
		s.SeccompWhy = why(err)
		return s
	}
	s.Seccomp = true
	return s
}

// landlockABI returns the kernel's Landlock version.
func landlockABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(abi), nil
}

var errArchitecture = errors.New("there is no filter for this architecture")

// seccompAvailable asks for an action that exists only together with filters.
func seccompAvailable() error {
	if len(allowedCalls(0)) == 0 {
		return errArchitecture
	}
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return errno
	}
	return nil
}

// why puts a kernel's refusal into words.
func why(err error) string {
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return "this kernel has it not built in"
	case errors.Is(err, unix.EOPNOTSUPP):
		return "this kernel has it built in but not enabled at boot"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "a filter around this process refuses to set it up"
	}
	return err.Error()
}
