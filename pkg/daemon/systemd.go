package daemon

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/coreos/go-systemd/v22/activation"
	systemd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// socketName is what relayd.socket calls the socket that browsers reach.
const socketName = "http"

// handedListener returns the listener that a service manager has handed over, or
// nil if it has handed over none.
func handedListener() (net.Listener, error) {
	handed, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("taking over the service manager's sockets: %w", err)
	}
	if len(handed) == 0 {
		return nil, nil
	}
	listeners := handed[socketName]
	if len(handed) != 1 || len(listeners) != 1 {
		return nil, fmt.Errorf("the service manager has handed over %v, and not one stream socket with FileDescriptorName=%s", slices.Sorted(maps.Keys(handed)), socketName)
	}
	return listeners[0], nil
}

// notify sends a state to the service manager, if there is one.
func notify(state string) error {
	if _, err := systemd.SdNotify(false, state); err != nil {
		return fmt.Errorf("notifying the service manager: %w", err)
	}
	return nil
}

// monotonic is the clock by which a service manager tells a reload from the
// state before it.
func monotonic() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return ""
	}
	return fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000)
}
