package systemd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
)

// programs builds relayd and chat as they are shipped, where nobody may run them.
func programs(t *testing.T) (relayd, chat string) {
	t.Helper()
	dir := open(t, 0o755)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "../../cmd/relayd", "../../cmd/chat")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	return filepath.Join(dir, "relayd"), filepath.Join(dir, "chat")
}

// open returns a directory with that mode that others can reach, which they
// cannot with t.TempDir, and gives it to the user that confined programs run as.
func open(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "relay-units-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// stateDirectory returns a directory such as StateDirectory makes.
func stateDirectory(t *testing.T) string {
	t.Helper()
	if got := values(t, service, "StateDirectoryMode"); len(got) != 1 || got[0] != "2770" {
		t.Fatalf("StateDirectoryMode = %q", got)
	}
	return open(t, fs.ModeSetgid|0o770)
}

// journal is the log of a running relayd.
type journal struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // has a value after a write that nobody has looked at
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case j.written <- struct{}{}:
	default:
	}
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// await returns the first match of pattern once the log has one, nil for none in
// time.
func (j *journal) await(t *testing.T, pattern string) []string {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	deadline := time.After(30 * time.Second)
	for {
		if found := expression.FindStringSubmatch(j.String()); found != nil {
			return found
		}
		select {
		case <-j.written:
		case <-deadline:
			t.Errorf("the log never says %s:\n%s", pattern, j)
			return nil
		}
	}
}

// unit is a relayd that runs as the unit would let it.
type unit struct {
	cmd  *exec.Cmd
	log  *journal
	root string
	base string
}

func start(t *testing.T, filters [][]unix.SockFilter, relayd string, environ ...string) *unit {
	t.Helper()
	u := &unit{log: &journal{written: make(chan struct{}, 1)}, root: stateDirectory(t)}
	u.cmd = confined(t, filters, relayd, "serve", "--root", u.root, "--listen", "127.0.0.1:0", "--config", openConfig(t))
	u.cmd.Env = append(append(u.cmd.Env, "RELAYD_ADMIN_LISTEN=127.0.0.1:0", "RELAYD_AGENT_QUIET=10ms", "RELAYD_LIMITS_IP_POSTS=1000"), environ...)
	u.cmd.Stderr = u.log
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if u.cmd.ProcessState == nil {
			_ = u.cmd.Process.Kill()
			_ = u.cmd.Wait()
		}
	})
	serving := u.log.await(t, `msg=serving address=(\S+)`)
	if serving == nil {
		t.FailNow()
	}
	u.base = "http://" + serving[1] + "/spaces/newos4/api/chat/"
	return u
}

func openConfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(open(t, 0o755), "relayd.yaml")
	write(t, path, "", 0o644)
	return path
}

// manual returns a directory for agent.roots.
func manual(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(open(t, 0o755), "manual")
	write(t, filepath.Join(dir, "hours.txt"), "The observatory is open from nine until midnight.\n", 0o644)
	return dir
}

// ask makes a request as a browser and returns the answer's JSON.
func (u *unit) ask(t *testing.T, method, route string, visitor int, body any) (int, map[string]any) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, u.base+route, bytes.NewReader(encoded))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	req.Header.Set("X-Chat-Token", fmt.Sprintf("%064x", visitor))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%v\n%s", err, u.log)
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Error(err)
	}
	return resp.StatusCode, answer
}

// post posts a message and returns its thread.
func (u *unit) post(t *testing.T, visitor int, text string) string {
	t.Helper()
	status, answer := u.ask(t, http.MethodPost, "post.php", visitor, map[string]string{"text": text})
	thread, _ := answer["thread"].(string)
	if status != http.StatusCreated || thread == "" {
		t.Errorf("a post: %d %v\n%s", status, answer, u.log)
	}
	return thread
}

// checkAnswered waits until the thread is answered, and checks the answer.
func (u *unit) checkAnswered(t *testing.T, visitor int, thread, words string) {
	t.Helper()
	u.log.await(t, `msg="a run of the agent ended" thread=`+thread+` outcome=answered`)
	status, answer := u.ask(t, http.MethodGet, "poll.php?since=0", visitor, nil)
	if status != http.StatusOK || !strings.Contains(fmt.Sprint(answer), words) {
		t.Errorf("the answer does not hold %q: %d %v", words, status, answer)
	}
}

// checkStopped ends relayd as systemd does, and checks that it ended well and that
// nothing it did was refused.
func (u *unit) checkStopped(t *testing.T) {
	t.Helper()
	if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := u.cmd.Wait(); err != nil {
		t.Errorf("relayd ended with %v", err)
	}
	for _, complaint := range regexp.MustCompile(`(?m)^.*level=(WARN|ERROR).*$`).FindAllString(u.log.String(), -1) {
		// Who writes again while files are read for their last message ends that.
		if !strings.Contains(complaint, "the thread has changed") {
			t.Errorf("relayd complains: %s", complaint)
		}
	}
}

// checkShared checks that every directory of threads is the group's, as
// StateDirectory began it.
func (u *unit) checkShared(t *testing.T) {
	t.Helper()
	for dir := filepath.Join(u.root, "spaces/newos4/data/chat"); dir != filepath.Dir(u.root); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|fs.ModeSetgid|0o770 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
}

// Ensures that relayd, its reader of files and chat do all they are for under the
// system call filters of their own units and without privileges.
func TestPrograms_UnderTheirUnitsFilters(t *testing.T) {
	t.Parallel()
	relayd, chat := programs(t)
	lines := values(t, service, "SystemCallFilter")
	for name, test := range map[string]func(t *testing.T){
		"serves":          func(t *testing.T) { testServes(t, relayd) },
		"reaches a model": func(t *testing.T) { testReachesModel(t, relayd) },
		"sweeps":          func(t *testing.T) { testSweeps(t, chat) },
		// The tests above would notice if the reader could not be confined.
		"no line for the reader": func(t *testing.T) { testReaderFails(t, relayd, lines[:len(lines)-1]) },
		"no capset":              func(t *testing.T) { testReaderFails(t, relayd, slices.Concat(lines, []string{"~capset"})) },
		"no seccomp":             func(t *testing.T) { testReaderFails(t, relayd, slices.Concat(lines, []string{"~seccomp"})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// testServes ensures that many are served at once, that the reader of files is
// confined strictly and answers, that a reload and a stop work, that the service
// manager hears of all of it, and that nothing is refused that relayd wants.
func testServes(t *testing.T, relayd string) {
	manager := newServiceManager(t)
	u := start(t, filters(t, service, values(t, service, "SystemCallFilter")), relayd, "NOTIFY_SOCKET="+manager.path, "WATCHDOG_USEC=3000000",
		"RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_SANDBOX=strict", "RELAYD_AGENT_BUDGET_RUNS_PER_HOUR=0", "RELAYD_AGENT_ROOTS="+manual(t))
	u.log.await(t, `msg="the agent answers" backend=extract`)
	const question = "When is the observatory open?"
	var visitors sync.WaitGroup
	for visitor := range 8 {
		visitors.Go(func() {
			for range 10 {
				u.post(t, visitor, question)
				u.ask(t, http.MethodGet, "poll.php?since=0", visitor, nil)
			}
			u.checkAnswered(t, visitor, u.post(t, visitor, question), "until midnight")
		})
	}
	visitors.Wait()
	if err := u.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	u.log.await(t, `msg="the configuration was reloaded"`)
	u.checkAnswered(t, 100, u.post(t, 100, question), "until midnight")
	u.checkStopped(t)
	u.checkShared(t)
	if !manager.has("READY=1", "WATCHDOG=1", "RELOADING=1", "READY=1", "STOPPING=1") {
		t.Errorf("the service manager was told %q", manager.states)
	}
}

// testReachesModel ensures that a model on this machine is reached, and sees files
// through the reader.
func testReachesModel(t *testing.T, relayd string) {
	model := autoreplytest.New(t, autoreplytest.Options{})
	u := start(t, filters(t, service, values(t, service, "SystemCallFilter")), relayd,
		"RELAYD_AGENT_BACKEND=openai", "RELAYD_AGENT_ROOTS="+manual(t),
		"RELAYD_AGENT_OPENAI_BASE_URL="+model.URL, "RELAYD_AGENT_OPENAI_MODEL=any")
	u.checkAnswered(t, 1, u.post(t, 1, "CALL read_file {\"path\": \"manual/hours.txt\"}\nSAY_RESULT"), "until midnight")
	u.checkStopped(t)
}

// testReaderFails ensures that the agent cannot start under a shorter list of
// calls.
func testReaderFails(t *testing.T, relayd string, shorter []string) {
	u := start(t, filters(t, service, shorter), relayd, "RELAYD_AGENT_BACKEND=extract", "RELAYD_AGENT_ROOTS="+manual(t))
	u.log.await(t, `msg="the agent cannot start".*(confin|not enforceable)`)
}

// testSweeps ensures that chat sweeps under the filters of its own unit.
func testSweeps(t *testing.T, chat string) {
	cmd := confined(t, filters(t, sweepService, values(t, sweepService, "SystemCallFilter")), chat, "sweep", "--config", openConfig(t), "--root", stateDirectory(t))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "0 messages dropped") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Ensures that the filters in these tests refuse what the unit's do: to set the
// bit of set-group-ID, while a new directory inherits it; a namespace; to trace
// another process.
func TestFilters_Refuse(t *testing.T) {
	t.Parallel()
	dir := stateDirectory(t)
	filters := filters(t, service, values(t, service, "SystemCallFilter"))
	run := func(script string) (string, error) {
		cmd := confined(t, filters, "/bin/sh", "-c", "cd "+dir+" && "+script)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("mkdir below && stat -c %a below"); err != nil || out != "2770\n" {
		t.Errorf("a directory below: %v\n%s", err, out)
	}
	for _, script := range []string{"chmod g+s .", "chmod u+s .", "unshare --user true", "strace -o /dev/null true"} {
		if out, err := run(script); err == nil || !strings.Contains(out, "ermitted") {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
