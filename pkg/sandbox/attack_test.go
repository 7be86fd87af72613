package sandbox

import (
	"encoding/binary"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is what someone does who has taken the child over: it runs in a
// child that has confined itself by the product's own code, and from then on
// makes system calls as it likes.

// target is what the attacker knows of its surroundings.
type target struct {
	Root     string `json:"root"`     // a readable root, with the files below
	Outside  string `json:"outside"`  // a directory of the same shape outside
	Parent   int    `json:"parent"`   // the parent's process id
	TCPPort  int    `json:"tcp_port"` // listeners of the parent
	Unix     string `json:"unix"`
	Abstract string `json:"abstract"`
	Landlock bool   `json:"landlock"` // what is said to be in force
	Filter   bool   `json:"filter"`
}

// attempt is one system call and what came of it. Errno 0 means that it worked.
type attempt struct {
	Name  string `json:"name"`
	Errno int    `json:"errno"`
}

// attacker makes attempts. It never allocates between a fork and an exit.
type attacker struct {
	target
	log  []attempt
	keep [][]byte // what system calls were given the addresses of
}

func (a *attacker) attack() []attempt {
	a.readOutside()
	a.writeFiles()
	a.connect()
	a.signal()
	if a.Landlock || a.Filter {
		a.runPrograms()
		a.traceParent()
	}
	if a.Filter {
		a.changeMetadata()
		a.startProcesses()
		a.touchProcesses()
		a.openSockets()
		a.gainPrivileges()
		a.reachKernel()
		a.loosenConfinement()
		a.legacyCalls()
		a.fromEveryThread()
		a.sweep()
	}
	a.exhaust()
	runtime.KeepAlive(a.keep)
	return a.log
}

// call makes a system call and logs what came of it. What only the filter stops
// is not tried without it.
func (a *attacker) call(name string, nr uintptr, args ...uintptr) uintptr {
	if strings.HasPrefix(name, "filter:") && !a.Filter {
		return nothing
	}
	var full [6]uintptr
	copy(full[:], args)
	result, _, errno := unix.RawSyscall6(nr, full[0], full[1], full[2], full[3], full[4], full[5])
	a.log = append(a.log, attempt{name, int(errno)})
	if errno != 0 {
		return nothing
	}
	return result
}

// start makes a call that would leave a second process running this function.
func (a *attacker) start(name string, nr uintptr, args ...uintptr) {
	var full [6]uintptr
	copy(full[:], args)
	pid, _, errno := unix.RawSyscall6(nr, full[0], full[1], full[2], full[3], full[4], full[5])
	if errno == 0 && pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	a.log = append(a.log, attempt{name, int(errno)})
}

// str returns the address of a C string.
func (a *attacker) str(s string) uintptr {
	b := append([]byte(s), 0)
	a.keep = append(a.keep, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// buf returns the address of n zero bytes.
func (a *attacker) buf(n int) uintptr { return a.str(strings.Repeat("\x00", n)) }

// words returns the address of 64-bit words.
func (a *attacker) words(words ...uint64) uintptr {
	b := make([]byte, 0, 8*len(words)+8)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	a.keep = append(a.keep, b)
	return uintptr(unsafe.Pointer(&b[:1][0]))
}

const (
	cwd     = ^uintptr(99) // AT_FDCWD
	nothing = ^uintptr(0)
	quietly = unix.O_NOFOLLOW | unix.O_CLOEXEC
)

func (a *attacker) open(name, path string, flags int) uintptr {
	return a.call(name, unix.SYS_OPENAT, cwd, a.str(path), uintptr(flags|quietly), 0o600)
}

func (a *attacker) inRoot(name string) uintptr { return a.str(filepath.Join(a.Root, name)) }

// readOutside names the successes that are right "allowed: ...", so that the
// rest is known not to fail for a reason of its own.
func (a *attacker) readOutside() {
	root := a.open("allowed: open the root", a.Root, unix.O_RDONLY|unix.O_DIRECTORY)
	a.open("allowed: open a file in the root", filepath.Join(a.Root, "a.md"), unix.O_RDONLY)
	a.call("read: openat ../ from the root", unix.SYS_OPENAT, root, a.str("../outside/a.md"), unix.O_RDONLY|quietly)
	a.call("read: openat .. from the root", unix.SYS_OPENAT, root, a.str(".."), unix.O_RDONLY|unix.O_DIRECTORY|quietly)
	a.open("read: file outside", filepath.Join(a.Outside, "a.md"), unix.O_RDONLY)
	a.open("read: directory outside", a.Outside, unix.O_RDONLY|unix.O_DIRECTORY)
	a.open("read: through a link in the root", filepath.Join(a.Root, "leak", "a.md"), unix.O_RDONLY)
	for _, path := range []string{
		"/", "/etc/passwd", "/etc", "/proc", "/proc/self/environ", "/proc/self/maps", "/proc/self/mem", "/proc/self/exe",
		"/proc/self/cmdline", "/proc/self/fd", "/proc/self/root/etc/passwd", "/proc/self/cwd/etc/passwd", "/proc/1/environ",
		"/proc/thread-self/mem", "/sys/kernel", "/dev", "/dev/null", "/dev/zero", "/dev/tty", "/dev/shm", "/run", "/tmp", "/var/run",
	} {
		a.open("read: "+path, path, unix.O_RDONLY)
	}
	a.call("filter: open without O_NOFOLLOW", unix.SYS_OPENAT, cwd, a.inRoot("a.md"), unix.O_RDONLY|unix.O_CLOEXEC)
	a.open("filter: open O_PATH", "/etc/passwd", unix.O_PATH)
	a.call("filter: openat2", unix.SYS_OPENAT2, cwd, a.inRoot("a.md"), a.words(unix.O_RDWR, 0, 0), 24)
	a.call("filter: readlinkat", unix.SYS_READLINKAT, cwd, a.inRoot("leak"), a.buf(64), 64)
	a.call("filter: statx", unix.SYS_STATX, cwd, a.str("/etc/passwd"), 0, 0, a.buf(256))
	a.call("filter: fstatat through links", unix.SYS_NEWFSTATAT, cwd, a.str("/etc/passwd"), a.buf(256), 0)
	a.call("filter: faccessat", unix.SYS_FACCESSAT, cwd, a.str("/etc/passwd"), 0)
	a.call("filter: name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, cwd, a.str("/etc/passwd"), a.words(128), a.buf(8), 0)
	a.call("filter: open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, cwd, a.words(8|1<<32, 2), unix.O_RDONLY)
	a.call("filter: open_tree", unix.SYS_OPEN_TREE, cwd, a.str("/"), 0)
	a.call("filter: inotify_init1", unix.SYS_INOTIFY_INIT1, 0)
	a.call("filter: fanotify_init", unix.SYS_FANOTIFY_INIT, 0, 0)
}

func (a *attacker) writeFiles() {
	for name, flags := range map[string]int{
		"O_WRONLY": unix.O_WRONLY, "O_RDWR": unix.O_RDWR, "O_WRONLY|O_APPEND": unix.O_WRONLY | unix.O_APPEND,
		"O_RDONLY|O_TRUNC": unix.O_TRUNC,
	} {
		a.open("write: open "+name+" in the root", filepath.Join(a.Root, "a.md"), flags)
		a.open("write: open "+name+" outside", filepath.Join(a.Outside, "a.md"), flags)
	}
	a.open("filter: open O_RDONLY|O_CREAT", filepath.Join(a.Root, "a.md"), unix.O_CREAT)
	a.open("filter: open with access mode 3", filepath.Join(a.Root, "a.md"), unix.O_ACCMODE)
	a.open("write: create in the root", filepath.Join(a.Root, "new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	a.open("write: O_TMPFILE in the root", a.Root, unix.O_RDWR|unix.O_TMPFILE)
	a.open("write: own memory", "/proc/self/mem", unix.O_RDWR)
	a.open("write: out of memory score", "/proc/self/oom_score_adj", unix.O_WRONLY)
	a.open("write: /dev/null", "/dev/null", unix.O_WRONLY)
	for _, dir := range []string{a.Root, a.Outside} {
		in := func(name string) uintptr { return a.str(filepath.Join(dir, name)) }
		where := " in the root"
		if dir == a.Outside {
			where = " outside"
		}
		a.call("write: unlinkat"+where, unix.SYS_UNLINKAT, cwd, in("a.md"), 0)
		a.call("write: rmdir"+where, unix.SYS_UNLINKAT, cwd, in("dir"), unix.AT_REMOVEDIR)
		a.call("write: renameat2"+where, unix.SYS_RENAMEAT2, cwd, in("a.md"), cwd, in("b.md"), 0)
		a.call("write: linkat"+where, unix.SYS_LINKAT, cwd, in("a.md"), cwd, in("b.md"), 0)
		a.call("write: symlinkat"+where, unix.SYS_SYMLINKAT, a.str("/etc/passwd"), cwd, in("b.md"))
		a.call("write: mkdirat"+where, unix.SYS_MKDIRAT, cwd, in("new"), 0o700)
		a.call("write: mknodat fifo"+where, unix.SYS_MKNODAT, cwd, in("new"), unix.S_IFIFO|0o600, 0)
		a.call("write: mknodat device"+where, unix.SYS_MKNODAT, cwd, in("new"), unix.S_IFCHR|0o600, 0x101)
		a.call("write: truncate"+where, unix.SYS_TRUNCATE, in("a.md"), 0)
	}
	file := a.open("allowed: open a file in the root again", filepath.Join(a.Root, "a.md"), unix.O_RDONLY)
	a.call("filter: ftruncate", unix.SYS_FTRUNCATE, file, 0)
	a.call("filter: fallocate", unix.SYS_FALLOCATE, file, 0, 0, 4096)
	a.call("filter: pwrite64", unix.SYS_PWRITE64, file, a.buf(8), 8, 0)
	a.call("filter: writev", unix.SYS_WRITEV, file, a.words(uint64(a.buf(8)), 8), 1)
	a.call("filter: copy_file_range", unix.SYS_COPY_FILE_RANGE, file, 0, file, 0, 8, 0)
	a.call("filter: splice", unix.SYS_SPLICE, file, 0, 1, 0, 8, 0)
	a.call("filter: vmsplice", unix.SYS_VMSPLICE, 1, a.words(uint64(a.buf(8)), 8), 1, 0)
	a.call("filter: sendfile", unix.SYS_SENDFILE, 1, file, 0, 8)
	a.call("filter: fsync", unix.SYS_FSYNC, file)
	a.call("filter: sync", unix.SYS_SYNC)
	a.call("filter: mq_open", unix.SYS_MQ_OPEN, a.str("q"), unix.O_CREAT|unix.O_RDWR, 0o600, 0)
	a.call("filter: shmget", unix.SYS_SHMGET, 0, 4096, 0o1600)
	a.call("filter: semget", unix.SYS_SEMGET, 0, 1, 0o1600)
	a.call("filter: msgget", unix.SYS_MSGGET, 0, 0o1600)
	a.call("filter: memfd_create", unix.SYS_MEMFD_CREATE, a.str("x"), 0)
	a.call("filter: memfd_secret", unix.SYS_MEMFD_SECRET, 0)
	a.call("filter: pipe2", unix.SYS_PIPE2, a.buf(8), 0)
	a.call("refused: write to a file that is open for reading", unix.SYS_WRITE, file, a.buf(8), 8)
}

func (a *attacker) changeMetadata() {
	file := a.open("allowed: open a file to change", filepath.Join(a.Root, "a.md"), unix.O_RDONLY)
	for _, dir := range []string{a.Root, a.Outside} {
		path := a.str(filepath.Join(dir, "a.md"))
		a.call("filter: fchmodat", unix.SYS_FCHMODAT, cwd, path, 0o777)
		a.call("filter: fchmodat2", unix.SYS_FCHMODAT2, cwd, path, 0o777, 0)
		a.call("filter: fchownat", unix.SYS_FCHOWNAT, cwd, path, 1, 1, 0)
		a.call("filter: utimensat", unix.SYS_UTIMENSAT, cwd, path, a.words(1, 0, 1, 0), 0)
		a.call("filter: setxattr", unix.SYS_SETXATTR, path, a.str("user.x"), a.str("y"), 1, 0)
		a.call("filter: removexattr", unix.SYS_REMOVEXATTR, path, a.str("user.x"))
		a.call("filter: getxattr", unix.SYS_GETXATTR, path, a.str("user.x"), a.buf(8), 8)
	}
	a.call("filter: fchmod", unix.SYS_FCHMOD, file, 0o777)
	a.call("filter: fchown", unix.SYS_FCHOWN, file, 1, 1)
	a.call("filter: futimens", unix.SYS_UTIMENSAT, file, 0, a.words(1, 0, 1, 0), 0)
	a.call("filter: fsetxattr", unix.SYS_FSETXATTR, file, a.str("user.x"), a.str("y"), 1, 0)
	a.call("filter: flock", unix.SYS_FLOCK, file, unix.LOCK_SH)
	a.call("filter: lease", unix.SYS_FCNTL, file, unix.F_SETLEASE, unix.F_RDLCK)
	a.call("filter: lock", unix.SYS_FCNTL, file, unix.F_SETLK, a.words(0, 0, 0, 0))
	a.call("filter: signal owner", unix.SYS_FCNTL, 0, unix.F_SETOWN, uintptr(a.Parent))
	a.call("filter: ioctl TIOCSTI", unix.SYS_IOCTL, 0, unix.TIOCSTI, a.str("x"))
	a.call("filter: ioctl FS_IOC_SETFLAGS", unix.SYS_IOCTL, file, unix.FS_IOC_SETFLAGS, a.buf(8))
	a.call("filter: chdir", unix.SYS_CHDIR, a.str("/tmp"))
	a.call("filter: fchdir", unix.SYS_FCHDIR, file)
	a.call("filter: umask", unix.SYS_UMASK, 0)
}
