package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one line of the table.
type row struct {
	what     string
	measured string
	floor    string
	ratio    string
	target   string
	reached  bool
}

// rows compares what was seen with the targets.
func (o observations) rows() []row {
	rows := []row{
		o.against("poll, 50 messages", pagePolls, pageFloor, 0.85),
		o.against("poll, nothing new", idlePolls, idleFloor, 0.88),
		o.against("durable post, 200 threads of 10", fewPosts, fewFloor, 0.80),
		o.against("durable post, 200 threads of 200", fullPosts, fullFloor, 0.80),
		o.mix(),
		o.against("poll of 10 messages, thread of 200 against 10", deepPolls, shallowPolls, 0.95),
		o.growth(),
	}
	return append(rows, o.memoryRow(), o.replyRow())
}

// median returns the median over the rounds of what of returns for each.
func (o observations) median(of func(round int) float64) float64 {
	var values []float64
	for round := range o.rates[mixed] {
		values = append(values, of(round))
	}
	return medianOf(values)
}

func medianOf[T float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// rate is the median rate of a probe.
func (o observations) rate(name string) float64 { return medianOf(o.rates[name]) }

// against compares a probe with its floor.
func (o observations) against(what, name, floor string, target float64) row {
	ratio := o.median(func(round int) float64 { return o.rates[name][round] / o.rates[floor][round] })
	return atLeast(row{what: what, measured: perSecond(o.rate(name)), floor: perSecond(o.rate(floor))}, ratio, target)
}

// mix compares the mix of 19 polls to one post with what the two floors predict
// together: the time of a request is the mean of their times.
func (o observations) mix() row {
	predicted := func(poll, post float64) float64 {
		const posts = 1.0 / mixShare
		return 1 / ((1-posts)/poll + posts/post)
	}
	ratio := o.median(func(round int) float64 {
		return o.rates[mixed][round] / predicted(o.rates[idleFloor][round], o.rates[fullFloor][round])
	})
	floor := predicted(o.rate(idleFloor), o.rate(fullFloor))
	return atLeast(row{
		what: "95 % idle polls, 5 % posts, 500 threads of 200", measured: perSecond(o.rate(mixed)), floor: perSecond(floor),
	}, ratio, 0.75)
}

// growth compares what 200 messages instead of 10 cost a post with what the
// same bytes cost the bare loop.
func (o observations) growth() row {
	ratio := o.median(func(round int) float64 {
		r := func(name string) float64 { return o.rates[name][round] }
		return (r(fullPosts) / r(fewPosts)) / (r(fullFloor) / r(fewFloor))
	})
	return atLeast(row{
		what:     "post, thread of 200 against 10, and its bytes alone",
		measured: fmt.Sprintf("%.2f times the rate", o.rate(fullPosts)/o.rate(fewPosts)),
		floor:    fmt.Sprintf("%.2f times the rate", o.rate(fullFloor)/o.rate(fewFloor)),
	}, ratio, 0.80)
}

func (o observations) memoryRow() row {
	const target = 48 << 20
	return row{
		what:     "relayd's memory, 500 threads of 200, resident (peak)",
		measured: fmt.Sprintf("%.1f (%.1f) MB", megabytes(o.memory.resident), megabytes(o.memory.peak)),
		floor:    "-", ratio: "-", target: "< 48 MB",
		reached: o.memory.resident < target,
	}
}

func (o observations) replyRow() row {
	const target = 15 * time.Millisecond
	median := medianOf(o.replies)
	return row{
		what: fmt.Sprintf("chat reply as a process, median of %d (min, max)", len(o.replies)),
		measured: fmt.Sprintf("%.1f (%.1f, %.1f) ms", milliseconds(median),
			milliseconds(slices.Min(o.replies)), milliseconds(slices.Max(o.replies))),
		floor: "-", ratio: "-", target: "< 15 ms",
		reached: median < target,
	}
}

func atLeast(r row, ratio, target float64) row {
	r.ratio, r.target = fmt.Sprintf("%.2f", ratio), fmt.Sprintf(">= %.2f", target)
	r.reached = ratio >= target
	return r
}

func perSecond(rate float64) string        { return fmt.Sprintf("%.0f/s", rate) }
func megabytes(bytes int) float64          { return float64(bytes) / (1 << 20) }
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// printTable prints the rows and how they came about.
func printTable(w io.Writer, conditions string, p plan, rows []row) error {
	fmt.Fprintf(w, "%s\n%d rounds of %v a probe, %d connections, %d writers; a ratio is the median of the rounds'\n\n",
		conditions, p.rounds, p.slice, connections, fileWriters)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "what\tmeasured\tfloor\tratio\ttarget\t\n")
	for _, r := range rows {
		verdict := "missed"
		if r.reached {
			verdict = "reached"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, r.floor, r.ratio, r.target, verdict)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\nfloors: the bare handler (polls), the bare loop (posts), 1/(0.95/handler + 0.05/loop) (mix)\n")
	return err
}
