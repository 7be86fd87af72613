package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// caseTimeout bounds one case.
const caseTimeout = 15 * time.Second

// need is a set of things that a case needs besides the server.
type need uint8

const (
	needRoot need = 1 << iota
	needChat
	needNewThreads
)

// testCase is one thing that the contract wants and the way to judge it.
type testCase struct {
	name  string
	wants string // one sentence that names the contract's section
	needs need
	judge func(*trial)
}

// allCases returns every case in the order in which they are judged.
func allCases() []testCase {
	return slices.Concat(
		roundTripCases(), authCases(), methodCases(), orderCases(),
		postCases(), contentCases(), refusedBodyCases(), sizeCases(),
		pollCases(), sinceCases(), pagingCases(),
		limitCases(), addressCases(), capacityCases(),
		corruptCases(), retentionCases(), hostCases(), raceCases(), pathCases(),
		replyCases(), replyRefusedCases(), listingCases(), chatPollCases(), waitCases(), sweepCases(), resetCases(), usageCases(),
	)
}

// selectCases returns the cases whose name matches the pattern.
func selectCases(cases []testCase, pattern *regexp.Regexp) []testCase {
	return slices.DeleteFunc(cases, func(c testCase) bool { return !pattern.MatchString(c.name) })
}

// sorted returns the cases by name, for tables that are kept as maps.
func sorted(cases []testCase) []testCase {
	slices.SortFunc(cases, func(a, b testCase) int { return strings.Compare(a.name, b.name) })
	return cases
}

// score counts the outcomes of a run.
type score struct{ passed, failed, skipped int }

// String is the closing line of a run.
func (s score) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s.passed, s.failed, s.skipped)
}

// judgeAll judges one case after the other, because some of them fill the server
// to its limits, and prints what came of each.
func judgeAll(ctx context.Context, s *target, cases []testCase, out io.Writer) score {
	var total score
	for _, c := range cases {
		if missing := s.missing(c.needs); missing != "" {
			total.skipped++
			fmt.Fprintf(out, "--   %s: not judged (needs %s)\n", c.name, missing)
			continue
		}
		if ctx.Err() != nil {
			total.failed++
			fmt.Fprintf(out, "FAIL %s: not judged (the run was interrupted or out of time)\n", c.name)
			continue
		}
		failures := judge(ctx, s, c)
		if len(failures) == 0 {
			total.passed++
			fmt.Fprintf(out, "ok   %s\n", c.name)
			continue
		}
		total.failed++
		fmt.Fprintf(out, "FAIL %s\n     wanted: %s\n", c.name, c.wants)
		for _, f := range failures {
			fmt.Fprintf(out, "     - %s\n", strings.ReplaceAll(f, "\n", "\n       "))
		}
	}
	return total
}

// judge runs one case to its end and returns what it found wrong.
func judge(ctx context.Context, s *target, c testCase) []string {
	ctx, cancel := context.WithTimeout(ctx, caseTimeout)
	defer cancel()
	t := &trial{target: s, ctx: ctx, from: randomIPv6()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.cleanUp()
		defer t.recoverPanic()
		c.judge(t)
	}()
	<-done
	return t.failures
}

// trial is one run of a case. Its methods belong to the goroutine of the case
// alone; what runs beside it uses the methods of the target.
type trial struct {
	*target
	ctx      context.Context
	from     string // the client's address in this case
	failures []string
	cleanups []func() error
}

// errorf records something wrong and goes on.
func (t *trial) errorf(format string, args ...any) {
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// fatalf records something wrong and ends the case.
func (t *trial) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	runtime.Goexit()
}

// must ends the case when err is an error of what the judge itself does.
func (t *trial) must(err error) {
	if err != nil {
		t.fatalf("the judge could not go on: %v", err)
	}
}

// cleanup has f called when the case is over, the latest first.
func (t *trial) cleanup(f func() error) {
	t.cleanups = append(t.cleanups, f)
}

func (t *trial) cleanUp() {
	for _, f := range slices.Backward(t.cleanups) {
		if err := f(); err != nil {
			t.errorf("the judge could not clean up: %v", err)
		}
	}
}

// recoverPanic turns a mistake of the judge into a failure of its case, so that
// the cases behind it are still judged.
func (t *trial) recoverPanic() {
	if p := recover(); p != nil {
		t.errorf("the judge panicked: %v", p)
	}
}

// together calls f for 0 to n-1 at the same time and returns what each returned.
func together[R any](n int, f func(int) R) []R {
	results := make([]R, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = f(i) })
	}
	wg.Wait()
	return results
}
