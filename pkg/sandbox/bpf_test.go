//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// seccompData is what the kernel shows a filter.
type seccompData struct {
	nr, arch uint32
	args     [6]uint64
}

// run interprets a filter as the kernel does, for the instructions it uses.
func run(t *testing.T, program []unix.SockFilter, d seccompData) uint32 {
	t.Helper()
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], d.nr)
	binary.LittleEndian.PutUint32(data[4:], d.arch)
	for i, arg := range d.args {
		binary.LittleEndian.PutUint64(data[16+8*i:], arg)
	}
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		switch in := program[pc]; in.Code {
		case opLoad:
			acc = binary.LittleEndian.Uint32(data[in.K:])
		case opAnd:
			acc &= in.K
		case opEqual:
			if acc == in.K {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		case opReturn:
			return in.K
		default:
			t.Fatalf("instruction %d has the code %#x", pc, in.Code)
		}
	}
	t.Fatal("the filter runs off its end")
	return 0
}

const testPID = 4242

func testFilter(t *testing.T) (program []unix.SockFilter, arch uint32) {
	t.Helper()
	arch, ok := auditArch()
	if !ok {
		t.Fatal("there is no filter for this architecture")
	}
	program, err := assemble(arch, allowedCalls(testPID))
	if err != nil {
		t.Fatal(err)
	}
	return program, arch
}

const (
	allowed = uint32(unix.SECCOMP_RET_ALLOW)
	killed  = uint32(unix.SECCOMP_RET_KILL_PROCESS)
)

// Ensures that arguments are checked bit by bit, in both halves.
func TestFilterArguments(t *testing.T) {
	t.Parallel()
	program, arch := testFilter(t)
	for name, test := range map[string]struct {
		nr   uint32
		args [6]uint64
		want uint32
	}{
		"read":                       {unix.SYS_READ, [6]uint64{}, allowed},
		"open for reading":           {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_CLOEXEC}, allowed},
		"open without blocking":      {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY}, allowed},
		"open through a link":        {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_CLOEXEC}, refuse},
		"open for writing":           {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_WRONLY}, refuse},
		"open for both":              {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_RDWR}, refuse},
		"open with mode 3":           {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_ACCMODE}, refuse},
		"open to create":             {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_CREAT}, refuse},
		"open to truncate":           {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_TRUNC}, refuse},
		"open a temporary file":      {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_TMPFILE}, refuse},
		"open a path only":           {unix.SYS_OPENAT, [6]uint64{3, 1, unix.O_NOFOLLOW | unix.O_PATH}, refuse},
		"open, bits in the top half": {unix.SYS_OPENAT, [6]uint64{3, 1, 1<<32 | unix.O_NOFOLLOW}, refuse},
		// A call's number in the top half of the flags must not be taken for that call.
		"open, a number in the top half": {unix.SYS_OPENAT, [6]uint64{3, 1, unix.SYS_MMAP<<32 | unix.O_RDWR, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, refuse},
		"open, a number in the flags":    {unix.SYS_OPENAT, [6]uint64{3, 1, unix.SYS_READ}, refuse},
		"stat":                           {unix.SYS_NEWFSTATAT, [6]uint64{3, 1, 1, unix.AT_SYMLINK_NOFOLLOW}, allowed},
		"stat through a link":            {unix.SYS_NEWFSTATAT, [6]uint64{3, 1, 1, 0}, refuse},
		"anonymous memory":               {unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, allowed},
		"executable memory":              {unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ | unix.PROT_EXEC, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, refuse},
		"shared memory":                  {unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, refuse},
		"shared, validated memory":       {unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ, unix.MAP_SHARED_VALIDATE | unix.MAP_ANONYMOUS}, refuse},
		"mapping a file":                 {unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ, unix.MAP_PRIVATE, 3}, refuse},
		"memory that grows down":         {unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_GROWSDOWN}, refuse},
		"huge pages":                     {unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB}, refuse},
		"make memory writable":           {unix.SYS_MPROTECT, [6]uint64{0, 1, unix.PROT_READ | unix.PROT_WRITE}, allowed},
		"make memory executable":         {unix.SYS_MPROTECT, [6]uint64{0, 1, unix.PROT_EXEC}, refuse},
		"signal a thread":                {unix.SYS_TGKILL, [6]uint64{testPID, 7, 23}, allowed},
		"signal another process":         {unix.SYS_TGKILL, [6]uint64{1, 1, 9}, refuse},
		"wait on a futex":                {unix.SYS_FUTEX, [6]uint64{1, futexWait | futexPrivate}, allowed},
		"wait on a futex, by the clock":  {unix.SYS_FUTEX, [6]uint64{1, futexWaitBitset | futexPrivate | futexRealtime}, allowed},
		"wake a futex":                   {unix.SYS_FUTEX, [6]uint64{1, futexWake | futexPrivate}, allowed},
		"requeue futexes":                {unix.SYS_FUTEX, [6]uint64{1, 3 | futexPrivate}, refuse},
		"priority inheritance":           {unix.SYS_FUTEX, [6]uint64{1, 6 | futexPrivate}, refuse},
		"a new thread":                   {unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, refuse},
		"a new process":                  {unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD)}, refuse},
	} {
		if got := run(t, program, seccompData{nr: test.nr, arch: arch, args: test.args}); got != test.want {
			t.Errorf("%s: %#x, want %#x", name, got, test.want)
		}
	}
}

// Ensures that only the listed calls are allowed, that the calls of x86-64's
// 32-bit variant are none of them, and that another convention is the end.
func TestFilterNumbers(t *testing.T) {
	t.Parallel()
	program, arch := testFilter(t)
	listed := make(map[uint32]bool)
	for _, c := range allowedCalls(testPID) {
		listed[c.nr] = true
	}
	const x32 = 1 << 30
	for nr := range uint32(2048) {
		if got := run(t, program, seccompData{nr: nr, arch: arch}); got != refuse && !listed[nr] {
			t.Errorf("call %d: %#x", nr, got)
		}
		if got := run(t, program, seccompData{nr: nr | x32, arch: arch}); got != refuse {
			t.Errorf("call %d of x32: %#x", nr, got)
		}
		for _, other := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, arch ^ 1, 0} {
			if got := run(t, program, seccompData{nr: nr, arch: other}); got != killed {
				t.Errorf("call %d of architecture %#x: %#x", nr, other, got)
			}
		}
	}
}

// Ensures that no arguments whatever open a file for anything but reading, map
// memory that can be executed, or signal another process.
func FuzzFilter(f *testing.F) {
	f.Add(uint16(unix.SYS_OPENAT), uint64(0), uint64(0), uint64(unix.O_RDWR), uint64(0))
	f.Add(uint16(unix.SYS_MMAP), uint64(0), uint64(1), uint64(unix.PROT_EXEC), uint64(unix.MAP_SHARED))
	f.Add(uint16(unix.SYS_TGKILL), uint64(1), uint64(1), uint64(9), uint64(0))
	f.Fuzz(func(t *testing.T, nr uint16, a, b, c, d uint64) {
		program, arch := testFilter(t)
		if run(t, program, seccompData{nr: uint32(nr), arch: arch, args: [6]uint64{a, b, c, d}}) != allowed {
			return
		}
		const reading = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_NOCTTY
		switch {
		case nr == unix.SYS_OPENAT && c&^reading != 0,
			nr == unix.SYS_MMAP && (c&unix.PROT_EXEC != 0 || d&unix.MAP_SHARED != 0),
			nr == unix.SYS_MPROTECT && c&unix.PROT_EXEC != 0,
			nr == unix.SYS_TGKILL && a != testPID:
			t.Errorf("call %d with %#x %#x %#x %#x is allowed", nr, a, b, c, d)
		}
	})
}
