// Package sandbox reads files for someone who must not be trusted.
//
// A [Reader] lists, reads and searches files beneath a few directories that the
// operator declared public, on behalf of a language model that is assumed to do
// whatever a stranger tells it. No directory is readable unless it is named.
//
// # What is promised
//
// The work is done by a child process: the same binary, run again with a hidden
// first argument (see [RunChildIfAsked]), with an empty environment and nothing
// but two pipes to its parent. The parent hands it plain values and distrusts
// every byte that comes back. Two walls stand behind each other:
//
//   - The reader's own rules. A path is a root's name and plain components; no
//     link is followed, no component may have a closed name, only regular files
//     with one link are opened, everything is bounded. Whatever is denied,
//     absent, or outside gives one and the same [ErrNotReadable].
//   - The kernel's. Should those rules have a hole, or should the child be taken
//     over altogether, it still can only read beneath the roots. It cannot read
//     elsewhere, write, run a program, start a process or a thread, open a
//     socket, send a signal, or gain a privilege, and it can use no more than a
//     fixed amount of memory, descriptors and processor time.
//
// Three mechanisms make the second wall, none of which needs privileges or
// namespaces, so that it also stands inside a hardened systemd unit; all it
// wants of its surroundings is /proc:
//
//   - Landlock, bound to the very directories that were opened, is the only one
//     that can tell one path from another. ABI 1 (Linux 5.13) is the minimum;
//     what later versions add (truncation, TCP, devices, signals, sockets) is
//     used where it exists.
//   - A seccomp filter that allows the few system calls which a Go program with
//     a fixed set of threads needs to read files, some of them only with
//     harmless arguments. Everything else, on any kernel, known today or not, is
//     refused with EPERM.
//   - Resource limits, no_new_privs, no capabilities, not dumpable, and death
//     together with the parent.
//
// The child tries out its own confinement before it takes a request, and
// [Start] fails unless every promise holds. [BestEffort] is the explicit way
// out on a kernel that cannot keep them all; [Report.Missing] then says what is
// not enforced.
//
// # What is not promised
//
// A child that has been taken over can read whatever its user may read beneath
// a root, including what the name rules keep closed: they are rules of the
// first wall alone. A secret does not belong beneath a public directory. Such a
// child may also find out whether a path outside exists (not what it holds, nor
// what a directory lists), because Linux offers no unprivileged way to hide
// that without namespaces. It serves a bounded number of requests before a
// fresh one takes its place.
package sandbox
