package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
)

// isolate has relayd start behind a shell script, in those name spaces of its own
// that the flags name. There it may do what would otherwise need rights or touch
// the machine. The script gets the root as $root and ends in starting relayd.
// Commands of the host are started in the same name spaces.
func (s *stage) isolate(flags uintptr, script string) {
	s.daemon.wrap = func(cmd *exec.Cmd) (func() error, error) {
		shell, err := exec.LookPath("sh")
		if err != nil {
			return nil, fmt.Errorf("looking for a shell: %w", err)
		}
		cmd.Args = slices.Concat([]string{"sh", "-euc", "root=$1; shift; " + script + `; exec "$@"`, "sh", s.root}, cmd.Args)
		cmd.Path = shell
		if flags == 0 {
			return func() error { return nil }, nil
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  flags,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		return func() error { s.inside = enter(cmd.Process.Pid, flags); return nil }, nil
	}
}

// enter returns what starts a command in the name spaces of a process, that of
// users among them.
func enter(pid int, flags uintptr) []string {
	argv := []string{"nsenter", "--preserve-credentials", "--user"}
	if flags&syscall.CLONE_NEWNS != 0 {
		argv = append(argv, "--mount")
	}
	return append(argv, "--target", strconv.Itoa(pid), "--")
}
