package cli

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
)

// identity is the user that runs chat, and how numbers become names.
type identity struct {
	name      string
	groups    []int
	groupName func(gid int) string
	userName  func(uid int) string
}

func currentUser() identity {
	groups, _ := os.Getgroups() // without the list the hint still names the group
	return identity{
		name:   nameOfUser(os.Geteuid()),
		groups: append(groups, os.Getegid()),
		groupName: func(gid int) string {
			if group, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
				return group.Name
			}
			return strconv.Itoa(gid)
		},
		userName: nameOfUser,
	}
}

func nameOfUser(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// permissionHint says what to change when err is the kernel's refusal of a path.
// For every other error it is empty, and asks nobody who runs chat.
func permissionHint(err error, who func() identity) string {
	refused, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	path, owner := nearest(refused.Path)
	if owner == nil {
		return ""
	}
	return who().hint(path, owner)
}

// hint says how the user gets access to path, which has that owner, group and
// mode.
func (u identity) hint(path string, owner *syscall.Stat_t) string {
	const groupBits = 0o070
	group := u.groupName(int(owner.Gid))
	isShared := owner.Mode&groupBits != 0 && owner.Gid != 0
	if isShared && !slices.Contains(u.groups, int(owner.Gid)) {
		return fmt.Sprintf("you are not in the group %q; ask for: adduser %s %s, then log in again", group, u.name, group)
	}
	return fmt.Sprintf("%s belongs to the user %q and the group %q, mode %04o; you are %q",
		path, u.userName(int(owner.Uid)), group, owner.Mode&0o7777, u.name)
}

// nearest returns the attributes of path, or of the first directory above it
// that can be looked at: when a path cannot, that directory is what refuses.
func nearest(path string) (string, *syscall.Stat_t) {
	for {
		if info, err := os.Stat(path); err == nil {
			owner, _ := info.Sys().(*syscall.Stat_t)
			return path, owner
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path, nil
		}
		path = parent
	}
}
