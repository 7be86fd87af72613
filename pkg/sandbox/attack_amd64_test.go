package sandbox

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// probeTails are uretprobe and uprobe.
func probeTails() []uintptr { return []uintptr{335, 336} }

// legacyCalls are those that newer architectures do without.
func (a *attacker) legacyCalls() {
	file := a.inRoot("a.md")
	fresh := a.inRoot("b.md")
	outside := a.str(filepath.Join(a.Outside, "a.md"))
	a.call("filter: open", unix.SYS_OPEN, file, unix.O_RDONLY|quietly)
	a.call("filter: open for writing", unix.SYS_OPEN, file, unix.O_RDWR)
	a.call("filter: creat", unix.SYS_CREAT, fresh, 0o600)
	a.call("filter: unlink", unix.SYS_UNLINK, file)
	a.call("filter: rename", unix.SYS_RENAME, file, fresh)
	a.call("filter: renameat", unix.SYS_RENAMEAT, cwd, file, cwd, fresh)
	a.call("filter: link", unix.SYS_LINK, file, fresh)
	a.call("filter: link from outside", unix.SYS_LINK, outside, fresh)
	a.call("filter: symlink", unix.SYS_SYMLINK, outside, fresh)
	a.call("filter: readlink", unix.SYS_READLINK, a.inRoot("leak"), a.buf(64), 64)
	a.call("filter: mkdir", unix.SYS_MKDIR, fresh, 0o700)
	a.call("filter: rmdir", unix.SYS_RMDIR, a.inRoot("dir"))
	a.call("filter: mknod", unix.SYS_MKNOD, fresh, unix.S_IFREG|0o600, 0)
	a.call("filter: chmod", unix.SYS_CHMOD, file, 0o777)
	a.call("filter: chown", unix.SYS_CHOWN, file, 1, 1)
	a.call("filter: lchown", unix.SYS_LCHOWN, file, 1, 1)
	a.call("filter: utime", unix.SYS_UTIME, file, 0)
	a.call("filter: utimes", unix.SYS_UTIMES, file, 0)
	a.call("filter: futimesat", unix.SYS_FUTIMESAT, cwd, file, 0)
	a.call("filter: stat", unix.SYS_STAT, outside, a.buf(256))
	a.call("filter: lstat", unix.SYS_LSTAT, outside, a.buf(256))
	a.call("filter: access", unix.SYS_ACCESS, outside, 0)
	a.call("filter: pipe", unix.SYS_PIPE, a.buf(8))
	a.call("filter: dup2", unix.SYS_DUP2, 0, 63)
	a.call("filter: inotify_init", unix.SYS_INOTIFY_INIT)
	a.call("filter: eventfd", unix.SYS_EVENTFD, 0)
	a.call("filter: epoll_create", unix.SYS_EPOLL_CREATE, 1)
	a.call("filter: alarm", unix.SYS_ALARM, 0)
	a.call("filter: iopl", unix.SYS_IOPL, 3)
	a.call("filter: ioperm", unix.SYS_IOPERM, 0x80, 1, 1)
	a.call("filter: modify_ldt", unix.SYS_MODIFY_LDT, 0, a.buf(64), 64)
	a.call("filter: arch_prctl", unix.SYS_ARCH_PRCTL, 0x1003, a.buf(8))
	a.call("filter: kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, nothing, nothing, 0, 0, nothing)
	a.call("filter: uselib", unix.SYS_USELIB, file)
	a.call("filter: _sysctl", unix.SYS__SYSCTL, 0)
	a.start("process: fork, the old way", unix.SYS_FORK)
	a.start("process: vfork, the old way", unix.SYS_VFORK)
}
