package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/dustin/go-humanize"

	"github.com/newos4/relay/pkg/permission"
	"github.com/newos4/relay/pkg/storage"
)

// spareInodes are for files that are being written, relayd's state, and the lock.
const spareInodes = 16

// lookAtSpace asks whether something can be written at all, and then whether there
// is room for all that strangers may have relayd store.
func lookAtSpace(_ context.Context, p *patient) []Finding {
	state, _ := permission.Nearest(filepath.Dir(p.cfg.StatePath("x")))
	for _, dir := range []string{p.threads, state} {
		if found := p.tryWriting(dir); found != nil {
			return []Finding{*found}
		}
	}
	disk, err := p.host.FileSystem(p.threads)
	if err != nil {
		return []Finding{note("the room cannot be told", err.Error(), "")}
	}
	free, need := humanize.Bytes(uint64(max(disk.Free, 0))), p.growth()
	if disk.Free == 0 {
		return []Finding{noRoom(p.threads, "no space is left")}
	}
	missing := int64(p.cfg.Limits.Threads - p.survey.Threads + spareInodes)
	if disk.Inodes > 0 && disk.FreeInodes < missing {
		return []Finding{warning(fmt.Sprintf("only %d more files fit on the disk", disk.FreeInodes),
			fmt.Sprintf("limits.threads %d may need %d", p.cfg.Limits.Threads, missing), "df -i "+quoted(p.threads))}
	}
	if disk.Free < need {
		return []Finding{warning(free+" free", fmt.Sprintf("%d full threads may need %s more", p.cfg.Limits.Threads, humanize.Bytes(uint64(need))),
			"make room, or lower limits.threads or limits.messages")}
	}
	return []Finding{ok("%s free, and %d full threads need at most %s more", free, p.cfg.Limits.Threads, humanize.Bytes(uint64(need)))}
}

// growth is how many bytes all threads may still grow by. A thread that is
// written stands twice for a moment.
func (p *patient) growth() int64 {
	full := int64(p.cfg.Limits.Messages) * storage.MessageBytes(p.cfg.Limits.Text)
	return max(full, full*int64(p.cfg.Limits.Threads+1)-p.survey.Bytes)
}

// tryWriting finds nothing where this user may not write, or where there is no
// directory: other checks tell of that.
func (p *patient) tryWriting(dir string) *Finding {
	err := storage.TryWrite(dir)
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	found := noRoom(dir, err.Error())
	return &found
}

func noRoom(dir, why string) Finding {
	return failure("nothing can be written in "+dir, why, "df -h "+quoted(dir)+"; df -i "+quoted(dir)+"; findmnt -T "+quoted(dir))
}

// lookAtDisk asks for the kinds of file systems whose promises are weaker than
// those that relayd gives on.
func lookAtDisk(_ context.Context, p *patient) []Finding {
	disk, err := p.host.FileSystem(p.threads)
	if err != nil {
		return nil // the check of the room has told
	}
	const move = "keep root on a local disk"
	var found []Finding
	if disk.IsRemote {
		found = append(found, warning("the threads lie on "+disk.Name,
			"locks must work on it between all hosts, and what others write is noticed by polling", move))
	}
	if disk.IsMemory {
		found = append(found, warning("the threads lie on "+disk.Name, "a reboot loses them all", move))
	}
	syncs, err := p.host.SyncsDirectories(p.threads)
	switch {
	case errors.Is(err, fs.ErrPermission): // told by the check of the directory
	case err != nil:
		found = append(found, failure("the file system cannot sync the thread directory", err.Error(), "dmesg | tail"))
	case !syncs:
		found = append(found, warning("the file system cannot sync directories", "a power loss may undo the newest messages", move))
	}
	return orOK(found, "syncs files and directories")
}

// openFilesSpare are for relayd itself: threads, state, watches, pipes and the
// connections to a model.
const openFilesSpare = 128

// lookAtOpenFiles wants a connection for a browser of each thread: a poll comes
// every half minute and connections are kept for longer.
func lookAtOpenFiles(_ context.Context, p *patient) []Finding {
	limit, err := p.host.OpenFiles()
	if err != nil {
		return []Finding{note("the limit of open files cannot be told", err.Error(), "")}
	}
	need := uint64(p.cfg.Limits.Threads + openFilesSpare)
	if limit < need {
		return []Finding{warning(fmt.Sprintf("at most %d files may be open", limit),
			fmt.Sprintf("%d threads polled at once need %d", p.cfg.Limits.Threads, need),
			fmt.Sprintf("ulimit -Hn %d, or LimitNOFILE=%d in relayd.service", need, need))}
	}
	return []Finding{ok("%d may be open, and %d threads polled at once need %d", limit, p.cfg.Limits.Threads, need)}
}

// lookAtWatch tries a watch: what is left of the kernel's limits cannot be read.
func lookAtWatch(_ context.Context, p *patient) []Finding {
	if !p.isOpen {
		return nil
	}
	err := p.host.Watch(p.threads)
	if err == nil {
		return []Finding{ok("the kernel tells of changes")}
	}
	const why = "threads are polled instead, and answers come some seconds later"
	mend := ""
	if refused, ok := errors.AsType[*storage.WatchError](err); ok {
		mend = p.raise(refused)
	}
	return []Finding{warning(err.Error(), why, mend)}
}

// raise returns the command that doubles the limit that was reached.
func (p *patient) raise(refused *storage.WatchError) string {
	if refused.Sysctl == "" {
		return ""
	}
	now, err := p.host.Sysctl(refused.Sysctl)
	if err != nil {
		return refused.Mend()
	}
	const least = 512
	return fmt.Sprintf("sysctl -w %s=%d", refused.Sysctl, max(2*now, least))
}
