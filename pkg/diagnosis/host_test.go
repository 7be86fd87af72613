package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/storage"
)

func disk(f storage.FileSystem) func(in *installation) {
	return func(in *installation) {
		in.host.FileSystem = func(string) (storage.FileSystem, error) { return f, nil }
	}
}

func syncs(can bool, err error) func(in *installation) {
	return func(in *installation) { in.host.SyncsDirectories = func(string) (bool, error) { return can, err } }
}

// Ensures that the bounds and kinds of the host that relayd suffers from are
// found.
func TestHost(t *testing.T) {
	t.Parallel()
	testBreakages(t, map[string]breakage{
		"no room":     {do: disk(storage.FileSystem{}), check: "space", level: Failure, words: "no space is left", mend: "df -h "},
		"little room": {do: disk(storage.FileSystem{Free: 2e9}), check: "space", level: Warning, words: "500 full threads may need 2.4 GB", mend: "limits.threads"},
		"few inodes":  {do: disk(storage.FileSystem{Free: 1 << 40, Inodes: 600, FreeInodes: 100}), check: "space", level: Warning, words: "100 more files", mend: "df -i "},
		"inodes for the threads that are missing": {
			do: func(in *installation) {
				for i := range 90 {
					in.say(chat.ThreadID(fmt.Sprintf("%016x", i)))
				}
				disk(storage.FileSystem{Free: 1 << 40, Inodes: 600, FreeInodes: 500 - 90 + spareInodes})(in)
			},
			check: "space", level: OK, words: "1.1 TB free",
		},
		"no bound of inodes": {
			do: disk(storage.FileSystem{Free: 1 << 40}), check: "space", level: OK, words: "1.1 TB free",
		},
		"network":          {do: disk(storage.FileSystem{Free: 1 << 40, Name: "nfs", IsRemote: true}), check: "disk", level: Warning, words: "nfs", mend: "local disk"},
		"memory":           {do: disk(storage.FileSystem{Free: 1 << 40, Name: "tmpfs", IsMemory: true}), check: "disk", level: Warning, words: "reboot", mend: "local disk"},
		"no sync":          {do: syncs(false, nil), check: "disk", level: Warning, words: "power loss", mend: "local disk"},
		"broken sync":      {do: syncs(false, syscall.EIO), check: "disk", level: Failure, words: "input/output error", mend: "dmesg"},
		"few open files":   {do: func(in *installation) { in.host.OpenFiles = func() (uint64, error) { return 64, nil } }, check: "files", level: Warning, words: "64", mend: "LimitNOFILE=628"},
		"no limit to read": {do: func(in *installation) { in.host.OpenFiles = func() (uint64, error) { return 0, errors.New("x") } }, check: "files", level: Note},
		"an unknown watch": {do: func(in *installation) { in.host.Watch = func(string) error { return errors.New("odd") } }, check: "watch", level: Warning, words: "odd; threads are polled"},
	})
}

// Ensures that there is always room asked for to write one full thread anew, also
// where all threads are larger than the limits of today would make them.
func TestGrowth(t *testing.T) {
	t.Parallel()
	p := &patient{cfg: &config.Config{}}
	p.cfg.Limits.Threads, p.cfg.Limits.Messages, p.cfg.Limits.Text = 10, 2, 100
	full := 2 * storage.MessageBytes(100)
	for stored, want := range map[int64]int64{0: 11 * full, 4 * full: 7 * full, 50 * full: full} {
		p.survey.Bytes = stored
		if got := p.growth(); got != want {
			t.Errorf("%d bytes stored may grow by %d, want %d", stored, got, want)
		}
	}
}

// Ensures that a limit of the kernel's is at least doubled by what mends it.
func TestRaise(t *testing.T) {
	t.Parallel()
	for now, want := range map[int]string{128: "sysctl -w fs.inotify.max_user_instances=512", 8192: "sysctl -w fs.inotify.max_user_instances=16384"} {
		p := &patient{host: &Host{Sysctl: func(string) (int, error) { return now, nil }}}
		if got := p.raise(&storage.WatchError{Sysctl: "fs.inotify.max_user_instances"}); got != want {
			t.Errorf("of %d: %s, want %s", now, got, want)
		}
	}
}

// childVariable names what the test binary does as a child.
const childVariable = "DIAGNOSIS_TEST_CHILD"

// ownHost runs this binary with mounts and limits of its own, for which it needs
// no right, and returns what it printed.
func ownHost(t *testing.T, name string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{childVariable + "=" + name, "GORACE=atexit_sleep_ms=0", "HOME=" + t.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// runChild breaks its own host and prints what is found in it.
func runChild(name string) error {
	dir := os.Getenv("HOME")
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		return fmt.Errorf("mounting: %w", err)
	}
	cfg, err := config.Load(config.Source{
		DefaultFile: filepath.Join(dir, "none.yaml"),
		Env:         []string{"RELAYD_ROOT=" + filepath.Join(dir, "root"), "RELAYD_LISTEN=127.0.0.1:0"},
	})
	if err != nil {
		return err
	}
	store := openStore(cfg)
	if err := errors.Join(store.Prepare(), store.Close()); err != nil {
		return err
	}
	if err := breakHost(name, dir); err != nil {
		return err
	}
	_, err = Run(context.Background(), Options{Config: cfg, Store: store, ConfigFile: filepath.Join(dir, "none.yaml")},
		func(f Finding) { Print(os.Stdout, f) })
	return err
}

func breakHost(name, dir string) error {
	limit := func(sysctl string) error {
		return os.WriteFile("/proc/sys/user/"+sysctl, []byte("0"), 0)
	}
	switch name {
	case "full":
		err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600)
		if !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("filling the disk: %w", err)
		}
		return nil
	case "read-only":
		return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	case "instances":
		return limit("max_inotify_instances")
	case "watches":
		return limit("max_inotify_watches")
	}
	return fmt.Errorf("unknown child %q", name)
}

// Ensures on a real disk that is full or read-only, and under real limits of
// inotify, that each is found, with the command that helps.
func TestHost_Real(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"full":      {"FAIL  space ", "no space left on device", "mend: df -h ", "warn  disk           the threads lie on tmpfs"},
		"read-only": {"FAIL  directory ", "read-only file system"},
		"instances": {"warn  watch          the user's inotify instances", "mend: sysctl -w fs.inotify.max_user_instances="},
		"watches":   {"warn  watch          the user's inotify watches", "mend: sysctl -w fs.inotify.max_user_watches="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := ownHost(t, name)
			for _, line := range lines {
				if !strings.Contains(out, line) {
					t.Errorf("no %q in:\n%s", line, out)
				}
			}
		})
	}
}

// Ensures that a time is told as people measure it.
func TestDistance(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{90 * time.Second: "1m30s", 47 * time.Hour: "47h0m0s", 400 * 24 * time.Hour: "400 days"} {
		if got := distance(d); got != want {
			t.Errorf("distance(%v) = %s, want %s", d, got, want)
		}
	}
}
