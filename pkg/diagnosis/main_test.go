package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/permission"
	"github.com/newos4/relay/pkg/sandbox"
	"github.com/newos4/relay/pkg/storage"
)

// TestMain lets the test binary look at a host of its own.
func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		if err := runChild(name); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	testThread  = chat.ThreadID("60e05bd1b195af2f")
	otherThread = chat.ThreadID("df0790f236013511")
)

// sharedGroup stands for the group of chat's users where the tests run as root,
// whose own group is shared with nobody.
const sharedGroup = 100

// installation is one in which nothing is wrong, for tests to break.
type installation struct {
	t       *testing.T
	dir     string // holds everything
	root    string
	env     []string
	options Options
	host    *Host
	me      permission.Identity
	// unprivileged looks with the eyes of a user whom the kernel refuses.
	unprivileged bool
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	dir := t.TempDir()
	in := &installation{t: t, dir: dir, root: filepath.Join(dir, "root"), host: ThisHost(), me: permission.Current()}
	in.me.UID = os.Geteuid()
	in.host.User = func() permission.Identity { return in.me }
	in.host.OpenFiles = func() (uint64, error) { return 4096, nil }
	in.host.Sandbox = func() sandbox.Report { return sandbox.Report{LandlockABI: 1, Seccomp: true} }
	in.host.FileSystem = func(string) (storage.FileSystem, error) { return storage.FileSystem{Free: 1 << 40}, nil }
	in.must(os.Chmod(filepath.Dir(dir), 0o711)) // of what the test makes
	in.must(os.Mkdir(in.root, 0o770))
	if os.Geteuid() == 0 {
		in.must(os.Chown(in.root, 0, sharedGroup))
	}
	in.must(os.Chmod(in.root, os.ModeSetgid|0o770))
	in.must(os.WriteFile(in.configFile(), nil, 0o600))
	in.options = Options{
		ReadKey: func(string) error { return nil },
		Probe:   func(context.Context) error { return nil },
	}
	in.set("ROOT", in.root)
	in.set("LISTEN", "127.0.0.1:0")
	in.set("ADMIN_LISTEN", "127.0.0.1:0")
	in.must(in.store().Prepare())
	return in
}

func (in *installation) configFile() string { return filepath.Join(in.dir, "relayd.yaml") }

func (in *installation) must(err error) {
	in.t.Helper()
	if err != nil {
		in.t.Fatal(err)
	}
}

// set sets a key by its variable.
func (in *installation) set(name, value string) { in.env = append(in.env, "RELAYD_"+name+"="+value) }

func (in *installation) config() *config.Config {
	in.t.Helper()
	cfg, err := config.Load(config.Source{DefaultFile: in.configFile(), Env: in.env})
	in.must(err)
	return cfg
}

func (in *installation) store() *storage.Store {
	in.t.Helper()
	return openStore(in.config())
}

func openStore(cfg *config.Config) *storage.Store {
	return storage.Open(storage.Options{
		Root: cfg.Root, Space: cfg.Space, Bounds: storage.Bounds{Retention: cfg.Keep(), Threads: cfg.Limits.Threads, Page: cfg.Limits.Page},
	})
}

// path is that of a file in the thread directory.
func (in *installation) path(name string) string { return filepath.Join(in.store().Path(), name) }

// say adds a message to a thread.
func (in *installation) say(id chat.ThreadID) {
	in.t.Helper()
	s := in.store()
	_, err := s.Append(in.t.Context(), id, storage.Post{Author: chat.Operator, Text: "x", Create: true})
	in.must(errors.Join(err, s.Close()))
}

// file writes a file that a test needs and returns its path.
func (in *installation) file(name, text string, mode os.FileMode) string {
	in.t.Helper()
	path := filepath.Join(in.dir, name)
	in.must(errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
	return path
}

// give makes the threads those of another user than the one that looks.
func (in *installation) give() {
	in.t.Helper()
	if os.Geteuid() == 0 {
		in.must(os.Chown(in.store().Path(), sharedGroup, sharedGroup))
		in.must(os.Chmod(in.store().Path(), os.ModeSetgid|0o770))
	}
	in.me.UID = 4242
	in.me.Groups = []int{sharedGroup, os.Getegid()}
}

// openWay lets everybody pass to the thread directory.
func (in *installation) openWay() {
	in.t.Helper()
	for dir := filepath.Dir(in.store().Path()); dir != in.dir; dir = filepath.Dir(dir) {
		in.must(os.Chmod(dir, 0o711))
	}
}

// run makes all checks.
func (in *installation) run() Report {
	in.t.Helper()
	o := in.options
	o.Config, o.ConfigFile, o.Store, o.Host = in.config(), in.configFile(), in.store(), in.host
	o.Closed = []string{filepath.Dir(o.Store.Path()), in.configFile()}
	var told []Finding
	report, err := in.as(func() (Report, error) {
		return Run(in.t.Context(), o, func(f Finding) { told = append(told, f) })
	})
	in.must(err)
	if len(told) != len(report.Findings) {
		in.t.Errorf("told of %d findings of %d", len(told), len(report.Findings))
	}
	return report
}

// as looks as nobody where that was asked for and the tests run as root.
func (in *installation) as(look func() (Report, error)) (Report, error) {
	if !in.unprivileged || os.Geteuid() != 0 {
		return look()
	}
	var report Report
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread has another user to the file system from here on. It ends
		// with the goroutine that holds it.
		runtime.LockOSThread()
		const nobody = 65534
		_, _ = unix.SetfsuidRetUid(nobody)
		report, err = look()
	}()
	<-done
	return report, err
}

// want checks that the report holds one finding of the check at the level, with
// these words in what and why, and in the mend.
func want(t *testing.T, r Report, check string, level Level, words, mend string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Check == check && f.Level == level && strings.Contains(f.What+"; "+f.Why, words) && strings.Contains(f.Mend, mend) {
			return
		}
	}
	t.Errorf("want %s %s %q, mend %q, among:\n%s", level, check, words, mend, printed(r))
}

func printed(r Report) string {
	var out strings.Builder
	for _, f := range r.Findings {
		Print(&out, f)
	}
	return out.String()
}

// Ensures that nothing is wrong with an installation as the manual makes it, in
// use or not.
func TestRun_Healthy(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	if r := in.run(); r.Summary() != "all is well" {
		t.Errorf("%s:\n%s", r.Summary(), printed(r))
	}
	in.say(testThread)
	if r := in.run(); r.Summary() != "all is well" {
		t.Errorf("%s:\n%s", r.Summary(), printed(r))
	}
	in.must(os.RemoveAll(in.root + "/spaces"))
	r := in.run()
	want(t, r, "directory", OK, "will be made", "")
	want(t, r, "state", OK, "will be made", "")
}

// Ensures that the check ends with its context.
func TestRun_Ends(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err := Run(ctx, Options{Config: in.config(), Store: in.store(), Host: in.host, ConfigFile: in.configFile()}, func(Finding) {})
	if !errors.Is(err, enough) {
		t.Errorf("Run = %v", err)
	}
}

// Ensures that the clock is compared with the newest message, to the minute.
func TestClock(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	in.say(testThread)
	for back, level := range map[time.Duration]Level{0: OK, 50 * time.Second: OK, time.Hour: Warning, 400 * 24 * time.Hour: Warning} {
		in.host.Now = func() time.Time { return time.Now().Add(-back) }
		want(t, in.run(), "clock", level, "", map[Level]string{Warning: "timedatectl"}[level])
	}
}
