// Package permission says who may use a path, and what to change for somebody
// who may not.
package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Identity is a user, and how numbers become names.
type Identity struct {
	UID  int
	Name string
	// Groups are the numbers of all groups that the user is in.
	Groups []int
	// GroupName and UserName return a name, or the number where there is none.
	GroupName func(gid int) string
	UserName  func(uid int) string
}

// Current returns the user that runs this process.
func Current() Identity {
	groups, _ := os.Getgroups() // without the list the hint still names the group
	return Identity{
		UID:    os.Geteuid(),
		Name:   nameOfUser(os.Geteuid()),
		Groups: append(groups, os.Getegid()),
		GroupName: func(gid int) string {
			if group, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
				return group.Name
			}
			return strconv.Itoa(gid)
		},
		UserName: nameOfUser,
	}
}

func nameOfUser(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// Hint says what to change when err is the kernel's refusal of a path. For every
// other error it is empty, and who is not asked.
func Hint(err error, who func() Identity) string {
	refused, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	path, owner := Nearest(refused.Path)
	if owner == nil {
		return ""
	}
	return who().hint(path, owner)
}

// hint says how the user gets access to path, which has that owner, group and
// mode.
func (u Identity) hint(path string, owner *syscall.Stat_t) string {
	if IsShared(owner) && !u.IsIn(owner.Gid) {
		return u.JoinHint(owner.Gid)
	}
	return fmt.Sprintf("%s belongs to the user %q and the group %q, mode %04o; you are %q",
		path, u.UserName(int(owner.Uid)), u.GroupName(int(owner.Gid)), owner.Mode&0o7777, u.Name)
}

// JoinHint says how the user gets into a group.
func (u Identity) JoinHint(gid uint32) string {
	group := u.GroupName(int(gid))
	return fmt.Sprintf("you are not in the group %q; ask for: adduser %s %s, then log in again", group, u.Name, group)
}

// IsIn reports whether the user is in the group.
func (u Identity) IsIn(gid uint32) bool { return slices.Contains(u.Groups, int(gid)) }

// IsShared reports whether a path is meant for its group: the group may do
// something with it, and is not the one of root.
func IsShared(owner *syscall.Stat_t) bool {
	const groupBits = 0o070
	return owner.Mode&groupBits != 0 && owner.Gid != 0
}

// Nearest returns the attributes of path, or of the first directory above it
// that can be looked at: when a path cannot, that directory is what refuses.
func Nearest(path string) (string, *syscall.Stat_t) {
	for {
		if owner, err := Stat(path); err == nil {
			return path, owner
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path, nil
		}
		path = parent
	}
}

// Stat returns owner, group and mode of a path, links followed.
func Stat(path string) (*syscall.Stat_t, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return &st, nil
}

// What a process may want of a path. They are combined with |.
const (
	Read   = unix.R_OK
	Write  = unix.W_OK
	Search = unix.X_OK // of a directory; of a file it means to execute
)

// Check reports whether this process may do what it wants with a path, by asking
// the kernel and touching nothing. The error is an [fs.PathError] with the path
// that refuses.
func Check(path string, want uint32) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, want, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// CheckDir is [Check] of a directory. One that is missing passes when it can be
// made, with the directories above that are missing too.
func CheckDir(dir string, want uint32) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir):
		return CheckDir(filepath.Dir(dir), Write|Search)
	case err != nil:
		return err
	case !info.IsDir():
		return &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	return Check(dir, want)
}

// Everybody returns which of the wanted accesses every user of the host has to
// the path, by the modes of the path and of the directories that lead to it.
func Everybody(path string, want uint32) (uint32, error) {
	owner, err := Stat(path)
	if err != nil {
		return 0, err
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		above, err := Stat(dir)
		if err != nil {
			return 0, err
		}
		if above.Mode&Search == 0 {
			return 0, nil
		}
		if dir == filepath.Dir(dir) {
			return owner.Mode & want, nil
		}
	}
}
