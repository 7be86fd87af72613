// Command faults drives the real relayd and chat through load and faults, and
// counts what became of every message.
//
// Each trial starts relayd as a process of its own on loopback, with a root of
// its own, says what it measured, and gets a row of the table:
//
//   - offered: requests that were made, over HTTP or by the chat command
//   - served: those that were answered as asked for
//   - refused: those that were refused, by code; "unreached" found nobody
//     listening
//   - unknown: those that were cut off before an answer; such a message may
//     stand once
//   - lost: messages that were acknowledged and that a later poll leaves out,
//     shows in the wrong place, or shows as something else
//   - doubled: messages that a poll shows twice
//   - phantom: messages that were refused and stand all the same
//
// Every thread is read in two ways: by a client that follows the cursor
// throughout, and from its beginning when all is over. Both must agree with
// what was acknowledged.
//
// The exit code is 0 when nothing was lost, doubled or a phantom, no relayd died
// by itself and every trial kept its bounds; 1 when not; 2 for a usage error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

const (
	exitKept   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// plan says how long and how hard the trials are.
type plan struct {
	short    bool
	duration time.Duration // of the load of each trial; 0 leaves it to the trial
	scale    float64       // multiplies numbers of clients
	seed     uint64
}

// lasts returns how long a trial keeps up its load.
func (p plan) lasts(short, long time.Duration) time.Duration {
	switch {
	case p.duration > 0:
		return p.duration
	case p.short:
		return short
	}
	return long
}

// many returns how many clients a trial has instead of n.
func (p plan) many(n int) int { return max(1, int(p.scale*float64(n))) }

// options are what the command line says.
type options struct {
	plan
	run  *regexp.Regexp
	dir  string
	bin  string
	list bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{run: regexp.MustCompile("")}
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.short, "short", false, "take seconds for each trial instead of minutes")
	flags.DurationVar(&o.duration, "duration", 0, "keep up the load of each trial for `TIME`")
	flags.Float64Var(&o.scale, "scale", 1, "multiply the number of clients by `FACTOR`")
	flags.Uint64Var(&o.seed, "seed", 1, "choose tokens, pauses and moments by `NUMBER`")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "keep the data of the trials below `DIR`")
	flags.StringVar(&o.bin, "bin", "", "take relayd and chat from `DIR` instead of building them")
	flags.BoolVar(&o.list, "list", false, "list the trials")
	flags.Func("run", "only the trials whose name matches `PATTERN`", func(pattern string) (err error) {
		o.run, err = regexp.Compile(pattern)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	return o, o.check(flags.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.duration < 0:
		return fmt.Errorf("-duration %v is negative", o.duration)
	case o.scale <= 0 || o.scale > 1000:
		return fmt.Errorf("-scale %v is not between 0 and 1000", o.scale)
	}
	return nil
}

// run is the program without its process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == steppedCommand {
		return fail(stderr, runStepped(args[1:]))
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitKept
	}
	if err != nil {
		fmt.Fprintf(stderr, "faults: %v\n", err)
		return exitUsage
	}
	trials := selectTrials(o.run)
	if o.list {
		for _, t := range trials {
			fmt.Fprintf(stdout, "%-8s %s\n", t.name, t.what)
		}
		return exitKept
	}
	if len(trials) == 0 {
		fmt.Fprintf(stderr, "faults: no trial matches %q\nhint: -list names them\n", o.run)
		return exitUsage
	}
	return fail(stderr, runTrials(ctx, o, trials, stdout))
}

// fail says what went wrong, if anything, and returns the exit code.
func fail(stderr io.Writer, err error) int {
	if err == nil {
		return exitKept
	}
	fmt.Fprintf(stderr, "faults: %v\n", err)
	return exitFailed
}
