// Acceptance judges an implementation of the newOS4 chat contract from the
// outside: over HTTP, by the host-side chat command, and by the files under the
// server's root. It shares no code with what it judges.
//
// Usage:
//
//	go run ./scripts/acceptance [-base URL] [-root DIR] [-chat COMMAND] [flags]
//
// Every case speaks as a client of its own: fresh tokens, and a fresh address in
// X-Forwarded-For. The server must therefore trust the judge's address as a
// proxy, as it does for loopback by default, must run with the contract's own
// limits, and must not have an agent that answers by itself. One case spends the
// window of the judge's own address, so a rerun is sound but a browser on the
// same machine may have to wait for ten minutes.
//
// With -root, every thread that the judge made or placed is removed again.
// The exit code is 0 when all judged cases passed, 1 when one failed or the
// server cannot be reached, 2 for a usage error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	exitPassed = 0
	exitFailed = 1
	exitUsage  = 2
)

// timeLimit bounds a whole run, whatever the server does.
const timeLimit = 55 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitPassed
	}
	if err != nil {
		fmt.Fprintln(stderr, "acceptance:", err)
		return exitUsage
	}
	cases := selectCases(allCases(), opts.run)
	if opts.list {
		listCases(stdout, cases)
		return exitPassed
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	if err := opts.target.reach(ctx); err != nil {
		fmt.Fprintln(stderr, "acceptance:", err)
		return exitFailed
	}
	warn(stderr, opts.target)
	total := judgeAll(ctx, opts.target, cases, stdout)
	fmt.Fprintln(stdout, total)
	if total.failed > 0 {
		return exitFailed
	}
	return exitPassed
}

// warn says what a run does to the server that it judges.
func warn(w io.Writer, s *target) {
	fmt.Fprintf(w, "acceptance: this writes to %s and fills threads there\n", s.base)
	if s.root == "" {
		fmt.Fprintln(w, "acceptance: without -root the threads that it makes stay behind")
	}
}

// listCases prints the names of the cases and what each of them wants.
func listCases(w io.Writer, cases []testCase) {
	for _, c := range cases {
		fmt.Fprintf(w, "%-42s %s\n", c.name, c.wants)
	}
}
