package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"
)

func filesTrial() trial {
	return trial{
		name: "files", what: "silent connections take every file descriptor that relayd may have, beside ordinary clients",
		short: 1500 * time.Millisecond, long: 20 * time.Second, drive: driveFiles,
	}
}

// fewFiles is a limit of open files that the silent connections exceed.
const fewFiles = 64

func driveFiles(ctx context.Context, s *stage) error {
	limits := timeouts{header: time.Second, read: 5 * time.Second, write: 5 * time.Second, idle: 10 * time.Second}
	s.daemon.env = slices.Concat(raisedLimits(), limits.env())
	s.isolate(0, fmt.Sprintf("ulimit -n %d", fewFiles))
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	t := s.begin(ctx, s.parties(s.many(6)), pace{
		writers: 2, write: 5 * time.Millisecond, read: 10 * time.Millisecond, reply: 50 * time.Millisecond,
	})
	pause(ctx, s.lasts/5) // for ordinary clients to be there first
	err := s.flood(ctx, limits.header)
	t.finish()
	if err != nil {
		return err
	}
	s.allow(codeStorage, codeExitThread)
	return s.settle(ctx, t.readers, false)
}

// flood keeps relayd without a free descriptor for the time of the trial, and
// returns when a new client is served again.
func (s *stage) flood(ctx context.Context, timeout time.Duration) error {
	var silent []net.Conn
	defer func() {
		for _, conn := range silent {
			_ = conn.Close() // relayd may have been faster
		}
	}()
	for end := time.Now().Add(s.lasts); time.Now().Before(end) && pause(ctx, timeout/10); {
		for range fewFiles / 2 {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.daemon.address())
			if err != nil {
				return fmt.Errorf("connecting in silence: %w", err)
			}
			silent = append(silent, conn)
		}
	}
	s.notef("%d silent connections, room for %d open files", len(silent), fewFiles)
	if !s.daemon.logged("too many open files") {
		s.failf("relayd never ran out of files")
	}
	return s.awaitNewcomer(ctx, silent)
}

// awaitNewcomer hangs up and states when a new client is served again.
func (s *stage) awaitNewcomer(ctx context.Context, silent []net.Conn) error {
	for _, conn := range silent {
		_ = conn.Close() // as above
	}
	freed := time.Now()
	newcomer := newClient(s.daemon.address)
	defer newcomer.close()
	for {
		_, res := newcomer.poll(ctx, s.parties(1)[0], 0)
		if res.served {
			s.within("until a new client was served", time.Since(freed), recoveryBound)
			return nil
		}
		if time.Since(freed) > recoveryBound+requestTimeout || !pause(ctx, retryPause) {
			return fmt.Errorf("no new client is served %v after the silent ones hung up", time.Since(freed))
		}
	}
}
