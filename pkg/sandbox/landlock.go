package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// Access rights that Landlock can refuse, by the version that brought them.
const (
	landlockFS1 = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	landlockTCP   = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	landlockUDP   = unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
	landlockScope = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL

	readable = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
)

// ruleset refuses all that the kernel's version knows to refuse.
func ruleset(abi int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockFS1}
	if abi >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		attr.Handled_access_net = landlockTCP
	}
	if abi >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		attr.Scoped = landlockScope
	}
	if abi >= 9 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if abi >= 10 {
		attr.Handled_access_net |= landlockUDP
	}
	return attr
}

// restrictPaths leaves every thread with read access beneath the given open
// directories and to nothing else. It is done by system call and not by path
// through a library, so that a rule is bound to the very directory that was
// opened and checked, and so that nothing is ever downgraded in silence.
func restrictPaths(abi int, directories []int) error {
	attr := ruleset(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: create the ruleset: %w", errno)
	}
	rules := int(fd)
	defer func() { _ = unix.Close(rules) }()
	for _, directory := range directories {
		if err := allowBeneath(rules, directory, readable); err != nil {
			return err
		}
	}
	if list := threadList(); list != "" {
		if err := allowListing(rules, list); err != nil {
			return err
		}
	}
	// The kernel's own application to all threads came with ABI 8; psx does it
	// on every version, with the C library's threads or without.
	if _, _, errno := psx.Syscall3(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), uintptr(landlockLog(abi)), 0); errno != 0 {
		return fmt.Errorf("landlock: restrict: %w", errno)
	}
	return nil
}

func allowListing(rules int, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("landlock: open %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	return allowBeneath(rules, fd, unix.LANDLOCK_ACCESS_FS_READ_DIR)
}

func allowBeneath(rules, directory int, access uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(directory)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules),
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock: add a rule: %w", errno)
	}
	return nil
}

// landlockLog keeps refusals out of the audit log where that can be asked for:
// every start makes some on purpose, and a child that was taken over could
// flood it.
func landlockLog(abi int) int {
	if abi >= 7 {
		return unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF
	}
	return 0
}
