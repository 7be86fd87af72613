package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	systemd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// socketName is what relayd.socket calls the socket that browsers reach.
const socketName = "http"

// handedListener returns the listener that a service manager has handed over, or
// nil if it has handed over none. Whatever else it has handed over is an error:
// relayd would serve on an address that nobody meant.
func handedListener() (net.Listener, error) {
	// Those of the library's functions that return listeners pass over what is none.
	handed := activation.Files(true)
	if len(handed) == 0 {
		return nil, nil
	}
	names := make([]string, len(handed))
	for i, file := range handed {
		names[i] = file.Name()
	}
	if len(handed) != 1 || names[0] != socketName {
		const shown = 4
		return nil, fmt.Errorf("the service manager has handed over %v, %d in all, and not one stream socket with FileDescriptorName=%s",
			names[:min(len(names), shown)], len(names), socketName)
	}
	listener, err := listenerOf(handed[0])
	if err != nil {
		return nil, fmt.Errorf("taking over the service manager's socket: %w\nhint: ListenStream of relayd.socket is an address and a port", err)
	}
	return listener, nil
}

// listenerOf returns the listener on a socket, which must be one of TCP: the peers
// of others have no address, and limits would count all clients as one.
func listenerOf(file *os.File) (net.Listener, error) {
	listens, err := unix.GetsockoptInt(int(file.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return nil, fmt.Errorf("it is none: %w", err)
	}
	if listens == 0 {
		return nil, errors.New("nothing can connect to it")
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	if _, isTCP := listener.Addr().(*net.TCPAddr); !isTCP {
		return nil, errors.Join(fmt.Errorf("it is one of %s and not of TCP", listener.Addr().Network()), listener.Close())
	}
	return listener, file.Close() // the listener has a copy
}

// notifyTimeout is how long a service manager may take to accept a state. It must
// not keep anybody from being served, nor from stopping.
const notifyTimeout = time.Second

// notifier returns what sends states to the socket of a service manager at path,
// where a leading @ stands for an abstract one; nil without a path.
func notifier(path string) func(state string) error {
	if path == "" {
		return nil
	}
	return func(state string) error {
		if err := send(path, state); err != nil {
			return fmt.Errorf("notifying the service manager: %w", err)
		}
		return nil
	}
}

// send is the library's SdNotify, which waits for ever for a manager that has
// stopped reading.
func send(path, state string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // a datagram is sent or not
	if err := conn.SetWriteDeadline(time.Now().Add(notifyTimeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}

// leastWatchdog is the shortest time within which the storage and the watcher can
// be asked, and some spare.
const leastWatchdog = 100 * time.Millisecond

// watchdogTime returns after which time without a sign of life the service manager
// gives the daemon up; 0 for never.
func watchdogTime() (time.Duration, error) {
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		return 0, fmt.Errorf("reading the watchdog's time: %w", err)
	}
	if interval == 0 {
		return 0, nil
	}
	// The library does not notice what is more than a duration holds.
	text := os.Getenv("WATCHDOG_USEC")
	usec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || interval.Microseconds() != usec || interval < leastWatchdog {
		return 0, fmt.Errorf("the watchdog's time of %s microseconds is out of bounds\nhint: WatchdogSec= is at least %s", text, leastWatchdog)
	}
	return interval, nil
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
