package metrics_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/metrics"
)

func scrape(t *testing.T, m *metrics.Metrics, read func() (metrics.State, error)) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler(read).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// Ensures that everything which is counted is shown, in seconds where it is a time.
func TestMetrics_ShowWhatIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New("v1.2.3")
	m.Request("post", 201, "", time.Millisecond)
	m.Request("post", 429, "rate_limited", time.Millisecond)
	m.Synced(2 * time.Millisecond)
	m.Run("failed", "model", 70, time.Second)
	m.Run("answered", "", -1, time.Second)
	m.Swept(metrics.Sweep{Removed: 1, Shortened: 2, Messages: 9, Corrupt: 3}, time.UnixMilli(1500))
	m.Swept(metrics.Sweep{Failed: true}, time.UnixMilli(9000))
	got := scrape(t, m, func() (metrics.State, error) {
		return metrics.State{Threads: 4, ThreadLimit: 5, Awaiting: 2, Oldest: time.Minute, Watching: true, Overflows: 6, FreeBytes: 7}, nil
	})
	for _, want := range []string{
		`relay_build_info{version="v1.2.3"} 1`,
		`relay_http_requests_total{route="post",status="201"} 1`,
		`relay_http_requests_total{route="post",status="429"} 1`,
		`relay_http_request_duration_seconds_sum{route="post"} 0.002`, `relay_http_request_duration_seconds_count{route="post"} 2`,
		`relay_http_refusals_total{code="rate_limited"} 1`,
		`relay_fsync_duration_seconds_sum 0.002`, `relay_fsync_duration_seconds_count 1`,
		`relay_agent_runs_total{outcome="failed",reason="model"} 1`,
		`relay_agent_runs_total{outcome="answered",reason=""} 1`,
		`relay_agent_run_duration_seconds_sum 2`, `relay_agent_run_duration_seconds_count 2`,
		`relay_agent_tokens_total 70`,
		`relay_sweeps_total{result="done"} 1`, `relay_sweeps_total{result="failed"} 1`,
		`relay_swept_total{kind="threads_removed"} 1`, `relay_swept_total{kind="threads_shortened"} 2`,
		`relay_swept_total{kind="messages"} 9`, `relay_swept_total{kind="corrupt"} 3`,
		`relay_last_sweep_timestamp_seconds 1.5`,
		`relay_threads 4`, `relay_threads_limit 5`, `relay_threads_awaiting 2`, `relay_threads_awaiting_oldest_seconds 60`,
		`relay_watching 1`, `# TYPE relay_watch_overflow_total counter`, `relay_watch_overflow_total 6`, `relay_disk_free_bytes 7`,
		`go_goroutines `, `process_open_fds `,
	} {
		if !strings.HasSuffix(want, " ") {
			want += "\n" // the whole value
		}
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("lacks %s", want)
		}
	}
	if strings.Contains(got, `code=""`) {
		t.Error("an answer that refuses nothing counts as a refusal")
	}
}

// Ensures that a state which cannot be read hides its own gauges only.
func TestMetrics_UnreadableState(t *testing.T) {
	t.Parallel()
	m := metrics.New("v1")
	m.Synced(time.Millisecond)
	got := scrape(t, m, func() (metrics.State, error) { return metrics.State{}, errors.New("no") })
	if !strings.Contains(got, "relay_fsync_duration_seconds_count 1") || strings.Contains(got, "relay_threads") {
		t.Errorf("shows:\n%s", got)
	}
}

// Ensures that a state which is not read to its end holds a bounded number of
// scrapes, and that the next one after it is served.
func TestMetrics_HangingState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		handler := metrics.New("v1").Handler(func() (metrics.State, error) { <-hangs; return metrics.State{}, nil })
		get := func() int {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
			return answer.Code
		}
		var refused atomic.Int64
		var scrapes sync.WaitGroup
		for range 20 {
			scrapes.Go(func() {
				if get() == 503 {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := refused.Load(); n != 12 {
			t.Errorf("%d of 20 scrapes are refused at once, want 12", n)
		}
		close(hangs)
		scrapes.Wait()
		if status := get(); status != 200 {
			t.Errorf("afterwards: %d", status)
		}
	})
}

// Ensures that every metric which the manual names is shown.
func TestMetrics_OfTheManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../man/relayd-operation.7")
	if err != nil {
		t.Fatal(err)
	}
	m := metrics.New("v1")
	m.Request("post", 500, string(chat.CodeStorage), time.Millisecond)
	shown := scrape(t, m, func() (metrics.State, error) { return metrics.State{}, nil })
	named := regexp.MustCompile(`\brelay_[a-z]\w+(\{[^}]*\})?`).FindAllString(string(manual), -1)
	if len(named) < 4 {
		t.Fatalf("the manual names %q alone", named)
	}
	for _, name := range named {
		if !strings.Contains(shown, "\n"+name+" ") {
			t.Errorf("%s is not shown", name)
		}
	}
}
