//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// allowedCalls are all the system calls that the confined process pid can make.
//
// An allow-list is possible because the set of threads is made beforehand (see
// parkThreads): what is left of the Go runtime's needs is small and has been the
// same for years. The same list serves a binary built with the race detector,
// whose runtime sits on the C library.
//
// What is notable by its absence: clone, clone3, fork and vfork (no process, no
// thread), openat2 (its flags are out of a filter's sight), readlinkat (os.Root
// could follow no link even if the rules had a hole), fcntl and ioctl (leases,
// locks, signals to others, terminals), mremap, prctl, everything by path that
// is not openat or newfstatat.
func allowedCalls(pid int) []call {
	const readWrite = unix.PROT_READ | unix.PROT_WRITE
	return []call{
		// The two pipes, and files once they are open. Nothing else is open that
		// could be written to.
		{nr: unix.SYS_READ},
		{nr: unix.SYS_WRITE},
		{nr: unix.SYS_CLOSE},
		{nr: unix.SYS_FSTAT},
		{nr: unix.SYS_FSTATFS},
		{nr: unix.SYS_GETDENTS64},

		// Opening: for reading only, never through a link in the last place,
		// which is how os.Root opens everything.
		{nr: unix.SYS_OPENAT, when: []match{
			flags(2, unix.O_NOFOLLOW, unix.O_CLOEXEC|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_NOCTTY),
		}},
		{nr: unix.SYS_NEWFSTATAT, when: []match{exactly(3, unix.AT_SYMLINK_NOFOLLOW)}},

		// Memory: anonymous, private, never executable. Shared and downward
		// growing mappings would not count towards RLIMIT_DATA.
		{nr: unix.SYS_MMAP, when: []match{
			flags(2, 0, readWrite),
			flags(3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS,
				unix.MAP_FIXED|unix.MAP_FIXED_NOREPLACE|unix.MAP_NORESERVE|unix.MAP_STACK),
		}},
		{nr: unix.SYS_MPROTECT, when: []match{flags(2, 0, readWrite)}},
		{nr: unix.SYS_MUNMAP},
		{nr: unix.SYS_MADVISE},
		{nr: unix.SYS_BRK},

		// The scheduler and the poller of the runtime. Of the futex operations
		// only those that wait and wake; the priority-inheriting ones are a
		// classic way into the kernel.
		futex(futexWait),
		futex(futexWake),
		futex(futexWaitBitset),
		futex(futexWakeBitset),
		{nr: unix.SYS_EPOLL_CTL},
		{nr: unix.SYS_EPOLL_PWAIT},
		{nr: unix.SYS_SCHED_YIELD},
		{nr: unix.SYS_NANOSLEEP},
		{nr: unix.SYS_CLOCK_NANOSLEEP},
		{nr: unix.SYS_CLOCK_GETTIME},
		{nr: unix.SYS_RESTART_SYSCALL},
		{nr: unix.SYS_GETRANDOM},

		// Signals, to the process itself only: the runtime preempts by them.
		{nr: unix.SYS_TGKILL, when: []match{exactly(0, uint64(pid))}},
		{nr: unix.SYS_RT_SIGACTION},
		{nr: unix.SYS_RT_SIGPROCMASK},
		{nr: unix.SYS_RT_SIGRETURN},
		{nr: unix.SYS_SIGALTSTACK},
		{nr: unix.SYS_GETPID},
		{nr: unix.SYS_GETTID},
		{nr: unix.SYS_EXIT},
		{nr: unix.SYS_EXIT_GROUP},
	}
}

// From linux/futex.h, which golang.org/x/sys does not have.
const (
	futexWait       = 0
	futexWake       = 1
	futexWaitBitset = 9
	futexWakeBitset = 10
	futexPrivate    = 128
	futexRealtime   = 256
)

// futex allows one operation, within the process or not, on either clock.
func futex(operation uint64) call {
	return call{nr: unix.SYS_FUTEX, when: []match{
		flags(1, operation, futexPrivate|futexRealtime),
	}}
}
