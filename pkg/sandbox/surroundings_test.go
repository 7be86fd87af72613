package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// What a run of the test binary by itself finds around it.
const (
	surroundingsVar = "SANDBOX_TEST_SURROUNDINGS"
	hardened        = "hardened" // as in a hardened systemd unit
)

// Ensures that what cannot be enforced makes a strict start fail with words that
// say what is missing, and that a start with best effort says the same and does
// what it can.
func TestUnsupportedKernels(t *testing.T) {
	t.Parallel()
	full := requireKernel(t)
	noLandlock, noFilter := full, full
	noLandlock.LandlockABI, noLandlock.LandlockWhy = 0, why(unix.EOPNOTSUPP)
	noFilter.Seccomp, noFilter.SeccompWhy = false, why(unix.EINVAL)
	oldLandlock := noFilter
	oldLandlock.LandlockABI = 1
	for name, test := range map[string]struct {
		kernel  support
		missing []string
		needs   []string
	}{
		"no Landlock": {noLandlock, []string{promiseRead}, []string{"Landlock ABI 1", "not enabled at boot"}},
		"no filter": {noFilter, []string{
			"no mode, owner, time or attribute of a file changes", promiseProcess, promiseSocket, promiseKernel,
		}, []string{"seccomp filters", "not built in"}},
		"no filter, old Landlock": {oldLandlock, []string{
			promiseWrite, "no mode, owner, time or attribute of a file changes", promiseProcess, promiseSocket,
			"no TCP port is bound or connected to", "no signal reaches another process", promiseKernel,
		}, []string{"seccomp filters"}},
		"nothing": {bare(), []string{
			promiseRead, promiseWrite, "no mode, owner, time or attribute of a file changes", promiseExec, promiseProcess, promiseSocket,
			"no TCP port is bound or connected to", "no signal reaches another process", "no other process is traced or its memory touched", promiseKernel,
		}, []string{"Landlock ABI 1", "seccomp filters"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Roots: []string{MustRoot(t, map[string]string{"a.md": "hello"})}, probe: func() support { return test.kernel }}
			_, err := Start(t.Context(), o)
			unsupported, ok := errors.AsType[*UnsupportedError](err)
			if !ok {
				t.Fatalf("a strict start: %v", err)
			}
			for _, words := range append(test.missing, test.needs...) {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
			o.Mode = BestEffort
			r := MustStart(t, o)
			missing := r.Report().Missing()
			if fmt.Sprint(missing) != fmt.Sprint(unsupported.Missing) || len(missing) != len(test.missing) {
				t.Errorf("missing with best effort: %v, want %v", missing, test.missing)
			}
			if e, err := r.Read(t.Context(), "docs/a.md", 0, 0); err != nil || e.Text != "hello" {
				t.Errorf("got %+v, %v", e, err)
			}
			seccomp := status(t, r.child.cmd.Process.Pid, fmt.Sprint(r.child.cmd.Process.Pid))["Seccomp"]
			if isFiltered := seccomp == "2"; isFiltered != test.kernel.Seccomp {
				t.Errorf("filtered is %v", isFiltered)
			}
		})
	}
}

// Ensures that every promise is kept by something on this kernel, and that
// Landlock of the minimum version is enough where there is a filter.
func TestReport(t *testing.T) {
	t.Parallel()
	s := requireKernel(t)
	t.Logf("kernel: %+v", Probe())
	if abi, err := landlockABI(); err != nil || abi != Probe().LandlockABI {
		t.Errorf("ABI %d, %v", abi, err)
	}
	s.LandlockABI = MinLandlockABI
	if missing := newReport(s).Missing(); len(missing) > 0 {
		t.Errorf("missing at the minimum: %v", missing)
	}
	for err, want := range map[error]string{
		unix.ENOSYS: "not built in", unix.EPERM: "a filter around this process", unix.EIO: "input/output error",
	} {
		if got := why(err); !strings.Contains(got, want) {
			t.Errorf("why(%v) is %q", err, got)
		}
	}
}

// Ensures that a child that cannot enforce what it is told to says so, and does
// not serve.
func TestConfinementThatFails(t *testing.T) {
	t.Parallel()
	s := requireKernel(t)
	s.LandlockABI = 1000 // asks for rights that no kernel of today knows
	_, err := Start(t.Context(), Options{probe: func() support { return s }})
	if s := probeKernel(); s.LandlockABI < 10 && (!errors.Is(err, ErrChild) || !strings.Contains(err.Error(), "landlock")) {
		t.Errorf("got %v", err)
	}
}

// What is run again elsewhere: that a child starts, that it is confined, and that
// it works; and that it withstands attacks, where no filter of the service's
// would end the attacker at once.
const (
	basics  = "TestChildFromOutside|TestRead|TestSearch|TestOneAnswerForAllThatIsClosed|TestChildDiesWithParent"
	attacks = "TestTakenOver.*"
)

// Ensures that all this holds for an ordinary user too, who has no capabilities
// to drop and none to fall back on.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	user := nobody()
	if os.Getuid() != 0 {
		user = nil // already one
	}
	runAgain(t, basics+"|"+attacks, user)
}

// Ensures that all this holds inside a hardened systemd unit, as root and as an
// ordinary user.
func TestInHardenedUnit(t *testing.T) {
	t.Parallel()
	runAgain(t, basics, nil, surroundingsVar+"="+hardened)
	if os.Getuid() == 0 {
		runAgain(t, basics, nobody(), surroundingsVar+"="+hardened)
	}
}

func nobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

func runAgain(t *testing.T, tests string, attr *syscall.SysProcAttr, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^("+tests+")$", "-test.count=1")
	cmd.Env = append(env, "PATH=/usr/bin:/bin")
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// hardenSurroundings does to the process what systemd does for NoNewPrivileges,
// MemoryDenyWriteExecute, RestrictNamespaces and SystemCallFilter with
// @system-service, whose answer to a call that is not on its list is death.
func hardenSurroundings() {
	for _, args := range [][2]uintptr{{unix.PR_SET_NO_NEW_PRIVS, 1}, {unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN}} {
		if _, _, errno := psx.Syscall6(unix.SYS_PRCTL, args[0], args[1], 0, 0, 0, 0); errno != 0 {
			panic(errno)
		}
	}
	if err := installFilter(serviceFilter()); err != nil {
		panic(err)
	}
}

func serviceFilter() []unix.SockFilter {
	program := []unix.SockFilter{{Code: opLoad, K: offNumber}}
	answer := func(nr, action uint32) {
		program = append(program, unix.SockFilter{Code: opEqual, K: nr, Jf: 1}, unix.SockFilter{Code: opReturn, K: action})
	}
	for _, nr := range []uint32{unix.SYS_UNSHARE, unix.SYS_SETNS} {
		answer(nr, refuse)
	}
	for _, nr := range []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT,
		unix.SYS_CHROOT, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_VHANGUP,
	} {
		answer(nr, unix.SECCOMP_RET_KILL_PROCESS)
	}
	return append(program, unix.SockFilter{Code: opReturn, K: unix.SECCOMP_RET_ALLOW})
}

func installFilter(program []unix.SockFilter) error {
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}

// startOwner starts a process that has a reader, and returns the number of the
// reader's child and what kills the owner.
func startOwner(t *testing.T) (child int, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", ownerArg)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	_, err = fmt.Sscan(line, &child)
	must(t, err)
	return child, kill
}

// own is the process that startOwner starts.
func own() {
	r, err := Start(context.Background(), Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.child.cmd.Process.Pid)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// runByHand runs the binary with a hidden argument and a file for its output,
// and returns how it ended and what it wrote.
func runByHand(t *testing.T, arg, path string) (state, text string) {
	t.Helper()
	out, err := os.Create(path)
	must(t, err)
	defer func() { _ = out.Close() }()
	limits, err := Limits{}.withDefaults()
	must(t, err)
	var in bytes.Buffer
	must(t, writeFrame(&in, setup{Limits: limits}))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", arg)
	cmd.Stdin = &in
	cmd.Stdout = out
	_ = cmd.Run()
	written, err := os.ReadFile(path)
	must(t, err)
	return cmd.ProcessState.String(), string(written)
}
