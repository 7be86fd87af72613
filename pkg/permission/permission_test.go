package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func testIdentity() Identity {
	return Identity{
		Name:      "alice",
		Groups:    []int{100},
		GroupName: func(gid int) string { return map[int]string{0: "root", 100: "users", 200: "relay"}[gid] },
		UserName:  func(uid int) string { return map[int]string{0: "root", 50: "relayd"}[uid] },
	}
}

// Ensures that somebody without the right group is told which to ask for, and
// that others are told whose the files are (systemd/systemd#7090, #14158).
func TestIdentityHint(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		owner syscall.Stat_t
		want  string
	}{
		"group that shares": {
			syscall.Stat_t{Uid: 50, Gid: 200, Mode: syscall.S_IFDIR | 0o2770},
			`you are not in the group "relay"; ask for: adduser alice relay, then log in again`,
		},
		"group that does not share": {
			syscall.Stat_t{Uid: 50, Gid: 200, Mode: syscall.S_IFDIR | 0o700},
			`/data belongs to the user "relayd" and the group "relay", mode 0700; you are "alice"`,
		},
		"member already": {
			syscall.Stat_t{Uid: 50, Gid: 100, Mode: syscall.S_IFDIR | 0o2750},
			`/data belongs to the user "relayd" and the group "users", mode 2750; you are "alice"`,
		},
		"group of root": {
			syscall.Stat_t{Mode: syscall.S_IFREG | 0o640},
			`/data belongs to the user "root" and the group "root", mode 0640; you are "alice"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := testIdentity().hint("/data", &test.owner); got != test.want {
				t.Errorf("hint is %q, want %q", got, test.want)
			}
		})
	}
}

// Ensures that the hint is about the directory that refuses, which may be far
// above the file that was wanted, and that other errors get none.
func TestHint(t *testing.T) {
	t.Parallel()
	dir := mustDir(t, 0o700) // which is nobody's to share, whatever its group
	wanted := filepath.Join(dir, "spaces", "newos4", "x.json")
	refused := fmt.Errorf("reading: %w", &fs.PathError{Op: "open", Path: wanted, Err: syscall.EACCES})
	if got := Hint(refused, testIdentity); !strings.HasPrefix(got, dir+" belongs to ") {
		t.Errorf("hint is %q, want one about %s", got, dir)
	}
	_, missing := os.Open(wanted)
	for _, err := range []error{missing, errors.New("other"), syscall.EACCES} {
		if got := Hint(err, testIdentity); got != "" {
			t.Errorf("%v: hint is %q, want none", err, got)
		}
	}
}
