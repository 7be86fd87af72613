package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func slowTrial() trial {
	return trial{
		name: "slow", what: "2000 connections send or read byte by byte, beside ordinary clients",
		short: 4 * time.Second, long: 80 * time.Second, drive: driveSlow,
	}
}

const (
	slowConnections = 2000
	// slowTick is the time between two bytes of a slow client.
	slowTick = 200 * time.Millisecond
	// cutSlack is how much later than its time-out a connection may be cut.
	cutSlack = 3 * time.Second
	// ordinaryBound is what the slowest percent of the ordinary requests may take.
	ordinaryBound = 2 * time.Second
	// leftFiles is how many descriptors more than before may be open at the end:
	// those of the ordinary clients that have come meanwhile.
	leftFiles = 64
)

// timeouts are those of the configuration.
type timeouts struct{ header, read, write, idle time.Duration }

func (t timeouts) env() []string {
	return []string{
		"RELAYD_HTTP_HEADER_TIMEOUT=" + t.header.String(), "RELAYD_HTTP_READ_TIMEOUT=" + t.read.String(),
		"RELAYD_HTTP_WRITE_TIMEOUT=" + t.write.String(), "RELAYD_HTTP_IDLE_TIMEOUT=" + t.idle.String(),
	}
}

// driveSlow takes the default time-outs, or short ones in the short form.
func driveSlow(ctx context.Context, s *stage) error {
	limits := timeouts{header: 5 * time.Second, read: 15 * time.Second, write: 30 * time.Second, idle: 75 * time.Second}
	if s.short {
		limits = timeouts{header: time.Second, read: 1500 * time.Millisecond, write: 2 * time.Second, idle: 2 * time.Second}
	}
	n := s.many(slowConnections)
	if err := raiseOpenFiles(uint64(2*n + 512)); err != nil {
		return err
	}
	s.daemon.env = slices.Concat(raisedLimits(), limits.env())
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	t := s.begin(ctx, s.parties(s.many(16)), pace{writers: 1, write: 25 * time.Millisecond, read: 25 * time.Millisecond})
	err := s.beset(ctx, n, limits)
	t.finish()
	if err != nil {
		return err
	}
	for _, kind := range []string{posts, polls} {
		s.notef("ordinary %s: median %s", kind, inMilliseconds(s.tally.percentile(kind, 0.5)))
		s.within("99 % of ordinary "+kind, s.tally.percentile(kind, 0.99), ordinaryBound)
	}
	s.allow()
	return s.settle(ctx, t.readers, false)
}

// beset opens the slow connections, waits until relayd has cut them, and looks
// whether it holds on to any.
func (s *stage) beset(ctx context.Context, n int, limits timeouts) error {
	big, err := s.longThread(ctx)
	if err != nil {
		return err
	}
	pause(ctx, time.Second/2)
	before, err := openFiles(s.daemon.pid())
	if err != nil {
		return err
	}
	all := make([]*slowClient, n)
	var running sync.WaitGroup
	for i := range all {
		all[i] = newSlowClient(i, big, limits)
		running.Go(func() { all[i].run(ctx, s.daemon.address()) })
	}
	cut := make(chan struct{})
	go func() { running.Wait(); close(cut) }() // every slow client ends by itself
	most := s.watchFiles(cut)
	after, err := s.filesLeft(ctx, before+leftFiles)
	if err != nil {
		return err
	}
	s.notef("open files of relayd: %d before, at most %d, %d once they were cut", before, most, after)
	if after > before+leftFiles {
		s.failf("relayd has %d more files open than before", after-before)
	}
	s.judgeSlow(all)
	return nil
}

// watchFiles returns the most files that relayd had open until the end.
func (s *stage) watchFiles(end <-chan struct{}) int {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for most := 0; ; {
		select {
		case <-end:
			return most
		case <-ticker.C:
			if n, err := openFiles(s.daemon.pid()); err == nil {
				most = max(most, n)
			}
		}
	}
}

// filesLeft returns how many files relayd has open as soon as they are few, or
// when the time is up.
func (s *stage) filesLeft(ctx context.Context, few int) (int, error) {
	for end := time.Now().Add(cutSlack); ; {
		n, err := openFiles(s.daemon.pid())
		if err != nil || n <= few || time.Now().After(end) || !pause(ctx, 50*time.Millisecond) {
			return n, err
		}
	}
}

// longThread makes a thread whose newest page is long.
func (s *stage) longThread(ctx context.Context) (party, error) {
	p := s.parties(1)[0]
	const page = 50
	for range page {
		if _, res := s.post(ctx, p, strings.Repeat("long ", 700)); !res.served {
			return p, fmt.Errorf("a long message was refused: %s", res.code)
		}
	}
	return p, nil
}

// slowKind is one way to be slow.
type slowKind struct {
	name  string
	limit time.Duration // within which relayd cuts the connection
	first string        // what is sent at once
	drip  string        // what is sent byte by byte
	reads bool          // the answers are read byte by byte
}

// slowKinds returns every way to be slow. The readers are few, for each fills
// buffers of the kernel.
func slowKinds(big party, limits timeouts) (common []slowKind, readers slowKind) {
	endless := strings.Repeat("x", 1<<12)
	poll := "GET " + pollRoute + " HTTP/1.1\r\nHost: relay\r\nX-Chat-Token: " + string(big.token) + "\r\n\r\n"
	post := "POST " + postRoute + " HTTP/1.1\r\nHost: relay\r\nX-Chat-Token: " + string(big.token) + "\r\nContent-Length: 30000\r\n\r\n"
	const many = 64 // answers, more than the kernel buffers
	return []slowKind{
		{name: "silent", limit: limits.header},
		{name: "header", limit: limits.header, drip: "GET " + pollRoute + " HTTP/1.1\r\nX-Slow: " + endless},
		{name: "body", limit: limits.read, first: post, drip: `{"text":"` + endless},
		{name: "idle", limit: limits.idle, first: poll},
	}, slowKind{name: "reader", limit: limits.write, first: strings.Repeat(poll, many), drip: endless, reads: true}
}

// slowClient is one slow connection.
type slowClient struct {
	slowKind
	cut time.Duration // how long it lived; 0 when it was not cut
	err error         // why it could not begin
}

func newSlowClient(i int, big party, limits timeouts) *slowClient {
	common, readers := slowKinds(big, limits)
	if i%40 == 0 {
		return &slowClient{slowKind: readers}
	}
	return &slowClient{slowKind: common[i%len(common)]}
}

// run connects and is slow until the connection is cut or ctx ends.
func (c *slowClient) run(ctx context.Context, address string) {
	dialer := net.Dialer{Control: c.smallBuffer}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		c.err = err
		return
	}
	defer func() { _ = conn.Close() }()
	started := time.Now()
	if _, err := conn.Write([]byte(c.first)); err != nil {
		c.err = err
		return
	}
	for i := 0; ctx.Err() == nil && time.Since(started) < c.limit+cutSlack; i++ {
		if !c.tick(conn, i) {
			c.cut = time.Since(started)
			return
		}
	}
}

// smallBuffer keeps the kernel from reading in the place of a slow reader.
func (c *slowClient) smallBuffer(_, _ string, raw syscall.RawConn) error {
	if !c.reads {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096)
	})
	return errors.Join(err, failed)
}

// tick sends the next byte and reads for a while. It reports whether the
// connection still stands.
func (c *slowClient) tick(conn net.Conn, i int) bool {
	if i < len(c.drip) {
		if _, err := conn.Write([]byte{c.drip[i]}); err != nil {
			return false
		}
	}
	buf := make([]byte, 4096)
	if c.reads {
		buf = buf[:1]
		time.Sleep(slowTick)
	}
	if err := conn.SetReadDeadline(time.Now().Add(slowTick)); err != nil {
		return false
	}
	for {
		_, err := conn.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
		if err != nil {
			return false
		}
		if c.reads {
			return true
		}
	}
}

// judgeSlow states for each kind when it was cut, and whether that was in time.
func (s *stage) judgeSlow(all []*slowClient) {
	byKind := make(map[string][]*slowClient)
	var names []string
	for _, c := range all {
		if byKind[c.name] == nil {
			names = append(names, c.name)
		}
		byKind[c.name] = append(byKind[c.name], c)
	}
	slices.Sort(names)
	for _, name := range names {
		s.judgeKind(name, byKind[name])
	}
}

func (s *stage) judgeKind(name string, clients []*slowClient) {
	latest, standing, failed := time.Duration(0), 0, 0
	for _, c := range clients {
		switch latest = max(latest, c.cut); {
		case c.err != nil:
			failed++
		case c.cut == 0:
			standing++
		}
	}
	s.notef("%d slow connections (%s): cut after at most %v, time-out %v", len(clients), name,
		latest.Round(time.Millisecond), clients[0].limit)
	if failed > 0 {
		s.failf("%d slow connections (%s) could not begin", failed, name)
	}
	if standing > 0 || latest > clients[0].limit+cutSlack {
		s.failf("%d slow connections (%s) were not cut in time", standing, name)
	}
}
