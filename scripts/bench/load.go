package main

import (
	"errors"
	"sync"
	"time"
)

// concurrently runs n workers and returns the errors of all.
func concurrently(n int, work func(worker int) error) error {
	failures := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { failures[i] = work(i) })
	}
	running.Wait()
	return errors.Join(failures...)
}

// repeat calls step until the time is up, with 0, 1, 2, and so on, and returns
// how often it did.
func repeat(d time.Duration, step func(i int) error) (count int, err error) {
	for deadline := time.Now().Add(d); time.Now().Before(deadline); count++ {
		if err := step(count); err != nil {
			return count, err
		}
	}
	return count, nil
}

// pace returns how many operations a second the workers do together for a time.
func pace(workers int, d time.Duration, step func(worker, i int) error) (float64, error) {
	counts := make([]int, workers)
	started := time.Now()
	err := concurrently(workers, func(worker int) (err error) {
		counts[worker], err = repeat(d, func(i int) error { return step(worker, i) })
		return err
	})
	took := time.Since(started)
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / took.Seconds(), err
}
