package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The assembler is written here rather than taken from a library because the
// filter stands or falls with its argument checks: each rule below loads the
// call's number afresh, so that no comparison can ever be made against an
// argument that an earlier rule left in the accumulator and that the caller
// chose.

// match is a condition on one argument, all 64 bits of it: the bits under mask
// must be exactly value.
type match struct {
	arg         uint32
	mask, value uint64
}

// exactly matches one value.
func exactly(arg uint32, value uint64) match { return match{arg, ^uint64(0), value} }

// flags matches arguments that have all the required bits, any of the optional
// ones, and no other.
func flags(arg uint32, required, optional uint64) match {
	return match{arg, ^optional, required}
}

// call allows one system call under all of its conditions. Several rules for
// one call are alternatives.
type call struct {
	nr   uint32
	when []match
}

// Offsets into struct seccomp_data on a little-endian machine.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// The instructions of classic BPF that the filter consists of.
const (
	opLoad   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opAnd    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	opEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opReturn = unix.BPF_RET | unix.BPF_K
)

const refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// assemble returns the filter that allows calls and refuses the rest with
// EPERM. A call in the convention of another architecture kills the process: its
// number would mean something else, and no Go program makes one.
//
// EPERM and not the end of the process is the answer to everything else for
// three reasons. The child can try its own confinement out. A later Go runtime
// that tries something new and can do without it keeps working. And to someone
// who has taken the child over, the next attempt is no more use than the last.
func assemble(arch uint32, calls []call) ([]unix.SockFilter, error) {
	program := []unix.SockFilter{
		{Code: opLoad, K: offArch},
		{Code: opEqual, K: arch, Jt: 1},
		{Code: opReturn, K: unix.SECCOMP_RET_KILL_PROCESS},
	}
	for _, c := range calls {
		block, err := c.assemble()
		if err != nil {
			return nil, err
		}
		program = append(program, block...)
	}
	program = append(program, unix.SockFilter{Code: opReturn, K: refuse})
	if len(program) > unix.BPF_MAXINSNS {
		return nil, errors.New("the filter is too long")
	}
	return program, nil
}

// assemble returns a self-contained block: it ends in the permission, or jumps
// behind itself.
func (c call) assemble() ([]unix.SockFilter, error) {
	length := 3 + 6*len(c.when)
	if length > 255 {
		return nil, fmt.Errorf("the rule for system call %d is too long", c.nr)
	}
	block := make([]unix.SockFilter, 0, length)
	equal := func(k uint32) {
		// To the first instruction behind the block if it differs.
		block = append(block, unix.SockFilter{Code: opEqual, K: k, Jf: uint8(length - len(block) - 1)})
	}
	block = append(block, unix.SockFilter{Code: opLoad, K: offNumber})
	equal(c.nr)
	for _, m := range c.when {
		low := offArgs + 8*m.arg
		for _, half := range []struct{ off, mask, value uint32 }{
			{low, uint32(m.mask), uint32(m.value)},
			{low + 4, uint32(m.mask >> 32), uint32(m.value >> 32)},
		} {
			block = append(block, unix.SockFilter{Code: opLoad, K: half.off}, unix.SockFilter{Code: opAnd, K: half.mask})
			equal(half.value)
		}
	}
	return append(block, unix.SockFilter{Code: opReturn, K: unix.SECCOMP_RET_ALLOW}), nil
}
