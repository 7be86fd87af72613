package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/newos4/relay/pkg/permission"
)

// fileOwner is owner, group and mode of a path.
type fileOwner = syscall.Stat_t

// Bits of a mode.
const (
	groupAll  = 0o070
	groupRead = 0o050
	othersAll = 0o007
)

// describe returns a path with its owner, group and mode.
func (p *patient) describe(path string, owner *fileOwner) string {
	return fmt.Sprintf("%s, %s:%s %04o", path, p.me.UserName(int(owner.Uid)), p.me.GroupName(int(owner.Gid)), owner.Mode&0o7777)
}

// lookAtConfiguration looks at the file alone: its values were checked when it was
// loaded.
func lookAtConfiguration(_ context.Context, p *patient) []Finding {
	writable, err := permission.Everybody(p.ConfigFile, permission.Write)
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{ok("there is no %s, so defaults, environment and flags hold", p.ConfigFile)}
	}
	if err != nil {
		return []Finding{note("whose the file is cannot be told", err.Error(), p.hint(err))}
	}
	if writable != 0 {
		return []Finding{failure("everybody on this host may write to "+p.ConfigFile,
			"who does may have relayd run any program", "chmod o-w "+quoted(p.ConfigFile))}
	}
	dir := filepath.Dir(p.ConfigFile)
	owner, err := permission.Stat(dir)
	if err == nil && owner.Mode&syscall.S_ISVTX == 0 {
		writable, err = permission.Everybody(dir, permission.Write)
	}
	if err == nil && writable != 0 {
		return []Finding{failure("everybody on this host may replace "+p.ConfigFile,
			"the directory is open to all", "chmod o-w "+quoted(dir))}
	}
	return []Finding{ok("%s", p.ConfigFile)}
}

// lookAtUser tells with whose eyes the rest is seen.
func lookAtUser(_ context.Context, p *patient) []Finding {
	if p.isRoot() && p.owner != nil && p.owner.Uid != 0 {
		return []Finding{note("checked as root, whom the kernel refuses nothing",
			"relayd may see it differently", p.asService())}
	}
	if !p.isService() {
		return []Finding{note(fmt.Sprintf("checked as %s, who may run chat and not relayd", p.me.Name),
			"what relayd alone may read stays unchecked", p.asService())}
	}
	return []Finding{ok("checked as %s", p.me.Name)}
}

func lookAtDirectory(_ context.Context, p *patient) []Finding {
	if err := p.Store.CheckAccess(); err != nil {
		return []Finding{failure("the thread directory cannot be used", err.Error(), p.hint(err))}
	}
	p.isOpen = true
	if !p.isMade {
		return []Finding{ok("%s will be made", p.Store.Path())}
	}
	path, mode := quoted(p.threads), p.owner.Mode
	switch {
	case mode&permission.Write != 0:
		return []Finding{failure("everybody may write to the threads", p.describe(p.threads, p.owner), "chmod 2770 "+path)}
	case mode&othersAll != 0:
		return []Finding{warning("everybody may see which threads there are", p.describe(p.threads, p.owner), "chmod 2770 "+path)}
	case mode&groupAll != groupAll:
		return []Finding{warning("chat works for the owner of the threads alone", p.describe(p.threads, p.owner), "chmod 2770 "+path)}
	case mode&syscall.S_ISGID == 0:
		return []Finding{warning("new files do not get the group of the thread directory", p.describe(p.threads, p.owner), "chmod g+s "+path)}
	}
	if dir, above := p.closedAbove(); dir != "" {
		return []Finding{warning("the group cannot get to the threads", p.describe(dir, above), "chmod g+x "+quoted(dir)+
			" && chgrp "+p.me.GroupName(int(p.owner.Gid))+" "+quoted(dir))}
	}
	return []Finding{ok("%s", p.describe(p.threads, p.owner))}
}

// closedAbove returns the first directory above the threads that their group
// cannot pass, "" for none.
func (p *patient) closedAbove() (string, *fileOwner) {
	for dir := filepath.Dir(p.threads); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		owner, err := permission.Stat(dir)
		if err != nil {
			return "", nil
		}
		if !isPassable(owner, p.owner.Gid) {
			return dir, owner
		}
	}
	return "", nil
}

// isPassable reports whether every member of the group gets through a directory.
func isPassable(dir *fileOwner, gid uint32) bool {
	const groupSearch = permission.Search << 3
	return dir.Mode&permission.Search != 0 || dir.Gid == gid && dir.Mode&groupSearch != 0
}

// lookAtGroup tells whether this user may run chat. That the user may use the
// directory at all was looked at before.
func lookAtGroup(_ context.Context, p *patient) []Finding {
	if !p.isOpen || !p.isMade {
		return nil
	}
	if p.owner.Gid == 0 {
		return []Finding{warning("the threads belong to the group of root", "who is not root or their owner cannot run chat",
			"chgrp -R relay "+quoted(p.cfg.Root))}
	}
	group := p.me.GroupName(int(p.owner.Gid))
	if p.isRoot() {
		return []Finding{ok("who runs chat must be in the group %s: adduser NAME %s", group, group)}
	}
	if !p.me.IsIn(p.owner.Gid) {
		return []Finding{warning("the user may use the threads and is not in their group",
			"what it writes may be closed to others", p.me.JoinHint(p.owner.Gid))}
	}
	return []Finding{ok("%s is in the group %s, whose members may run chat", p.me.Name, group)}
}

func lookAtState(_ context.Context, p *patient) []Finding {
	dir := filepath.Dir(p.cfg.StatePath("x"))
	if p.isService() || p.isRoot() {
		if err := permission.CheckDir(dir, permission.Read|permission.Write|permission.Search); err != nil {
			return []Finding{failure("the state directory cannot be used", err.Error(), p.hint(err))}
		}
	}
	owner, err := permission.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{ok("%s will be made", dir)}
	}
	if err != nil && !p.isOpen {
		return nil // for the reason that the check of the threads gives
	}
	if err != nil {
		return []Finding{note("the state directory cannot be looked at", err.Error(), p.hint(err))}
	}
	if owner.Mode&permission.Write != 0 {
		return []Finding{failure("everybody may change the state of relayd", p.describe(dir, owner), "chmod o-w "+quoted(dir))}
	}
	if p.isMade && (owner.Gid != p.owner.Gid || owner.Mode&groupRead != groupRead) {
		return []Finding{warning("chat cannot show what the agent does", p.describe(dir, owner),
			"chgrp "+p.me.GroupName(int(p.owner.Gid))+" "+quoted(dir)+" && chmod 2750 "+quoted(dir))}
	}
	return []Finding{ok("%s", p.describe(dir, owner))}
}
