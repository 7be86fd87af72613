package systemd_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// serviceManager keeps what a service tells.
type serviceManager struct {
	path string

	mu     sync.Mutex
	states []string
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	m := &serviceManager{path: filepath.Join(open(t, 0o755), "notify")}
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "unixgram", m.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.path, 0o777); err != nil {
		t.Fatal(err)
	}
	var listening sync.WaitGroup
	listening.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			m.note(string(buffer[:n]))
		}
	})
	t.Cleanup(func() { _ = conn.Close(); listening.Wait() })
	return m
}

// note keeps a state's first line, and of signs of life in a row the first.
func (m *serviceManager) note(state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, _, _ = strings.Cut(state, "\n")
	if n := len(m.states); n == 0 || m.states[n-1] != state {
		m.states = append(m.states, state)
	}
}

// has reports whether the states were told in this order, signs of life between
// them aside.
func (m *serviceManager) has(want ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, state := range m.states {
		if len(want) > 0 && state == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}
