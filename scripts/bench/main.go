// Command bench measures relayd and chat against what the machine can do at
// best, and prints ratios.
//
// Every floor is measured in the same run, in rounds that alternate with those
// of the program, and a ratio is the median over the rounds of the ratio inside
// each round. So a number says how much the program adds, on whatever machine
// and beside whatever else it runs:
//
//   - Requests are compared with a bare net/http handler in a process of its
//     own, which gives the same status, headers and number of bytes to the same
//     requests of the same 32 keep-alive connections.
//   - Durable posts are compared with a bare loop of write, fsync, rename and
//     fsync of the directory, with files of the same size and 8 writers.
//
// The program is the real one: relayd in a process of its own, with its log in
// a file. Nothing but its rate limits is changed.
//
// The exit code is 0 also when a target is missed, for this is a measurement,
// and 1 when something could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// plan says how long to measure.
type plan struct {
	rounds  int
	slice   time.Duration // of one measurement in one round
	replies int           // runs of chat reply
}

func fullPlan() plan  { return plan{rounds: 9, slice: 500 * time.Millisecond, replies: 50} }
func shortPlan() plan { return plan{rounds: 3, slice: 250 * time.Millisecond, replies: 50} }

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == floorCommand {
		return serveFloor(ctx, args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	dir := flags.String("dir", os.TempDir(), "keep the data of the run below `DIR`, which should be on a real disk")
	short := flags.Bool("short", false, "measure for seconds instead of a minute")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	p := fullPlan()
	if *short {
		p = shortPlan()
	}
	data, err := os.MkdirTemp(*dir, "relay-bench-")
	if err != nil {
		return fmt.Errorf("making a directory for the data: %w", err)
	}
	return errors.Join(benchmark(ctx, p, data), os.RemoveAll(data))
}

// benchmark measures everything below the directory data and prints the table.
func benchmark(ctx context.Context, p plan, data string) error {
	conditions, err := describeHost(data)
	if err != nil {
		return err
	}
	s, err := newSetup(ctx, data)
	if err != nil {
		return err
	}
	defer s.stop()
	seen, err := s.measure(ctx, p)
	if err != nil {
		return err
	}
	return printTable(os.Stdout, conditions, p, seen.rows())
}
