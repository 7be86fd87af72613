package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/chat"
)

const month = 720 * time.Hour

// Ensures that a sweep drops what is too old, removes threads of which nothing
// is left, keeps all else, and does nothing the second time.
func TestSweep_DropsWhatIsOld(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	old, mixed, young := chat.ThreadID("00000000000000aa"), chat.ThreadID("00000000000000bb"), chat.ThreadID("00000000000000cc")
	mustPost(t, s, old, "1")
	mustPost(t, s, old, "2")
	mustPost(t, s, mixed, "3")
	clock.t = clock.t.Add(month)
	mustPost(t, s, mixed, "4") // at exactly 30 days nothing is dropped yet
	mustPost(t, s, young, "5")
	clock.t = clock.t.Add(time.Second)
	want := SweepReport{Threads: 3, Messages: 3, Removed: []chat.ThreadID{old}, Shortened: []chat.ThreadID{mixed}}
	dry, err := s.Sweep(t.Context(), SweepOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, dry); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if got := texts(t, s, mixed); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("a dry run changed the thread: %v", got)
	}
	wet, err := s.Sweep(t.Context(), SweepOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, wet); diff != "" {
		t.Errorf("sweep (-want +got):\n%s", diff)
	}
	if got := texts(t, s, mixed); !slices.Equal(got, []string{"4"}) {
		t.Errorf("mixed = %v", got)
	}
	if exists, _ := s.Exists(old); exists {
		t.Error("the old thread stands")
	}
	again, err := s.Sweep(t.Context(), SweepOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(SweepReport{Threads: 2}, again); diff != "" {
		t.Errorf("second sweep (-want +got):\n%s", diff)
	}
}

// Ensures that the epochs of a thread stay ahead of every cursor after the
// thread was swept away and the clock stepped back, and that other threads are
// not dragged into the future.
func TestSweep_EpochsSurviveRemoval(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	past, ahead := chat.ThreadID("00000000000000aa"), chat.ThreadID("00000000000000bb")
	cursor := mustPost(t, s, past, "x").Message.Epoch
	clock.t = clock.t.Add(400 * 24 * time.Hour)
	jumped := mustPost(t, s, ahead, "from a clock that jumped").Message.Epoch
	clock.t = clock.t.Add(-400 * 24 * time.Hour).Add(month + time.Hour)
	mustSweep(t, s)
	if exists, _ := s.Exists(past); exists {
		t.Fatal("the old thread stands")
	}
	// The thread from the future was dated by the sweep and ages from there.
	setFileTime(t, s, ahead, clock.t)
	clock.t = clock.t.Add(month + time.Hour)
	mustSweep(t, s)
	if exists, _ := s.Exists(ahead); exists {
		t.Fatal("the thread from the future is never collected")
	}
	clock.t = newFakeClock().t.Add(-time.Hour)
	if epoch := mustPost(t, s, past, "again").Message.Epoch; epoch <= cursor {
		t.Errorf("epoch %d does not pass the cursor %d", epoch, cursor)
	}
	if epoch := mustPost(t, s, ahead, "again").Message.Epoch; epoch != jumped+1 {
		t.Errorf("epoch %d, want %d", epoch, jumped+1)
	}
	if epoch := mustPost(t, s, "00000000000000cc", "new").Message.Epoch; epoch > clock.t.Add(60*24*time.Hour).UnixMilli() {
		t.Errorf("a new thread starts at %d, far in the future", epoch)
	}
}

func mustSweep(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Sweep(t.Context(), SweepOptions{}); err != nil {
		t.Fatal(err)
	}
}

func setFileTime(t *testing.T, s *Store, id chat.ThreadID, at time.Time) {
	t.Helper()
	if err := os.Chtimes(s.filePath(id), time.Time{}, at); err != nil {
		t.Fatal(err)
	}
}

// Ensures that a thread whose file, too, is from the future gets the time of
// the first sweep that meets it (dstackai/dstack#1727).
func TestSweep_DatesThreadsFromTheFuture(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	clock.t = clock.t.Add(400 * 24 * time.Hour)
	mustPost(t, s, testThread, "x")
	setFileTime(t, s, testThread, clock.t)
	clock.t = newFakeClock().t
	mustSweep(t, s)
	info, err := os.Stat(s.filePath(testThread))
	if err != nil || !info.ModTime().Equal(clock.t) {
		t.Errorf("the file's time is %v, %v", info.ModTime(), err)
	}
	mustPost(t, s, testThread, "still writable")
	if got := texts(t, s, testThread); len(got) != 2 {
		t.Errorf("texts = %v", got)
	}
}

// Ensures that sweeps beside writers lose nothing that is young.
func TestSweep_NeverLosesARacingWrite(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := newFakeClock().t
	s := mustOpen(t, func(o *Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	advance := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	for round := range 40 {
		mustPost(t, s, testThread, "old")
		advance(month + time.Hour)
		young := fmt.Sprint("young ", round)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := s.Sweep(t.Context(), SweepOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { mustPost(t, s, testThread, young) })
		wg.Wait()
		if got := texts(t, s, testThread); !slices.Equal(got, []string{young}) {
			t.Fatalf("round %d: texts = %v", round, got)
		}
		if _, err := s.Reset(t.Context(), testThread); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensures that temporary files go only when no write can still own them.
func TestSweep_TemporaryFiles(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "x")
	fresh, stale := filepath.Join(s.path, tempName("a.json")), filepath.Join(s.path, tempName("b.json"))
	for _, path := range []string{fresh, stale} {
		if err := os.WriteFile(path, []byte("x"), 0o660); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(stale, time.Time{}, time.Now().Add(-tempMaxAge-time.Minute)); err != nil {
		t.Fatal(err)
	}
	report, err := s.Sweep(t.Context(), SweepOptions{})
	if err != nil || report.Temporary != 1 {
		t.Errorf("sweep = %+v, %v", report, err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a fresh file is gone: %v", err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("a stale file stands: %v", err)
	}
}

// Ensures that a sweep leaves writers what they are writing, however old a clock
// that jumped ahead makes it look: a thread, and the marks of a removed one.
func TestSweep_ClockAheadOfWriters(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		clock := newFakeClock()
		opts := testOptions(root)
		opts.Now = clock.now
		writer, sweeper := Open(opts), Open(opts)
		defer func() { _, _ = writer.Close(), sweeper.Close() }()
		renames := 0
		writer.step = func(step string) error {
			if step != "rename" {
				return nil
			}
			renames++
			names, err := regularNames(writer.path, isTempName)
			if err != nil || len(names) != 1 {
				t.Errorf("temporary files %v, %v", names, err)
			}
			for _, name := range names {
				setTime(t, filepath.Join(writer.path, name), time.Now().Add(-2*tempMaxAge))
			}
			if report, err := sweeper.Sweep(t.Context(), SweepOptions{}); err != nil || report.Temporary != 0 {
				t.Errorf("a sweep beside the writer = %+v, %v", report, err)
			}
			return nil
		}
		mustPost(t, writer, testThread, "x")
		clock.t = clock.t.Add(month + time.Second)
		if report, err := writer.Sweep(t.Context(), SweepOptions{}); err != nil || len(report.Removed) != 1 {
			t.Errorf("the writer's sweep = %+v, %v", report, err)
		}
		if renames != 2 {
			t.Errorf("%d files were renamed, want a thread and the marks", renames)
		}
	})
}

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// Ensures that a sweep passes over a thread in use and says so.
func TestSweep_SkipsBusyThreads(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, testThread, "x")
	setFileTime(t, s, testThread, time.Now())
	holder := startChild(t, "hold", childJob{Root: s.opts.Root, Thread: testThread})
	if !holder.stdout.Scan() {
		t.Fatal("the child did not take the lock")
	}
	s.opts.Now = func() time.Time { return time.Now().Add(2 * month) }
	report, err := s.Sweep(t.Context(), SweepOptions{})
	if err != nil || !slices.Equal(report.Busy, []chat.ThreadID{testThread}) || len(report.Removed) != 0 {
		t.Errorf("sweep = %+v, %v", report, err)
	}
	if err := holder.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.finish(); err != nil {
		t.Error(err)
	}
}

// Ensures that a removal is not done when the epoch cannot be made safe first.
func TestSweep_KeepsAThreadWhoseEpochIsNotSafe(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	mustPost(t, s, testThread, "x")
	clock.t = clock.t.Add(2 * month)
	s.step = func(step string) error {
		if step == "sync file" {
			return os.ErrPermission
		}
		return nil
	}
	if _, err := s.Sweep(t.Context(), SweepOptions{}); err == nil {
		t.Error("no error")
	}
	if exists, _ := s.Exists(testThread); !exists {
		t.Error("the thread is gone")
	}
}

// Ensures that a reset keeps the file under a name with id and time, starts the
// thread anew, and carries the epochs on, for sound and corrupt threads alike.
func TestReset_MovesAside(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := mustOpen(t, func(o *Options) { o.Now = clock.now })
	last := mustPost(t, s, testThread, "old").Message.Epoch
	var kept []string
	for round := range 3 {
		if round == 1 {
			content := fmt.Sprintf(`{"thread":"%s","messages":[{"id":"x","epoch":%d,`, testThread, last+5000)
			if err := os.WriteFile(s.filePath(testThread), []byte(content), 0o660); err != nil {
				t.Fatal(err)
			}
			last += 5000
		}
		before, err := os.ReadFile(s.filePath(testThread))
		if err != nil {
			t.Fatal(err)
		}
		aside, err := s.Reset(t.Context(), testThread)
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(aside)
		if err != nil || string(after) != string(before) {
			t.Errorf("kept %q, %v; want %q", after, err, before)
		}
		name := filepath.Base(aside)
		if filepath.Dir(aside) == s.path || !strings.Contains(name, string(testThread)) || !strings.Contains(name, "20261023T180000") {
			t.Errorf("moved to %s", aside)
		}
		if slices.Contains(kept, aside) {
			t.Errorf("%s was overwritten", aside)
		}
		kept = append(kept, aside)
		receipt := mustPost(t, s, testThread, "new")
		if !receipt.Created || receipt.Message.Epoch <= last {
			t.Errorf("round %d: receipt = %+v, last %d", round, receipt, last)
		}
		last = receipt.Message.Epoch
	}
	if _, err := s.Reset(t.Context(), "df0790f236013511"); chat.CodeOf(err) != chat.CodeNotFound {
		t.Errorf("a reset of nothing: %v", err)
	}
}

// Ensures that the epochs of a thread that was corrupted beyond recognition carry
// on from the time of its file, and are not taken for later than now.
func TestReset_EpochsOfAnUnreadableThread(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content        string
		age, wantFloor time.Duration // before now
	}{
		"zeros":              {strings.Repeat("\x00", 4096), time.Hour, time.Hour},
		"from the future":    {"", -400 * 24 * time.Hour, 0},
		"not to be believed": {`{"thread":"x","messages":[{"epoch":253402300799999,`, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newFakeClock()
			s := mustOpen(t, func(o *Options) { o.Now = clock.now })
			mustPost(t, s, "df0790f236013511", "x")
			if err := os.WriteFile(s.filePath(testThread), []byte(test.content), 0o660); err != nil {
				t.Fatal(err)
			}
			setFileTime(t, s, testThread, clock.t.Add(-test.age))
			if _, err := s.Reset(t.Context(), testThread); err != nil {
				t.Fatal(err)
			}
			want := clock.t.Add(-test.wantFloor).UnixMilli() + 1
			clock.t = clock.t.Add(-48 * time.Hour)
			if epoch := mustPost(t, s, testThread, "again").Message.Epoch; epoch != want {
				t.Errorf("epoch %d, want %d", epoch, want)
			}
		})
	}
}

// Ensures that marks which cannot be read do not keep new threads from starting.
func TestMarks_Unreadable(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustPost(t, s, "df0790f236013511", "x")
	if err := os.WriteFile(filepath.Join(s.path, marksName), []byte("{"), 0o660); err != nil {
		t.Fatal(err)
	}
	mustPost(t, s, testThread, "x")
}

// Ensures that a mark ahead of the clock is kept by name until the clock has
// caught up, and then moves the floor.
func TestMarks_Add(t *testing.T) {
	t.Parallel()
	var m marks
	const other = "df0790f236013511"
	steps := []struct {
		id         chat.ThreadID
		epoch, now int64
		changed    bool
		floor      int64
		threads    int
	}{
		{testThread, 100, 1000, true, 100, 0},
		{testThread, 50, 1000, false, 100, 0},
		{testThread, 5000, 1000, true, 100, 1},
		{testThread, 4000, 1000, false, 100, 1},
		{other, 200, 4999, true, 200, 1},
		{other, 200, 5000, true, 5000, 0},
	}
	for i, step := range steps {
		changed := m.add(step.id, step.epoch, step.now)
		if changed != step.changed || m.Floor != step.floor || len(m.Threads) != step.threads {
			t.Errorf("step %d: changed %v, marks %+v", i, changed, m)
		}
	}
}
