package daemon_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// socketsOf describes the sockets that a process has open, by what they are
// connected to, such as "tcp local 8640 peer 51234".
func socketsOf(pid int, known map[string]string) []string {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // it has ended
	}
	var all []string
	for _, entry := range entries {
		target, err := os.Readlink(dir + "/" + entry.Name())
		inode, isSocket := strings.CutPrefix(target, "socket:")
		if err != nil || !isSocket {
			continue
		}
		if socket, ok := known[strings.Trim(inode, "[]")]; ok {
			all = append(all, socket)
		}
	}
	return all
}

// knownSockets describes every socket of the Internet protocols, by inode.
func knownSockets() map[string]string {
	const local, remote, inode = 1, 2, 9
	all := make(map[string]string)
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6"} {
		data, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) > inode {
				all[fields[inode]] = fmt.Sprintf("%s local %d peer %d", table, portOf(fields[local]), portOf(fields[remote]))
			}
		}
	}
	return all
}

// portOf returns the port of an address as the kernel writes it.
func portOf(address string) int64 {
	_, hex, _ := strings.Cut(address, ":")
	port, _ := strconv.ParseInt(hex, 16, 32)
	return port
}

// mayConnect reports whether relayd may have a socket: the one it listens on,
// with the visitors' connections, and those to the model server.
func mayConnect(socket string, listen, model string) bool {
	return strings.HasPrefix(socket, "tcp local "+listen+" peer ") ||
		strings.HasPrefix(socket, "tcp local ") && strings.HasSuffix(socket, " peer "+model)
}

// Ensures that a connection that is open is seen, and told from those that may
// be.
func TestAttack_DetectsAConnection(t *testing.T) {
	t.Parallel()
	s := listenInSilence(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, peer, _ := net.SplitHostPort(s.tcp.Addr().String())
	_, local, _ := net.SplitHostPort(conn.LocalAddr().String())
	want, found := fmt.Sprintf("tcp local %s peer %s", local, peer), false
	for _, socket := range socketsOf(os.Getpid(), knownSockets()) {
		found = found || socket == want
	}
	if !found {
		t.Errorf("%s is not seen", want)
	}
	if mayConnect(want, "1", "2") || !mayConnect(want, local, "2") || !mayConnect(want, "1", peer) || mayConnect("udp local 1 peer 2", "1", "2") {
		t.Error("the wrong connections are allowed")
	}
}
