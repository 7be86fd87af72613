package systemd_test

import (
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A systemd that runs units is not to be had where tests run, so its system call
// filters are built here from a unit's own lines and from the groups that the
// installed systemd knows, one filter for each directive as systemd does it.
// Directives whose calls SystemCallFilter refuses anyway have none: ProtectClock,
// ProtectHostname, ProtectKernelLogs, ProtectKernelModules, RestrictRealtime.

// filters returns the filters of a unit in the order of their installation. The
// one that SystemCallFilter makes is the last: the others can be installed then.
func filters(t *testing.T, unit string, systemCallFilter []string) [][]unix.SockFilter {
	t.Helper()
	numbers := callNumbers(t)
	for key, want := range map[string]string{"SystemCallErrorNumber": "EPERM", "SystemCallArchitectures": "native"} {
		if got := values(t, unit, key); !slices.Equal(got, []string{want}) {
			t.Fatalf("%s has %s=%q, and this test knows %s only", unit, key, got, want)
		}
	}
	var programs [][]unix.SockFilter
	for _, key := range []string{"RestrictSUIDSGID", "RestrictNamespaces", "MemoryDenyWriteExecute", "LockPersonality"} {
		if got := values(t, unit, key); !slices.Equal(got, []string{"yes"}) {
			t.Fatalf("%s has %s=%q, and this test knows yes only", unit, key, got)
		}
		programs = append(programs, refuse(numbers, refusals(key)))
	}
	families := values(t, unit, "RestrictAddressFamilies")
	if len(families) != 1 {
		t.Fatalf("%s has RestrictAddressFamilies=%q", unit, families)
	}
	programs = append(programs, allowFamilies(t, numbers, strings.Fields(families[0])))
	return append(programs, allowCalls(t, numbers, systemCallFilter))
}

// bits is a condition on an argument of a call: that one of these bits is set.
type bits struct {
	arg  uint32
	mask uint32
}

// refusal is a call that is answered with errno under all of its conditions.
type refusal struct {
	call  string
	errno unix.Errno
	when  []bits
}

// refusals returns what systemd refuses for a directive that is set to yes, after
// its src/shared/seccomp-util.c.
func refusals(directive string) []refusal {
	const (
		ids        = unix.S_ISUID | unix.S_ISGID
		namespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUSER | unix.CLONE_NEWUTS
	)
	switch directive {
	case "RestrictSUIDSGID":
		return []refusal{
			{"chmod", unix.EPERM, []bits{{1, ids}}},
			{"fchmod", unix.EPERM, []bits{{1, ids}}},
			{"fchmodat", unix.EPERM, []bits{{2, ids}}},
			{"fchmodat2", unix.EPERM, []bits{{2, ids}}},
			{"mkdir", unix.EPERM, []bits{{1, ids}}},
			{"mkdirat", unix.EPERM, []bits{{2, ids}}},
			{"mknod", unix.EPERM, []bits{{1, ids}}},
			{"mknodat", unix.EPERM, []bits{{2, ids}}},
			{"creat", unix.EPERM, []bits{{1, ids}}},
			{"open", unix.EPERM, []bits{{1, unix.O_CREAT}, {2, ids}}},
			{"openat", unix.EPERM, []bits{{2, unix.O_CREAT}, {3, ids}}},
			{"openat2", unix.ENOSYS, nil}, // its mode is out of a filter's sight
		}
	case "RestrictNamespaces":
		return []refusal{
			{"unshare", unix.EPERM, []bits{{0, namespaces}}},
			{"clone", unix.EPERM, []bits{{0, namespaces}}},
			{"clone3", unix.ENOSYS, nil}, // its flags are out of a filter's sight
			{"setns", unix.EPERM, nil},
		}
	case "MemoryDenyWriteExecute":
		return []refusal{
			{"mmap", unix.EPERM, []bits{{2, unix.PROT_EXEC}, {2, unix.PROT_WRITE}}},
			{"mprotect", unix.EPERM, []bits{{2, unix.PROT_EXEC}}},
			{"pkey_mprotect", unix.EPERM, []bits{{2, unix.PROT_EXEC}}},
			{"shmat", unix.EPERM, []bits{{2, 0x8000}}}, // SHM_EXEC
		}
	case "LockPersonality":
		return []refusal{{"personality", unix.EPERM, []bits{{0, ^uint32(0)}}}}
	}
	return nil
}

// Offsets into struct seccomp_data on a little-endian machine, and the
// instructions of classic BPF that the filters consist of.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16

	opLoad   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opAnyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	opReturn = unix.BPF_RET | unix.BPF_K
)

func answer(errno unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: opReturn, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

func allow() unix.SockFilter {
	return unix.SockFilter{Code: opReturn, K: unix.SECCOMP_RET_ALLOW}
}

// refuse allows everything but the refusals.
func refuse(numbers map[string]uint32, refusals []refusal) []unix.SockFilter {
	var program []unix.SockFilter
	for _, r := range refusals {
		nr, ok := numbers[r.call]
		if !ok {
			continue // this architecture has no such call
		}
		behind := func(done int) uint8 { return uint8(2 + 2*len(r.when) - done) }
		program = append(program, unix.SockFilter{Code: opLoad, K: offNumber}, unix.SockFilter{Code: opEqual, K: nr, Jf: behind(1)})
		for i, b := range r.when {
			program = append(program, unix.SockFilter{Code: opLoad, K: offArgs + 8*b.arg}, unix.SockFilter{Code: opAnyBit, K: b.mask, Jf: behind(3 + 2*i)})
		}
		program = append(program, answer(r.errno))
	}
	return append(program, allow())
}

// allowFamilies allows sockets of the families only.
func allowFamilies(t *testing.T, numbers map[string]uint32, families []string) []unix.SockFilter {
	t.Helper()
	known := map[string]uint32{"AF_UNIX": unix.AF_UNIX, "AF_INET": unix.AF_INET, "AF_INET6": unix.AF_INET6}
	program := []unix.SockFilter{
		{Code: opLoad, K: offNumber},
		{Code: opEqual, K: numbers["socket"], Jt: 1},
		allow(),
		{Code: opLoad, K: offArgs},
	}
	for _, family := range families {
		if family == "none" {
			break
		}
		number, ok := known[family]
		if !ok {
			t.Fatalf("this test does not know the address family %q", family)
		}
		program = append(program, unix.SockFilter{Code: opEqual, K: number, Jf: 1}, allow())
	}
	return append(program, answer(unix.EAFNOSUPPORT))
}

// allowCalls allows what the lines of SystemCallFilter come to, and ends whoever
// makes calls of another architecture.
func allowCalls(t *testing.T, numbers map[string]uint32, lines []string) []unix.SockFilter {
	t.Helper()
	arch := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	program := []unix.SockFilter{
		{Code: opLoad, K: offArch},
		{Code: opEqual, K: arch, Jt: 1},
		{Code: opReturn, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: opLoad, K: offNumber},
	}
	for name := range allowed(t, lines) {
		// What this architecture or its C library does not have is refused.
		if nr, ok := numbers[name]; ok {
			program = append(program, unix.SockFilter{Code: opEqual, K: nr, Jf: 1}, allow())
		}
	}
	return append(program, answer(unix.EPERM))
}

// allowed returns the names of the calls that lines of SystemCallFilter allow. The
// first line decides that it is a list of what is allowed.
func allowed(t *testing.T, lines []string) map[string]bool {
	t.Helper()
	groups := callGroups(t)
	calls := make(map[string]bool)
	for i, line := range lines {
		list, isRefused := strings.CutPrefix(line, "~")
		if i == 0 && isRefused {
			t.Fatal("the first SystemCallFilter= does not list what is allowed")
		}
		for _, name := range strings.Fields(list) {
			for _, call := range expand(t, groups, name) {
				if isRefused {
					delete(calls, call)
				} else {
					calls[call] = true
				}
			}
		}
	}
	// What starts a program is always there.
	for _, call := range expand(t, groups, "@default") {
		calls[call] = true
	}
	return calls
}

// expand returns the calls that a name of SystemCallFilter stands for.
func expand(t *testing.T, groups map[string][]string, name string) []string {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	if len(groups[name]) == 0 {
		t.Fatalf("systemd does not know the group %s", name)
	}
	var calls []string
	for _, member := range groups[name] {
		calls = append(calls, expand(t, groups, member)...)
	}
	return calls
}

// callGroups returns the members of the groups of calls that systemd knows.
func callGroups(t *testing.T) map[string][]string {
	t.Helper()
	groups := make(map[string][]string)
	var group string
	for _, line := range strings.Split(mustTool(t, "systemd-analyze", "syscall-filter", "--no-pager"), "\n") {
		switch member := strings.TrimSpace(line); {
		case member == "" || strings.HasPrefix(member, "#"):
		case strings.HasPrefix(line, "@"):
			group = member
		default:
			groups[group] = append(groups[group], member)
		}
	}
	return groups
}

// callNumbers returns the numbers of this architecture's system calls, from the C
// library's headers.
func callNumbers(t *testing.T) map[string]uint32 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "gcc", "-E", "-dM", "-include", "asm/unistd.h", "-x", "c", "/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the system calls: %v; scripts/setup (make setup) installs gcc", err)
	}
	defined := make(map[string]string)
	for _, match := range regexp.MustCompile(`(?m)^#define __NR(3264)?_(\w+) (\w+)$`).FindAllStringSubmatch(string(out), -1) {
		defined["__NR"+match[1]+"_"+match[2]] = match[3]
	}
	numbers := make(map[string]uint32)
	for name, value := range defined {
		if other, ok := defined[value]; ok {
			value = other
		}
		if nr, err := strconv.ParseUint(value, 10, 32); err == nil {
			numbers[strings.TrimPrefix(name, "__NR_")] = uint32(nr)
		}
	}
	if numbers["landlock_restrict_self"] != unix.SYS_LANDLOCK_RESTRICT_SELF {
		t.Fatalf("the C library's headers are too old or were not understood: %d calls", len(numbers))
	}
	return numbers
}
