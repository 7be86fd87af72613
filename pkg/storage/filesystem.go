package storage

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// FileSystem is the room and the kind of the file system that a path lies on.
type FileSystem struct {
	// Name is the kind, "" for one that nothing needs to be said of.
	Name string
	// IsRemote: another host or program may change it, and the kernel does not
	// tell of that.
	IsRemote bool
	// IsMemory: a reboot empties it.
	IsMemory bool
	// Free is how many bytes this process may still write there.
	Free int64
	// Inodes is how many files it can hold in all and FreeInodes how many more;
	// both are 0 where there is no such bound.
	Inodes, FreeInodes int64
}

// FileSystem returns the file system that the threads are on.
func (s *Store) FileSystem() (FileSystem, error) {
	f, err := FileSystemOf(s.path)
	if err != nil {
		return f, failure(fmt.Errorf("asking for the free space: %w", err))
	}
	return f, nil
}

// FileSystemOf returns the file system of an existing path.
func FileSystemOf(path string) (FileSystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return FileSystem{}, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return fileSystem(&st), nil
}

// fileSystem reads what the kernel says. Bfree would count what is left for root
// alone.
func fileSystem(st *unix.Statfs_t) FileSystem {
	f := kindOf(st.Type)
	f.Free = int64(st.Bavail) * st.Frsize
	f.Inodes, f.FreeInodes = int64(st.Files), int64(st.Ffree)
	return f
}

// kindOf returns what is known of the file systems whose promises differ from
// those of a local disk.
func kindOf(magic int64) FileSystem {
	switch magic & 0xffffffff {
	case unix.NFS_SUPER_MAGIC:
		return FileSystem{Name: "nfs", IsRemote: true}
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return FileSystem{Name: "smb", IsRemote: true}
	case unix.V9FS_MAGIC:
		return FileSystem{Name: "9p", IsRemote: true}
	case unix.CEPH_SUPER_MAGIC:
		return FileSystem{Name: "ceph", IsRemote: true}
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return FileSystem{Name: "afs", IsRemote: true}
	case unix.CODA_SUPER_MAGIC:
		return FileSystem{Name: "coda", IsRemote: true}
	case unix.FUSE_SUPER_MAGIC:
		return FileSystem{Name: "fuse", IsRemote: true}
	case unix.TMPFS_MAGIC:
		return FileSystem{Name: "tmpfs", IsMemory: true}
	case unix.RAMFS_MAGIC:
		return FileSystem{Name: "ramfs", IsMemory: true}
	}
	return FileSystem{}
}
