package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func diskTrial() trial {
	return trial{
		name: "disk", what: "the disk is full again and again, under load, and relayd goes on without a restart",
		short: 2 * time.Second, long: 30 * time.Second, drive: driveDisk,
	}
}

const (
	// diskSize is that of the file system of the threads.
	diskSize = "64m"
	// fullTime is how long the disk is full in each round, and how long it is not.
	fullTime = 250 * time.Millisecond
	// recoverBound is how soon a post must be served again.
	recoverBound = time.Second
)

func driveDisk(ctx context.Context, s *stage) error {
	s.daemon.env = raisedLimits()
	s.isolate(syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS, `mount -t tmpfs -o size=`+diskSize+` none "$root"`)
	if err := s.daemon.start(ctx); err != nil {
		return err
	}
	ballast := filepath.Join("/proc", fmt.Sprint(s.daemon.pid()), "root", s.root, "ballast")
	rounds, slowest := 0, time.Duration(0)
	err := s.rounds(ctx, 2*time.Second, func(ctx context.Context, d time.Duration) error {
		t := s.begin(ctx, s.parties(s.many(6)), pace{
			writers: 2, write: 5 * time.Millisecond, read: 10 * time.Millisecond, reply: 25 * time.Millisecond,
		})
		defer t.finish()
		for end := time.Now().Add(d); time.Now().Before(end); rounds++ {
			took, err := s.fillAndFree(ctx, ballast)
			if err != nil {
				return err
			}
			slowest = max(slowest, took)
		}
		t.finish()
		return s.settle(ctx, t.readers, false)
	})
	if err != nil {
		return err
	}
	s.notef("the disk was full %d times for %v", rounds, fullTime)
	s.within("the slowest return to service", slowest, recoverBound)
	s.judgeDisk()
	return nil
}

// fillAndFree lets the disk be empty for a while and full for a while, and
// returns how long it took until a post was served again.
func (s *stage) fillAndFree(ctx context.Context, ballast string) (time.Duration, error) {
	pause(ctx, fullTime)
	if err := s.keepFull(ctx, ballast); err != nil {
		return 0, err
	}
	if err := os.Truncate(ballast, 0); err != nil {
		return 0, fmt.Errorf("making room on the disk: %w", err)
	}
	freed := time.Now()
	probe := s.parties(1)[0]
	for {
		if _, res := s.post(ctx, probe, "probe"); res.served {
			return time.Since(freed), nil
		}
		if time.Since(freed) > requestTimeout {
			return 0, fmt.Errorf("no post is served %v after there was room again", requestTimeout)
		}
	}
}

// keepFull takes all room there is, also what is given back meanwhile, for a
// while and until a post was refused.
func (s *stage) keepFull(ctx context.Context, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("filling the disk: %w", err)
	}
	defer func() { _ = file.Close() }()
	for _, size := range []int{1 << 20, 4096} {
		if err := fill(ctx, file, size); err != nil {
			return err
		}
	}
	_, before := s.tally.of(posts)
	for started := time.Now(); ; {
		if err := fill(ctx, file, 4096); err != nil {
			return err
		}
		_, after := s.tally.of(posts)
		if time.Since(started) > fullTime && after > before {
			return nil
		}
		if time.Since(started) > requestTimeout {
			return fmt.Errorf("no post was refused although the disk was full for %v", requestTimeout)
		}
		pause(ctx, time.Millisecond)
	}
}

// fill writes blocks of a size until there is no room for another.
func fill(ctx context.Context, file *os.File, size int) error {
	for block := bytes.Repeat([]byte{1}, size); ctx.Err() == nil; {
		_, err := file.Write(block)
		if errors.Is(err, unix.ENOSPC) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("filling the disk: %w", err)
		}
	}
	return ctx.Err()
}

// judgeDisk checks that a full disk refuses as the contract says (section 6),
// and only what is written.
func (s *stage) judgeDisk() {
	if _, refused := s.tally.of(polls); refused > 0 {
		s.failf("%d polls were refused", refused)
	}
	s.allow(codeStorage, codeExitFailed, codeExitThread)
}
