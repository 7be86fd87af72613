package storage

import "fmt"

// probeName is the name that a probe's file would have if it became one.
const probeName = "probe"

// Probe writes a file of one byte into the thread directory, syncs it and takes
// it away again, and so tells whether a message could be stored. It returns
// whatever the system refuses with, such as ENOSPC, and hangs as long as the
// system does.
func (s *Store) Probe() error {
	dir, err := s.writableDir()
	if err != nil {
		return err
	}
	temp := tempName(probeName)
	if _, err := s.writeTemp(dir, temp, []byte{0}, identity{}); err != nil {
		return s.discard(dir, temp, "a probe", err)
	}
	// A sweep may have been faster, after a clock that jumped ahead.
	if err := ignoreMissing(dir.remove(temp)); err != nil {
		return failure(fmt.Errorf("removing a probe: %w", err))
	}
	return nil
}
