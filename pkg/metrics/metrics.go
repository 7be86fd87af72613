// Package metrics counts what relayd does and shows it to Prometheus.
//
// Counters start at 0 with the process. Gauges are read when somebody asks. No
// label holds what a client wrote: its values are words of the program.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// State is what the gauges show.
type State struct {
	// Threads stand now, of ThreadLimit that may.
	Threads, ThreadLimit int
	// Awaiting threads wait for Hermes, the longest for Oldest.
	Awaiting int
	Oldest   time.Duration
	// Watching is false while the threads are polled or looked for.
	Watching bool
	// Overflows is how often the kernel lost notifications.
	Overflows int
	// FreeBytes may still be written to the file system of the threads.
	FreeBytes int64
}

// Sweep is what one sweep did.
type Sweep struct {
	Failed    bool
	Removed   int // threads
	Shortened int // threads
	Messages  int // dropped, those of removed threads included
	Corrupt   int // thread files that were left alone
}

// Metrics are the counters of one process. Their methods may be called
// concurrently.
type Metrics struct {
	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	refusals  *prometheus.CounterVec
	syncs     prometheus.Histogram
	runs      *prometheus.CounterVec
	runTimes  prometheus.Histogram
	tokens    prometheus.Counter
	sweeps    *prometheus.CounterVec
	swept     *prometheus.CounterVec
	lastSweep prometheus.Gauge
}

// New returns counters at 0. version is shown as a label of relay_build_info.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: counters("relay_http_requests_total", "Requests that were answered, by route and status.", "route", "status"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "relay_http_request_duration_seconds", Help: "Time from the end of a request's header to the end of its answer, by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"route"}),
		refusals: counters("relay_http_refusals_total", "Requests that were refused, by the contract's code.", "code"),
		syncs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "relay_fsync_duration_seconds", Help: "Time of one sync of a thread's file or directory.",
			Buckets: []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}),
		runs: counters("relay_agent_runs_total", "Runs of the agent that ended, by outcome and, for failed ones, reason.", "outcome", "reason"),
		runTimes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "relay_agent_run_duration_seconds", Help: "Time of one run of the agent.",
			Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}),
		tokens:    prometheus.NewCounter(prometheus.CounterOpts{Name: "relay_agent_tokens_total", Help: "Tokens that runs of the agent used, prompts included."}),
		sweeps:    counters("relay_sweeps_total", "Sweeps, by result: done or failed in part.", "result"),
		swept:     counters("relay_swept_total", "What sweeps dropped, by kind; corrupt counts the files that were left alone.", "kind"),
		lastSweep: prometheus.NewGauge(prometheus.GaugeOpts{Name: "relay_last_sweep_timestamp_seconds", Help: "When the last sweep ended that did not fail, in Unix time; 0 for none."}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "relay_build_info", Help: "1, with the version as label.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	m.registry.MustRegister(build, m.requests, m.durations, m.refusals, m.syncs, m.runs, m.runTimes, m.tokens,
		m.sweeps, m.swept, m.lastSweep, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Request counts a request that was answered; code is empty where nothing was
// refused.
func (m *Metrics) Request(route string, status int, code string, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(route).Observe(took.Seconds())
	if code != "" {
		m.refusals.WithLabelValues(code).Inc()
	}
}

// Synced counts a sync of a file or a directory.
func (m *Metrics) Synced(took time.Duration) { m.syncs.Observe(took.Seconds()) }

// Run counts a run of the agent that ended; reason is empty unless it failed.
func (m *Metrics) Run(outcome, reason string, tokens int, took time.Duration) {
	m.runs.WithLabelValues(outcome, reason).Inc()
	m.runTimes.Observe(took.Seconds())
	m.tokens.Add(float64(max(tokens, 0)))
}

// Swept counts a sweep that ended at the time.
func (m *Metrics) Swept(s Sweep, ended time.Time) {
	for kind, n := range map[string]int{"threads_removed": s.Removed, "threads_shortened": s.Shortened, "messages": s.Messages, "corrupt": s.Corrupt} {
		m.swept.WithLabelValues(kind).Add(float64(n))
	}
	if s.Failed {
		m.sweeps.WithLabelValues("failed").Inc()
		return
	}
	m.sweeps.WithLabelValues("done").Inc()
	m.lastSweep.Set(float64(ended.UnixMilli()) / 1000)
}

// maxScrapes is more than the Prometheus servers that watch one relayd.
const maxScrapes = 8

// Handler serves the counters and the gauges that read returns. A state that
// cannot be read leaves its gauges out and the rest in place. While a state is not
// read to its end, as on a disk that hangs, no more than maxScrapes wait for it and
// others are refused with 503.
func (m *Metrics) Handler(read func() (State, error)) http.Handler {
	gauges := prometheus.NewRegistry()
	gauges.MustRegister(newStateCollector(read))
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, gauges}, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
	})
}
