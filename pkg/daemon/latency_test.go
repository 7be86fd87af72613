package daemon_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// quick is a relayd whose model answers at once.
func quick(t *testing.T, root string, settings ...string) (*relayd, *doorman) {
	t.Helper()
	door := openDoor(t, autoreplytest.New(t, autoreplytest.Options{}).URL)
	return start(t, root, append([]string{
		"RELAYD_AGENT_BACKEND=openai", "RELAYD_AGENT_OPENAI_BASE_URL=" + door.URL + "/v1", "RELAYD_AGENT_OPENAI_MODEL=scripted",
		"RELAYD_AGENT_ROOTS=" + manual(t), "RELAYD_LIMITS_IP_POSTS=1000", "RELAYD_LIMITS_IP_NEW_THREADS=0",
		"RELAYD_AGENT_BUDGET_RUNS_PER_HOUR=0", "RELAYD_AGENT_BUDGET_RUNS_PER_DAY=0",
	}, settings...)...), door
}

// Ensures that a message is being answered soon after it has become durable and
// the quiet time is over, alone and in a rush. The goal is 300 ms at the 99th
// percentile; what is enforced leaves room for a busy machine.
func TestServe_AgentStartsSoon(t *testing.T) {
	t.Parallel()
	const threads, quiet, most = 100, 50 * time.Millisecond, 5 * time.Second
	for name, atOnce := range map[string]bool{"one at a time": false, "all at once": true} {
		t.Run(name, func(t *testing.T) {
			r, door := quick(t, t.TempDir(), "RELAYD_AGENT_QUIET="+quiet.String())
			marks, written := make([]string, threads), make([]time.Time, threads)
			for i := range threads {
				marks[i] = letters("mark", 20)
				posted := r.mustSend(t, 201, "POST", "post.php", token(i+1), fmt.Sprintf(`{"text":"SAY hi\n%s"}`, marks[i]))
				written[i] = time.UnixMilli(int64(posted["epoch"].(float64)))
				if !atOnce {
					door.awaitArrival(t, marks[i])
				}
			}
			var delays []time.Duration
			for i, mark := range marks {
				delays = append(delays, max(0, door.awaitArrival(t, mark).Sub(written[i])-quiet))
			}
			slices.Sort(delays)
			p99 := delays[len(delays)*99/100-1]
			t.Logf("from post to run, without the quiet time: median %v, 99%% %v, most %v",
				delays[len(delays)/2].Round(time.Millisecond), p99.Round(time.Millisecond), delays[len(delays)-1].Round(time.Millisecond))
			if p99 > most {
				t.Errorf("99%% of the runs begin within %v, want %v", p99, most)
			}
		})
	}
}

// awaitArrival waits until a request with the mark has come, and returns when.
// Only one goroutine may wait.
func (d *doorman) awaitArrival(t *testing.T, mark string) time.Time {
	t.Helper()
	timeout := time.After(60 * time.Second)
	for {
		if at, ok := d.arrival(mark); ok {
			return at
		}
		select {
		case <-d.came:
		case <-timeout:
			t.Fatal("the model is not asked")
		}
	}
}

// Ensures that a daemon with as many threads as there may be, some of which could
// not be answered, uses next to no processor while nothing happens.
func TestServe_IdleUsesNoProcessor(t *testing.T) {
	t.Parallel()
	const threads, hopeless, span = 500, 20, 4 * time.Second
	root := t.TempDir()
	fill(t, root, threads, hopeless)
	r, _ := quick(t, root, "RELAYD_AGENT_QUIET=0s", "RELAYD_AGENT_CONCURRENCY=8")
	m := follow(t, r)
	for i := range hopeless {
		if out, err := m.settled(t.Context(), chat.Token(token(i+1)).Thread(), ""); err != nil || out.stuck == "" {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	before := processorTime(r.Process.Pid)
	if before == 0 {
		t.Error("a start took no processor time, so it is not measured")
	}
	<-time.After(span) // this is what is measured
	used := processorTime(r.Process.Pid) - before
	t.Logf("%d threads use %v of processor time in %v", threads, used, span)
	if used > span/8 {
		t.Errorf("%v of processor time used in %v of idleness", used, span)
	}
}

// fill makes threads, of which the first hopeless ones cannot be answered and all
// others are answered.
func fill(t *testing.T, root string, threads, hopeless int) {
	t.Helper()
	store := openStore(root)
	defer func() { _ = store.Close() }()
	if err := store.Prepare(); err != nil {
		t.Fatal(err)
	}
	say := func(i int, author chat.Author, text string) {
		post := storage.Post{Author: author, Text: text, Create: true}
		if _, err := store.Append(t.Context(), chat.Token(token(i+1)).Thread(), post); err != nil {
			t.Error(err)
		}
	}
	var running sync.WaitGroup
	for lane := range 8 {
		running.Go(func() {
			for i := lane; i < threads; i += 8 {
				say(i, chat.Operator, "DECLINE")
				if i >= hopeless {
					say(i, chat.Hermes, "no")
				}
			}
		})
	}
	running.Wait()
}

// processorTime returns how much a process and all beneath it have used.
func processorTime(pid int) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	const user, system = 11, 12        // among the fields behind the name
	parents := parents()
	ticks := 0
	for other := range parents {
		if other != pid && !isBeneath(parents, other, pid) {
			continue
		}
		if fields := statOf(other); len(fields) > system {
			for _, field := range []string{fields[user], fields[system]} {
				n, _ := strconv.Atoi(field)
				ticks += n
			}
		}
	}
	return time.Duration(ticks) * tick
}
