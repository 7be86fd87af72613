package sandbox

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// spareThreads is how many threads the runtime has in hand when starting one
// becomes impossible. With one processor it needs the one that runs, one that
// waits in a system call, one for its monitor and one to wait for events.
const spareThreads = 8

// confine turns the process into one that can only read beneath the roots, for
// good and on every thread, and returns the roots. The order matters: each step
// takes away what an earlier one needs.
func confine(s setup) ([]*tree, error) {
	if err := detach(); err != nil {
		return nil, err
	}
	trees, err := openRoots(s)
	if err != nil {
		return nil, err
	}
	debug.SetMemoryLimit(s.Limits.Memory / 2)
	parkThreads(spareThreads)
	if err := dropPrivileges(); err != nil {
		return nil, err
	}
	if err := limitResources(s); err != nil {
		return nil, err
	}
	if s.Support.LandlockABI > 0 {
		if err := restrictToTrees(s.Support.LandlockABI, trees); err != nil {
			return nil, err
		}
	}
	if s.Support.Seccomp {
		if err := restrictCalls(os.Getpid()); err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// detach lets go of what the process was started with, apart from its pipes.
func detach() error {
	// A service manager asks all processes of a service to end; this one ends
	// with its parent, which may still want an answer.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	// Otherwise lists of processes would call it "exe". That is all this is for.
	_ = os.WriteFile("/proc/self/comm", []byte(childArg), 0)
	if err := os.Chdir("/"); err != nil {
		return err
	}
	for _, fd := range []int{0, 1} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return fmt.Errorf("descriptor %d: %w", fd, err)
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return fmt.Errorf("descriptor %d is not a pipe", fd)
		}
	}
	return closeInherited()
}

// closeInherited closes what was leaked into the process. A descriptor that
// came through exec has no close-on-exec flag, whereas whatever this process
// opened itself, the runtime's included, has it.
func closeInherited() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			if err := unix.Close(fd); err != nil {
				return fmt.Errorf("close an inherited descriptor: %w", err)
			}
		}
	}
	return nil
}

// parkThreads makes the runtime start n threads and leaves them idle, so that it
// need not start one later, when it cannot. A goroutine that is locked to its
// thread shares it with no other: n of them at the same time hold n threads.
func parkThreads(n int) {
	// One processor is enough for one request at a time. Setting it explicitly
	// also stops the runtime from following the cgroup's quota, for which it
	// would read a file every now and then.
	runtime.GOMAXPROCS(1)
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	ready.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}

// dropPrivileges rules out any gain of privilege, empties the capability sets of
// all threads, and hides the process's memory from others of the same user.
func dropPrivileges() error {
	if _, _, errno := psx.Syscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no_new_privs: %w", errno)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	return nil
}

func restrictToTrees(abi int, trees []*tree) error {
	directories := make([]int, len(trees))
	for i, t := range trees {
		handle, err := t.root.OpenFile(".", os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer func() { _ = handle.Close() }()
		directories[i] = int(handle.Fd())
	}
	return restrictPaths(abi, directories)
}
