package metrics

import "github.com/prometheus/client_golang/prometheus"

// stateCollector makes gauges of one look at the state.
type stateCollector struct {
	read   func() (State, error)
	gauges []stateGauge
}

// stateGauge is one value of a state.
type stateGauge struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(State) float64
}

func newStateCollector(read func() (State, error)) stateCollector {
	gauge := func(name, help string, value func(State) float64) stateGauge {
		return stateGauge{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, value}
	}
	overflows := gauge("relay_watch_overflow_total", "How often the kernel lost file notifications, after which all threads are scanned.",
		func(s State) float64 { return float64(s.Overflows) })
	overflows.kind = prometheus.CounterValue
	return stateCollector{read: read, gauges: []stateGauge{
		gauge("relay_threads", "Threads that stand.", func(s State) float64 { return float64(s.Threads) }),
		gauge("relay_threads_limit", "Threads that may stand; alert at 80 percent.", func(s State) float64 { return float64(s.ThreadLimit) }),
		gauge("relay_threads_awaiting", "Threads that await Hermes.", func(s State) float64 { return float64(s.Awaiting) }),
		gauge("relay_threads_awaiting_oldest_seconds", "How long the thread waits that has waited longest; 0 for none.", func(s State) float64 { return s.Oldest.Seconds() }),
		gauge("relay_watching", "1 while the kernel tells of changes, 0 while the threads are polled.", func(s State) float64 { return truth(s.Watching) }),
		overflows,
		gauge("relay_disk_free_bytes", "Bytes that may still be written to the file system of the threads.", func(s State) float64 { return float64(s.FreeBytes) }),
	}}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe implements [prometheus.Collector].
func (c stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		out <- g.desc
	}
}

// Collect implements [prometheus.Collector].
func (c stateCollector) Collect(out chan<- prometheus.Metric) {
	state, err := c.read()
	for _, g := range c.gauges {
		if err != nil {
			out <- prometheus.NewInvalidMetric(g.desc, err)
			continue
		}
		out <- prometheus.MustNewConstMetric(g.desc, g.kind, g.value(state))
	}
}
