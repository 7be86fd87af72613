package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what came of one trial.
type report struct {
	name     string
	took     time.Duration
	counts   counts
	verdict  *verdict // nil when the threads could not be judged
	notes    []string // what was measured
	failures []string // bounds that were passed
	log      []string // what relayd complained of, when the trial failed
}

// printTable prints a row for each trial.
func printTable(w io.Writer, reports []*report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "trial\toffered\tserved\tunknown\tlost\tdoubled\tphantom\ttime\t\trefused\n")
	for _, r := range reports {
		lost, doubled, phantom := r.wrong()
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%.1f s\t%s\t%s\n", r.name, r.counts.offered, r.counts.served,
			r.counts.unknown, lost, doubled, phantom, r.took.Seconds(), r.word(), r.counts.refusals())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

// wrong returns the numbers of the row, or that they are not known.
func (r *report) wrong() (lost, doubled, phantom string) {
	if r.verdict == nil {
		return "?", "?", "?"
	}
	v := r.verdict
	return strconv.Itoa(len(v.lost)), strconv.Itoa(len(v.doubled)), strconv.Itoa(len(v.phantom))
}

// answers returns how many messages are the agent's.
func (r *report) answers() int {
	sum := 0
	if r.verdict != nil {
		for _, n := range r.verdict.answers {
			sum += n
		}
	}
	return sum
}

func (r *report) word() string {
	if len(r.problems()) > 0 {
		return "FAILED"
	}
	return "ok"
}

// refusals lists the codes by name.
func (c counts) refusals() string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(c.refused)) {
		parts = append(parts, fmt.Sprintf("%s %d", code, c.refused[code]))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// problems are all reasons for which the trial failed.
func (r *report) problems() []string {
	problems := slices.Clone(r.failures)
	if n := r.counts.refused["internal"]; n > 0 {
		problems = append(problems, fmt.Sprintf("%d requests failed inside relayd", n))
	}
	if r.verdict == nil {
		return append(problems, "the threads were not judged")
	}
	for _, of := range []struct {
		what    string
		entries map[*entry]string
	}{{"lost", r.verdict.lost}, {"doubled", r.verdict.doubled}, {"phantom", r.verdict.phantom}} {
		for _, text := range firstOf(slices.Sorted(maps.Values(of.entries))) {
			problems = append(problems, of.what+": "+text)
		}
	}
	for _, text := range firstOf(r.verdict.foreign) {
		problems = append(problems, "foreign: "+text)
	}
	return problems
}

// firstOf returns a few of many examples.
func firstOf(examples []string) []string { return examples[:min(5, len(examples))] }

// details says what the row does not.
func (r *report) details() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", r.name)
	if r.verdict != nil && r.counts.unknown > 0 {
		fmt.Fprintf(&out, "  of the requests that were cut off, %d messages stand\n", len(r.verdict.standing))
	}
	for _, part := range []struct {
		mark  string
		lines []string
	}{{"  ", r.notes}, {"  FAILED: ", r.problems()}, {"  log: ", r.log}} {
		for _, line := range part.lines {
			fmt.Fprintf(&out, "%s%s\n", part.mark, line)
		}
	}
	return out.String()
}

// verdictOf returns an error when a trial failed.
func verdictOf(reports []*report) error {
	var failed []string
	for _, r := range reports {
		if len(r.problems()) > 0 {
			failed = append(failed, r.name)
		}
	}
	if len(failed) > 0 {
		return errors.New("failed: " + strings.Join(failed, ", "))
	}
	return nil
}

// inMilliseconds prints a time as people compare it.
func inMilliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
