package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clock is the wall clock of a process. It is changed without a change to the
// program or the machine: the process runs under a seccomp filter that hands
// each question for the time of day to this process, which answers it. The
// questions are system calls because the process is kept from finding the
// kernel's vDSO, which would answer them unheard. Its monotonic clock, and the
// times that the kernel gives to files, are left as they are.
//
// This works for statically linked Go programs on amd64.
type clock struct {
	ahead   atomic.Int64 // ns that it is ahead of the machine's
	changed atomic.Int64 // questions that were answered
	serving sync.WaitGroup
}

// steppedCommand makes this program put a filter on itself and become another
// one. It is not for people.
const steppedCommand = "under-a-stepped-clock"

// listenerSocket is the descriptor by which the filter's listener is handed over.
const listenerSocket = 3

// System calls of amd64 that the filter knows.
const (
	auditAMD64      = 0xc000003e
	sysClockGettime = 228
	sysArchPrctl    = 158
	archSetFS       = 0x1002
)

// wrap starts a command under this clock.
func (c *clock) wrap(cmd *exec.Cmd) (func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "listener socket")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Args = append([]string{self, steppedCommand}, cmd.Args...)
	cmd.Path = self
	return func() error {
		defer func() { _ = unix.Close(pair[0]) }()
		if err := theirs.Close(); err != nil {
			return fmt.Errorf("closing a socket: %w", err)
		}
		listener, err := receiveFile(pair[0])
		if err != nil {
			return err
		}
		c.serving.Go(func() { c.serve(listener) })
		return nil
	}, nil
}

// wait returns when every process under this clock is gone.
func (c *clock) wait() { c.serving.Wait() }

// runStepped puts the filter on this thread, hands over its listener and becomes
// the program of argv.
func runStepped(argv []string) error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("the clock can be changed on amd64 alone, not on %s", runtime.GOARCH)
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	listener, err := installFilter()
	if err != nil {
		return err
	}
	// From here on this thread must not ask for the time: nobody answers yet.
	if err := unix.Sendmsg(listenerSocket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("handing over the listener: %w", err)
	}
	unix.CloseOnExec(listener)
	unix.CloseOnExec(listenerSocket)
	return fmt.Errorf("starting %s: %w", argv[0], unix.Exec(argv[0], argv, os.Environ()))
}

// installFilter has the kernel ask about clock_gettime(CLOCK_REALTIME), and
// about arch_prctl(ARCH_SET_FS), which a Go program calls before it looks for
// the vDSO.
func installFilter() (listener int, err error) {
	const (
		load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal     = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give      = unix.BPF_RET | unix.BPF_K
		number    = 0 // offsets into struct seccomp_data
		arch      = 4
		firstArg  = 16
		realClock = unix.CLOCK_REALTIME
	)
	program := []unix.SockFilter{
		{Code: load, K: arch},
		{Code: equal, K: auditAMD64, Jf: 7},
		{Code: load, K: number},
		{Code: equal, K: sysArchPrctl, Jf: 2},
		{Code: load, K: firstArg},
		{Code: equal, K: archSetFS, Jt: 4, Jf: 3},
		{Code: equal, K: sysClockGettime, Jf: 2},
		{Code: load, K: firstArg},
		{Code: equal, K: realClock, Jt: 1},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
		{Code: give, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return 0, fmt.Errorf("installing the filter of the clock: %w", errno)
	}
	return int(fd), nil
}

// receiveFile takes a descriptor that was sent over a socket.
func receiveFile(socket int) (int, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, 0)
	if err != nil {
		return 0, fmt.Errorf("receiving the listener: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("receiving the listener: no descriptor came: %w", errors.Join(err, os.ErrInvalid))
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		return 0, fmt.Errorf("receiving the listener: no descriptor came: %w", errors.Join(err, os.ErrInvalid))
	}
	return files[0], nil
}

// notification is struct seccomp_notif.
type notification struct {
	id      uint64
	pid     uint32
	flags   uint32
	number  int32
	arch    uint32
	pointer uint64
	args    [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve answers until no process is left under the filter.
func (c *clock) serve(listener int) {
	defer func() { _ = unix.Close(listener) }()
	for awaitNotification(listener) {
		var n notification
		if ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != nil {
			continue // whoever asked is gone, or was interrupted and asks again
		}
		r := c.answer(&n)
		_ = ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // as above
	}
}

// awaitNotification reports whether somebody asks, or false when nobody can.
func awaitNotification(listener int) bool {
	poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(poll, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && poll[0].Revents&unix.POLLIN != 0
	}
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}

func (c *clock) answer(n *notification) response {
	r := response{id: n.id}
	if n.number == sysArchPrctl {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		if hideVDSO(int(n.pid)) != nil {
			r.flags, r.errno = 0, -int32(unix.EPERM) // a process with the true clock would prove nothing
		}
		return r
	}
	c.changed.Add(1)
	now := time.Now().Add(time.Duration(c.ahead.Load()))
	spec := unix.NsecToTimespec(now.UnixNano())
	local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&spec)), Len: uint64(unsafe.Sizeof(spec))}}
	remote := []unix.RemoteIovec{{Base: uintptr(n.args[1]), Len: int(unsafe.Sizeof(spec))}}
	if _, err := unix.ProcessVMWritev(int(n.pid), local, remote, 0); err != nil {
		r.errno = -int32(unix.EFAULT)
	}
	return r
}

// hideVDSO takes the kernel's vDSO from the auxiliary vector of a process that
// has not read it yet.
func hideVDSO(pid int) error {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening the memory of a process: %w", err)
	}
	defer func() { _ = memory.Close() }()
	base, err := stackStart(pid)
	if err != nil {
		return err
	}
	const most = 1 << 20 // arguments and environment are pointers of 8 bytes
	stack := make([]byte, most)
	n, err := memory.ReadAt(stack, base)
	if n == 0 {
		return fmt.Errorf("reading the stack of a process: %w", err)
	}
	offset, found := findVDSO(stack[:n])
	if !found {
		return nil // it has none
	}
	if _, err := memory.WriteAt(binary.LittleEndian.AppendUint64(nil, auxIgnore), base+int64(offset)); err != nil {
		return fmt.Errorf("writing to the stack of a process: %w", err)
	}
	return nil
}

// Types of the auxiliary vector.
const (
	auxNull   = 0
	auxIgnore = 1
	auxVDSO   = 33
)

// findVDSO returns where the type of the vDSO's entry stands in a stack as a
// program finds it at its start: argc, arguments, 0, environment, 0, auxiliary
// vector.
func findVDSO(stack []byte) (offset int, found bool) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(stack[8*i:]) }
	words := len(stack) / 8
	if words == 0 {
		return 0, false
	}
	i := 1
	for range 2 { // arguments and environment
		for i < words && word(i) != 0 {
			i++
		}
		i++
	}
	for ; i+1 < words && word(i) != auxNull; i += 2 {
		if word(i) == auxVDSO {
			return 8 * i, true
		}
	}
	return 0, false
}

// stackStart returns where the stack of a process began, at the count of its
// arguments.
func stackStart(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("looking for the stack of a process: %w", err)
	}
	const field = 25 // startstack, among the fields behind the name
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	var start int64
	if _, err := fmt.Sscan(fields[field], &start); err != nil {
		return 0, fmt.Errorf("looking for the stack of a process: %w", err)
	}
	return start, nil
}
