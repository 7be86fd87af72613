package sandbox

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

func (a *attacker) runPrograms() {
	argv := a.words(0)
	for _, path := range []string{"/proc/self/exe", "/bin/sh", filepath.Join(a.Root, "tool"), ""} {
		a.call("exec: execve "+strings.TrimPrefix(path, a.Root), unix.SYS_EXECVE, a.str(path), argv, argv)
	}
	tool := a.open("allowed: open a program in the root", filepath.Join(a.Root, "tool"), unix.O_RDONLY)
	a.call("exec: execveat a descriptor", unix.SYS_EXECVEAT, tool, a.str(""), argv, argv, unix.AT_EMPTY_PATH)
	a.call("exec: execveat a path", unix.SYS_EXECVEAT, cwd, a.str("/bin/sh"), argv, argv, 0)
	a.call("filter: map a program", unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE, tool, 0)
	a.call("filter: map executable memory", unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, nothing, 0)
	page := a.call("allowed: map memory", unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, nothing, 0)
	a.call("filter: make memory executable", unix.SYS_MPROTECT, page, 4096, unix.PROT_READ|unix.PROT_EXEC)
	a.call("filter: pkey_mprotect", unix.SYS_PKEY_MPROTECT, page, 4096, unix.PROT_READ|unix.PROT_EXEC, nothing)
	a.call("filter: remap_file_pages", unix.SYS_REMAP_FILE_PAGES, page, 4096, 0, 0, 0)
	a.call("filter: mremap", unix.SYS_MREMAP, page, 4096, 8192, unix.MREMAP_MAYMOVE)
	a.call("filter: mlock", unix.SYS_MLOCK, page, 4096)

}

func (a *attacker) startProcesses() {
	a.start("process: fork", unix.SYS_CLONE, uintptr(unix.SIGCHLD))
	a.start("process: vfork", unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD))
	a.start("process: new namespaces", unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_NEWPID|uintptr(unix.SIGCHLD))
	a.start("process: clone3", unix.SYS_CLONE3, a.words(0, 0, 0, 0, uint64(unix.SIGCHLD), 0, 0, 0), 64)
	a.start("process: thread", unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_FS|unix.CLONE_FILES|unix.CLONE_SIGHAND|unix.CLONE_THREAD)
}

func (a *attacker) signal() {
	parent := uintptr(a.Parent)
	for _, signal := range []uintptr{0, uintptr(unix.SIGCONT), uintptr(unix.SIGURG)} {
		a.call("signal: kill the parent", unix.SYS_KILL, parent, signal)
	}
	a.call("filter: kill all", unix.SYS_KILL, nothing, 0)
	a.call("signal: tgkill the parent", unix.SYS_TGKILL, parent, parent, uintptr(unix.SIGCONT))
	a.call("signal: tkill the parent", unix.SYS_TKILL, parent, uintptr(unix.SIGCONT))
}

func (a *attacker) touchProcesses() {
	parent := uintptr(a.Parent)
	a.call("filter: rt_sigqueueinfo", unix.SYS_RT_SIGQUEUEINFO, parent, uintptr(unix.SIGCONT), a.buf(128))
	a.call("filter: pidfd_open", unix.SYS_PIDFD_OPEN, parent, 0)
	a.call("filter: pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL, nothing, uintptr(unix.SIGCONT), 0, 0)
	a.call("filter: pidfd_getfd", unix.SYS_PIDFD_GETFD, nothing, 0, 0)
	a.call("filter: process_madvise", unix.SYS_PROCESS_MADVISE, nothing, 0, 0, 0, 0)
	a.call("filter: kcmp", unix.SYS_KCMP, uintptr(os.Getpid()), parent, 0, 0, 0)
	a.call("filter: prlimit64 of the parent", unix.SYS_PRLIMIT64, parent, unix.RLIMIT_NOFILE, 0, a.buf(16))
	a.call("filter: setpriority", unix.SYS_SETPRIORITY, 0, parent, 19)
	a.call("filter: sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, parent, 8, a.words(1))
	a.call("filter: ioprio_set", unix.SYS_IOPRIO_SET, 1, parent, 0)
	a.call("filter: migrate_pages", unix.SYS_MIGRATE_PAGES, parent, 0, 0, 0)
	a.call("filter: wait4", unix.SYS_WAIT4, nothing, 0, unix.WNOHANG, 0)
}

func (a *attacker) traceParent() {
	parent := uintptr(a.Parent)
	a.call("trace: ptrace the parent", unix.SYS_PTRACE, unix.PTRACE_SEIZE, parent, 0, 0)
	iov := a.words(uint64(a.buf(64)), 64)
	a.call("trace: process_vm_readv of the parent", unix.SYS_PROCESS_VM_READV, parent, iov, 1, iov, 1, 0)
	a.call("trace: process_vm_writev of the parent", unix.SYS_PROCESS_VM_WRITEV, parent, iov, 1, iov, 1, 0)
	a.open("trace: memory of the parent", filepath.Join("/proc", strconv.Itoa(a.Parent), "mem"), unix.O_RDWR)
}

func (a *attacker) openSockets() {
	for _, s := range []struct {
		name           string
		family, typ, p uintptr
	}{
		{"unix stream", unix.AF_UNIX, unix.SOCK_STREAM, 0}, {"unix datagram", unix.AF_UNIX, unix.SOCK_DGRAM, 0},
		{"TCP", unix.AF_INET, unix.SOCK_STREAM, 0}, {"UDP", unix.AF_INET, unix.SOCK_DGRAM, 0},
		{"MPTCP", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, {"ICMP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"TCP on IPv6", unix.AF_INET6, unix.SOCK_STREAM, 0}, {"UDP on IPv6", unix.AF_INET6, unix.SOCK_DGRAM, 0},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0}, {"netlink", unix.AF_NETLINK, unix.SOCK_RAW, 0},
		{"netlink audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, {"kernel crypto", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0}, {"bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 0},
		{"express data path", unix.AF_XDP, unix.SOCK_RAW, 0}, {"key", unix.AF_KEY, unix.SOCK_RAW, 0}, {"can", unix.AF_CAN, unix.SOCK_RAW, 0},
	} {
		a.call("filter: socket "+s.name, unix.SYS_SOCKET, s.family, s.typ, s.p)
	}
	for family := range uintptr(unix.AF_MAX + 2) {
		a.call("filter: socket of family "+strconv.Itoa(int(family)), unix.SYS_SOCKET, family, unix.SOCK_STREAM, 0)
	}
	a.call("filter: socketpair", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, a.buf(8))
	for _, c := range []struct {
		name string
		nr   uintptr
	}{
		{"bind", unix.SYS_BIND}, {"connect", unix.SYS_CONNECT}, {"listen", unix.SYS_LISTEN}, {"accept4", unix.SYS_ACCEPT4},
		{"sendto", unix.SYS_SENDTO}, {"recvfrom", unix.SYS_RECVFROM}, {"sendmsg", unix.SYS_SENDMSG}, {"recvmsg", unix.SYS_RECVMSG},
		{"sendmmsg", unix.SYS_SENDMMSG}, {"setsockopt", unix.SYS_SETSOCKOPT}, {"getsockopt", unix.SYS_GETSOCKOPT}, {"shutdown", unix.SYS_SHUTDOWN},
	} {
		a.call("filter: "+c.name, c.nr, 0, a.buf(64), 16, 0, 0, 0)
	}
}

// connect goes all the way where a socket can be had: then Landlock is asked.
func (a *attacker) connect() {
	sockaddr := func(family uint16, rest string) (address, size uintptr) {
		b := binary.LittleEndian.AppendUint16(nil, family)
		return a.str(string(append(b, rest...))), uintptr(2 + len(rest))
	}
	port := string(binary.BigEndian.AppendUint16(nil, uint16(a.TCPPort)))
	for _, c := range []struct {
		name   string
		family uint16
		rest   string
	}{
		{"connect: TCP", unix.AF_INET, port + "\x7f\x00\x00\x01" + strings.Repeat("\x00", 8)},
		{"connect: abstract socket", unix.AF_UNIX, "\x00" + a.Abstract},
		{"connect by seccomp alone: socket file", unix.AF_UNIX, a.Unix + "\x00"},
	} {
		fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(c.family), unix.SOCK_STREAM, 0)
		if errno != 0 {
			a.log = append(a.log, attempt{c.name, int(errno)})
			continue
		}
		address, size := sockaddr(c.family, c.rest)
		a.call(c.name, unix.SYS_CONNECT, fd, address, size)
	}
}

func (a *attacker) gainPrivileges() {
	a.call("filter: setuid", unix.SYS_SETUID, 0)
	a.call("filter: setresuid", unix.SYS_SETRESUID, 0, 0, 0)
	a.call("filter: setgid", unix.SYS_SETGID, 0)
	a.call("filter: setgroups", unix.SYS_SETGROUPS, 0, 0)
	a.call("filter: setfsuid", unix.SYS_SETFSUID, 0)
	a.call("filter: setns", unix.SYS_SETNS, nothing, 0)
	a.call("filter: unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
	a.call("filter: unshare files", unix.SYS_UNSHARE, unix.CLONE_FILES)
	a.call("filter: chroot", unix.SYS_CHROOT, a.str(a.Root))
	a.call("filter: pivot_root", unix.SYS_PIVOT_ROOT, a.str(a.Root), a.str(a.Root))
	a.call("filter: mount", unix.SYS_MOUNT, a.str("none"), a.str(a.Root), a.str("tmpfs"), 0, 0)
	a.call("filter: umount2", unix.SYS_UMOUNT2, a.str("/absent"), 0)
	a.call("filter: move_mount", unix.SYS_MOVE_MOUNT, cwd, a.str("/absent"), cwd, a.str("/absent"), 0)
	a.call("filter: fsopen", unix.SYS_FSOPEN, a.str("tmpfs"), 0)
	a.call("filter: mount_setattr", unix.SYS_MOUNT_SETATTR, cwd, a.str("/absent"), 0, a.buf(32), 32)
	a.call("filter: capset", unix.SYS_CAPSET, a.words(unix.LINUX_CAPABILITY_VERSION_3), a.words(1<<32|1, 0, 0))
	a.call("filter: capget", unix.SYS_CAPGET, a.words(unix.LINUX_CAPABILITY_VERSION_3), a.buf(24))
	a.call("filter: setsid", unix.SYS_SETSID)
	a.call("filter: vhangup", unix.SYS_VHANGUP)
	a.call("filter: acct", unix.SYS_ACCT, 0)
	a.call("filter: sethostname", unix.SYS_SETHOSTNAME, a.str("x"), nothing)
}

func (a *attacker) reachKernel() {
	a.call("filter: bpf", unix.SYS_BPF, nothing, a.buf(128), 128)
	a.call("filter: perf_event_open", unix.SYS_PERF_EVENT_OPEN, a.buf(128), 0, nothing, nothing, 0)
	a.call("filter: io_uring_setup", unix.SYS_IO_URING_SETUP, 1, a.buf(128))
	a.call("filter: io_uring_enter", unix.SYS_IO_URING_ENTER, nothing, 0, 0, 0, 0, 0)
	a.call("filter: io_uring_register", unix.SYS_IO_URING_REGISTER, nothing, 0, 0, 0)
	a.call("filter: io_setup", unix.SYS_IO_SETUP, 1, a.words(0))
	a.call("filter: userfaultfd", unix.SYS_USERFAULTFD, 0)
	a.call("filter: keyctl", unix.SYS_KEYCTL, 0, nothing, 1)
	a.call("filter: add_key", unix.SYS_ADD_KEY, a.str("user"), a.str("x"), a.str("y"), 1, nothing)
	a.call("filter: request_key", unix.SYS_REQUEST_KEY, a.str("user"), a.str("x"), 0, 0)
	a.call("filter: init_module", unix.SYS_INIT_MODULE, 0, 0, 0)
	a.call("filter: finit_module", unix.SYS_FINIT_MODULE, nothing, 0, 0)
	a.call("filter: delete_module", unix.SYS_DELETE_MODULE, a.str("absent"), 0)
	a.call("filter: kexec_load", unix.SYS_KEXEC_LOAD, 0, 0, 0, nothing)
	a.call("filter: reboot", unix.SYS_REBOOT, 0, 0, 0, 0)
	a.call("filter: swapon", unix.SYS_SWAPON, a.str("/absent"), 0)
	a.call("filter: quotactl", unix.SYS_QUOTACTL, 0, 0, 0, 0)
	a.call("filter: syslog", unix.SYS_SYSLOG, 3, a.buf(64), 64)
	a.call("filter: settimeofday", unix.SYS_SETTIMEOFDAY, 0, 0)
	a.call("filter: clock_settime", unix.SYS_CLOCK_SETTIME, 99, a.words(0, 0))
	a.call("filter: adjtimex", unix.SYS_ADJTIMEX, a.buf(256))
	a.call("filter: timer_create", unix.SYS_TIMER_CREATE, 1, 0, a.buf(8))
	a.call("filter: timerfd_create", unix.SYS_TIMERFD_CREATE, 1, 0)
	a.call("filter: signalfd4", unix.SYS_SIGNALFD4, nothing, a.buf(8), 8, 0)
	a.call("filter: eventfd2", unix.SYS_EVENTFD2, 0, 0)
	a.call("filter: epoll_create1", unix.SYS_EPOLL_CREATE1, 0)
	a.call("filter: personality", unix.SYS_PERSONALITY, 0x0040000)
	a.call("filter: uname", unix.SYS_UNAME, a.buf(512))
	a.call("filter: sysinfo", unix.SYS_SYSINFO, a.buf(256))
	a.call("filter: membarrier", unix.SYS_MEMBARRIER, 0, 0, 0)
	a.call("filter: priority-inheriting futex", unix.SYS_FUTEX, a.buf(8), 6, 0, 0, 0, 0)
	a.call("filter: set_robust_list", unix.SYS_SET_ROBUST_LIST, a.buf(24), 24)
	a.call("filter: rseq", unix.SYS_RSEQ, a.buf(32), 32, 0, 0)
	a.call("filter: dup", unix.SYS_DUP, 0)
	a.call("filter: dup3", unix.SYS_DUP3, 0, 63, 0)
	a.call("filter: close_range", unix.SYS_CLOSE_RANGE, 1000, 2000, 0)
}

func (a *attacker) loosenConfinement() {
	a.call("filter: landlock_create_ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, a.words(1, 0, 0), 8, 0)
	a.call("filter: landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, nothing, 0)
	a.call("filter: seccomp, a filter that allows all", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, a.words(1, uint64(a.words(0x7fff0000<<32|6))))
	a.call("filter: seccomp by prctl", unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0)
	a.call("filter: no_new_privs off", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)
	a.call("filter: dumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	a.call("filter: outlive the parent", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
	a.call("filter: let any process trace", unix.SYS_PRCTL, unix.PR_SET_PTRACER, nothing, 0, 0, 0)
	a.call("filter: raise a limit", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_FSIZE, a.words(1<<40, 1<<40), 0)
	a.call("filter: raise the memory limit", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_DATA, a.words(1<<40, 1<<40), 0)
}

// fromEveryThread makes sure that no thread was forgotten.
func (a *attacker) fromEveryThread() {
	var mu sync.Mutex
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	path, null := a.str(filepath.Join(a.Outside, "a.md")), a.str("/dev/null")
	ready.Add(spareThreads)
	for range spareThreads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
			_, _, read := unix.RawSyscall6(unix.SYS_OPENAT, cwd, path, quietly, 0, 0, 0)
			_, _, write := unix.RawSyscall6(unix.SYS_OPENAT, cwd, null, unix.O_WRONLY|quietly, 0, 0, 0)
			_, _, socket := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
			_, _, caps := unix.RawSyscall(unix.SYS_CAPGET, nothing, 0, 0)
			mu.Lock()
			defer mu.Unlock()
			a.log = append(a.log, attempt{"read: from another thread", int(read)}, attempt{"write: from another thread", int(write)},
				attempt{"filter: socket from another thread", int(socket)}, attempt{"filter: capget from another thread", int(caps)})
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}

// sweep tries every number that a system call has or may get, except those that
// the kernel lets pass every filter: they are the tail end of a user space
// probe, and raise SIGILL where there is none.
func (a *attacker) sweep() {
	listed := probeTails()
	for _, c := range allowedCalls(0) {
		listed = append(listed, uintptr(c.nr))
	}
	for nr := range uintptr(1024) {
		if !slices.Contains(listed, nr) {
			a.call("filter: number "+strconv.Itoa(int(nr)), nr, nothing, nothing, nothing, nothing, nothing, nothing)
		}
	}
	for _, nr := range []uintptr{1 << 30, 1<<30 | 39, 1<<30 | 520, 1 << 31, 0x7fffffff} {
		a.call("filter: number "+strconv.Itoa(int(nr)), nr)
	}
}

// exhaust takes what there is of memory and descriptors.
func (a *attacker) exhaust() {
	const (
		private  = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
		writable = unix.PROT_READ | unix.PROT_WRITE
		piece    = 8 * mib
	)
	a.call("memory: 4 GiB", unix.SYS_MMAP, 0, 4<<30, writable, private, nothing, 0)
	a.call("memory: 4 GiB, unreserved", unix.SYS_MMAP, 0, 4<<30, writable, private|unix.MAP_NORESERVE, nothing, 0)
	a.call("memory: 4 GiB, readable", unix.SYS_MMAP, 0, 4<<30, unix.PROT_READ, private, nothing, 0)
	a.call("filter: shared memory", unix.SYS_MMAP, 0, 4096, writable, unix.MAP_SHARED|unix.MAP_ANONYMOUS, nothing, 0)
	a.call("filter: memory that grows down", unix.SYS_MMAP, 0, 4096, writable, private|unix.MAP_GROWSDOWN, nothing, 0)
	a.call("filter: huge pages", unix.SYS_MMAP, 0, 2*mib, writable, private|unix.MAP_HUGETLB, nothing, 0)
	var pieces []uintptr
	for len(pieces) < 1024 {
		address, _, errno := unix.RawSyscall6(unix.SYS_MMAP, 0, piece, writable, private, nothing, 0)
		if errno != 0 {
			a.log = append(a.log, attempt{"memory: in pieces", int(errno)})
			break
		}
		pieces = append(pieces, address)
	}
	if len(pieces)*piece > minMemory {
		a.log = append(a.log, attempt{"memory: more pieces than the budget", 0})
	}
	for _, address := range pieces {
		_, _, _ = unix.RawSyscall(unix.SYS_MUNMAP, address, piece, 0)
	}
	for range 2 * descriptors {
		_, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, cwd, a.inRoot("a.md"), quietly, 0, 0, 0)
		if errno != 0 {
			a.log = append(a.log, attempt{"descriptors: until there are no more", int(errno)})
			return
		}
	}
	a.log = append(a.log, attempt{"descriptors: without end", 0})
}
