package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// capacityCases judge the limit of threads (section 4).
func capacityCases() []testCase {
	return []testCase{
		{
			name:  "capacity/500-threads",
			wants: "With 499 files a new thread is accepted, with 500 it is 507 thread_limit; old threads go on, section 4.",
			needs: needRoot,
			judge: judgeCapacity,
		},
		{
			name:  "capacity/corrupt-files-count",
			wants: "Corrupt files count towards the 500, section 4.",
			needs: needRoot,
			judge: judgeCorruptCount,
		},
		{
			name:  "capacity/foreign-names-do-not-count",
			wants: "Files of other names are no threads and do not count, section 4.",
			needs: needRoot,
			judge: judgeForeignNames,
		},
		{
			name:  "capacity/race",
			wants: "Racing creators never make a thread more than 500, section 4.",
			needs: needRoot,
			judge: judgeCapacityRace,
		},
		{
			name:  "capacity/window-before-limit",
			wants: "A full window is 429 even when 500 threads stand, section 2.",
			needs: needRoot,
			judge: judgeWindowBeforeCapacity,
		},
	}
}

// fillUp places threads until there are n, and returns the id of one of them.
func (t *trial) fillUp(n int) string {
	standing, err := t.tree().threads()
	t.must(err)
	if len(standing) >= n {
		t.fatalf("the root holds %d threads already, so this cannot be judged", len(standing))
	}
	var thread string
	for range n - len(standing) {
		thread = threadOf(randomToken())
		t.placeMessages(t.tree(), thread, conversation(1, "hermes"))
	}
	return thread
}

func (t *trial) wantFull(token string) {
	t.wantError(t.postBody(token, textBody("hello")), http.StatusInsufficientStorage, "thread_limit")
	t.stayedEmpty(token)
}

func judgeCapacity(t *trial) {
	old := t.token()
	t.post(old, "hello")
	t.fillUp(threadLimit - 1)
	last, refused := t.token(), t.token()
	t.post(last, "the last one")
	t.wantFull(refused)
	t.post(old, "still here")
	t.post(last, "still here")
	t.wantThreads(threadLimit)
	t.must(os.Remove(t.tree().threadFile(threadOf(last))))
	t.post(refused, "there is room again")
}

func (t *trial) wantThreads(n int) {
	standing, err := t.tree().threads()
	t.must(err)
	if len(standing) != n {
		t.errorf("%d threads stand instead of %d", len(standing), n)
	}
}

func judgeCorruptCount(t *trial) {
	thread := t.fillUp(threadLimit)
	t.place(t.tree(), thread, []byte("{"))
	t.wantFull(t.token())
	t.unchanged(t.tree(), thread, []byte("{"))
}

func judgeForeignNames(t *trial) {
	t.fillUp(threadLimit - 1)
	for _, name := range []string{"notes.txt", "0123456789abcdef.json~", "0123456789ABCDEF.json", "0123456789abcde.json", "0123456789abcdef0.json"} {
		path := filepath.Join(t.tree().chatDir(), name)
		t.must(os.WriteFile(path, []byte("{}"), 0o660))
		t.cleanup(func() error { return os.Remove(path) })
	}
	t.post(t.token(), "the last one")
	t.wantFull(t.token())
}

func judgeCapacityRace(t *trial) {
	t.fillUp(threadLimit - 1)
	const racers = 12
	calls := make([]call, racers)
	for i := range calls {
		calls[i] = t.postCall(t.token(), strings.NewReader(textBody("hello")))
		calls[i].from = []string{randomIPv6()}
	}
	accepted := 0
	for _, o := range t.sendTogether(calls) {
		a := t.checked(o.call, o.answer, o.err)
		if a.status == http.StatusCreated {
			accepted++
			continue
		}
		t.wantError(a, http.StatusInsufficientStorage, "thread_limit")
	}
	if accepted != 1 {
		t.errorf("%d of %d racing posts made the last thread", accepted, racers)
	}
	t.wantThreads(threadLimit)
}

func judgeWindowBeforeCapacity(t *trial) {
	t.postMany(t.token(), threadPosts)
	t.postMany(t.token(), threadPosts)
	t.fillUp(threadLimit)
	t.wantLimited(t.postBody(t.token(), textBody("hello")), "ip", ipPosts, windowSeconds)
}
