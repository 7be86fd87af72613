package systemd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confineArg is the hidden first argument that makes the test binary confine
// itself as a unit does and then become the program that the other arguments
// name. The filters come from descriptor 3.
const confineArg = "confine-as-unit"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == confineArg {
		fmt.Fprintln(os.Stderr, "confining:", become(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// confined returns a command that runs a program under the filters, without
// privileges and, where the test runs as root, as the user nobody.
func confined(t *testing.T, filters [][]unix.SockFilter, program ...string) *exec.Cmd {
	t.Helper()
	list, err := json.Marshal(filters)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "filters")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.WriteAt(list, 0); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{confineArg}, program...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.ExtraFiles = []*os.File{file}
	return cmd
}

// become does to this thread what systemd does to the process of a unit, and runs
// the program in its place. It returns only with an error.
func become(program []string) error {
	var filters [][]unix.SockFilter
	file := os.NewFile(3, "filters")
	if err := json.NewDecoder(file).Decode(&filters); err != nil {
		return fmt.Errorf("reading the filters: %w", err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	runtime.LockOSThread() // what follows is of one thread, the one that execs
	if os.Getuid() == 0 {
		if err := beNobody(); err != nil {
			return err
		}
	}
	syscall.Umask(0o007)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	for _, filter := range filters {
		fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
		runtime.KeepAlive(filter)
		if errno != 0 {
			return fmt.Errorf("seccomp: %w", errno)
		}
	}
	return fmt.Errorf("exec %s: %w", program[0], syscall.Exec(program[0], program, os.Environ()))
}

const nobody = 65534

// beNobody empties the bounding set of capabilities and changes the user, which
// loses all capabilities, for this thread.
func beNobody() error {
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel knows no more
		}
		if err != nil {
			return fmt.Errorf("dropping capability %d: %w", capability, err)
		}
	}
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, 0, 0, 0},
		{unix.SYS_SETRESGID, nobody, nobody, nobody},
		{unix.SYS_SETRESUID, nobody, nobody, nobody},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return fmt.Errorf("changing the user: %w", errno)
		}
	}
	return nil
}
