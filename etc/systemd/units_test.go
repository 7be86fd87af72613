// Package systemd_test holds the units, and what stands beside them for sysusers,
// tmpfiles and cron, to the tools of a real systemd, which scripts/setup installs.
package systemd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robfig/cron/v3"
	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/config"
)

// The units, in this directory.
const (
	service      = "relayd.service"
	socket       = "relayd.socket"
	sweepService = "relayd-sweep.service"
	sweepTimer   = "relayd-sweep.timer"
)

// directive is one setting of a unit.
type directive struct {
	section, key, value string
	line                int
	reason              string // the comment right above
}

// parse reads a unit of this project. They have no continued lines.
func parse(t *testing.T, name string) []directive {
	t.Helper()
	var directives []directive
	var section string
	var reason []string
	for i, line := range strings.Split(read(t, name), "\n") {
		switch key, value, isSetting := strings.Cut(line, "="); {
		case strings.HasPrefix(line, "#"):
			reason = append(reason, strings.TrimPrefix(line, "# "))
			continue
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case isSetting:
			directives = append(directives, directive{section, key, value, i + 1, strings.Join(reason, " ")})
		case line != "":
			t.Fatalf("%s:%d: %q is neither a comment, a section nor a setting", name, i+1, line)
		}
		reason = nil
	}
	return directives
}

// values returns all values that a unit gives a key, in their order.
func values(t *testing.T, name, key string) []string {
	t.Helper()
	var found []string
	for _, d := range parse(t, name) {
		if d.key == key {
			found = append(found, d.value)
		}
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// tool runs one of systemd's tools and returns what it printed, and whether it
// succeeded.
func tool(t *testing.T, args ...string) (output string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "SYSTEMD_LOG_TARGET=console")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%v; scripts/setup (make setup) installs systemd", err)
	}
	return string(out), err == nil
}

func mustTool(t *testing.T, args ...string) string {
	t.Helper()
	out, ok := tool(t, args...)
	if !ok {
		t.Fatalf("%s failed:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// install returns a root directory with the units and what they refer to.
func install(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, unit := range []string{service, socket, sweepService, sweepTimer} {
		write(t, filepath.Join(root, "etc/systemd/system", unit), read(t, unit), 0o644)
	}
	for _, unit := range []string{
		"sysinit.target", "basic.target", "shutdown.target", "sockets.target", "timers.target", "network.target",
		"multi-user.target", "time-set.target", "time-sync.target",
	} {
		write(t, filepath.Join(root, "usr/lib/systemd/system", unit), "[Unit]\nDescription=the system's\n", 0o644)
	}
	for _, program := range []string{"usr/bin/relayd", "usr/bin/chat", "bin/kill"} {
		write(t, filepath.Join(root, program), "#!/bin/sh\n", 0o755)
	}
	return root
}

// verify returns what systemd finds wrong with a unit below root, "" for nothing.
func verify(t *testing.T, root, unit string) string {
	t.Helper()
	out, ok := tool(t, "systemd-analyze", "verify", "--man=no", "--root="+root, filepath.Join(root, "etc/systemd/system", unit))
	if !ok && out == "" {
		t.Fatalf("verifying %s failed without a word", unit)
	}
	return out
}

// Ensures that systemd has nothing to say against any unit, with the programs
// where the package installs them.
func TestUnits_Verify(t *testing.T) {
	t.Parallel()
	root := install(t)
	for _, unit := range []string{service, socket, sweepService, sweepTimer} {
		if out := verify(t, root, unit); out != "" {
			t.Errorf("%s:\n%s", unit, out)
		}
	}
}

// Ensures that the check above sees an unknown key, a bad value and a missing
// program.
func TestUnits_VerifySeesFaults(t *testing.T) {
	t.Parallel()
	for fault, mend := range map[string]*strings.Replacer{
		"ProtectClok":            strings.NewReplacer("ProtectClock=", "ProtectClok="),
		"mode value":             strings.NewReplacer("UMask=0007", "UMask=9"),
		"/usr/lib/relayd/relayd": strings.NewReplacer("/usr/bin/relayd", "/usr/lib/relayd/relayd"),
	} {
		root := install(t)
		write(t, filepath.Join(root, "etc/systemd/system", service), mend.Replace(read(t, service)), 0o644)
		if out := verify(t, root, service); !strings.Contains(out, fault) {
			t.Errorf("the report does not name %s:\n%s", fault, out)
		}
	}
}

// Ensures that systemd's own measure of what a unit leaves open, from 0 to 10,
// stays at 1.2 and below.
func TestUnits_Exposure(t *testing.T) {
	t.Parallel()
	const most = 1.2
	root := install(t)
	for _, unit := range []string{service, sweepService} {
		out := mustTool(t, "systemd-analyze", "security", "--offline=true", "--no-pager", "--root="+root, unit)
		found := regexp.MustCompile(`(?m)^. Overall exposure level for ` + regexp.QuoteMeta(unit) + `: ([0-9.]+)`).FindStringSubmatch(out)
		if found == nil {
			t.Fatalf("no exposure of %s in:\n%s", unit, out)
		}
		if exposure, err := strconv.ParseFloat(found[1], 64); err != nil || exposure > most {
			t.Errorf("%s: exposure %s, want at most %.1f\n%s", unit, found[1], most, out)
		}
	}
}

// Ensures the lines on which relayd, the manual or another unit counts and of which
// neither systemd's checks nor its measure say anything when they are gone.
func TestUnits_KeepTheirPromises(t *testing.T) {
	t.Parallel()
	for _, promise := range []struct{ unit, key, value, why string }{
		{service, "Type", "notify", "relayd says when it is ready"},
		{service, "WatchdogSec", "30s", "a relayd that hangs is started anew"},
		{service, "Restart", "on-failure", "a crash costs no message"},
		{service, "RestartSec", "5s", "no limit of starts is met"},
		{service, "ExecReload", "/bin/kill -HUP $MAINPID", "relayd(8) reloads on SIGHUP"},
		{service, "KillMode", "mixed", "answers in flight keep their reader of files"},
		{service, "OOMPolicy", "continue", "a reader of files is replaced"},
		{service, "LimitCORE", "0", "a core file holds tokens"},
		{service, "WantedBy", "multi-user.target", "it runs without a connection"},
		{socket, "FileDescriptorName", "http", "relayd(8) takes a socket of that name alone"},
		{socket, "IPAddressDeny", "any", "the limits of the service do not hold for its socket"},
		{socket, "IPAddressAllow", "localhost", "the front end is on this machine"},
		{socket, "WantedBy", "sockets.target", "it stands before services"},
		{sweepTimer, "Persistent", "true", "a machine that was off sweeps once"},
		{sweepTimer, "WantedBy", "timers.target", "it starts with the machine"},
	} {
		if got := values(t, promise.unit, promise.key); !slices.Equal(got, []string{promise.value}) {
			t.Errorf("%s has %s=%q, want %q: %s", promise.unit, promise.key, got, promise.value, promise.why)
		}
	}
	for _, unit := range []string{service, sweepService} {
		if got := values(t, unit, "UMask"); !slices.Equal(got, []string{"0007"}) {
			t.Errorf("%s makes files with the mask %q", unit, got)
		}
	}
}

// Ensures that every line of every unit has its reason right above it.
func TestUnits_EveryLineHasItsReason(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{service, socket, sweepService, sweepTimer} {
		for _, d := range parse(t, unit) {
			if d.reason == "" {
				t.Errorf("%s:%d: %s= has no comment above it", unit, d.line, d.key)
			}
		}
	}
}

// Ensures that the manual pages that the units name exist.
func TestUnits_NameManualPagesThatExist(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{service, socket, sweepService, sweepTimer} {
		for _, page := range strings.Fields(strings.Join(values(t, unit, "Documentation"), " ")) {
			found := regexp.MustCompile(`^man:([a-z.-]+)\(([1-8])\)$`).FindStringSubmatch(page)
			if found == nil {
				t.Errorf("%s: %q is no manual page", unit, page)
				continue
			}
			read(t, filepath.Join("../../man", found[1]+"."+found[2]))
		}
	}
}

// Ensures that what the configuration has as defaults is where the units, tmpfiles
// and sysusers put it: the address and the root.
func TestUnits_AgreeWithTheDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(config.Source{File: empty(t)})
	if err != nil {
		t.Fatal(err)
	}
	if got := values(t, socket, "ListenStream"); !slices.Equal(got, []string{cfg.Listen}) {
		t.Errorf("the socket listens on %q, the default is %s", got, cfg.Listen)
	}
	for _, unit := range []string{service, sweepService} {
		if got := values(t, unit, "StateDirectory"); !slices.Equal(got, []string{strings.TrimPrefix(cfg.Root, "/var/lib/")}) {
			t.Errorf("%s has the state directory %q, the default root is %s", unit, got, cfg.Root)
		}
	}
	for _, file := range []string{"../tmpfiles.d/relayd.conf", "../sysusers.d/relayd.conf"} {
		if !strings.Contains(read(t, file), " "+cfg.Root) {
			t.Errorf("%s does not name %s", file, cfg.Root)
		}
	}
}

func empty(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relayd.yaml")
	write(t, path, "", 0o644)
	return path
}

// Ensures that sysusers makes the user and the group that the units name, and
// tmpfiles the root as the units would.
func TestUsersAndRoot(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{service, sweepService} {
		if user, group := values(t, unit, "User"), values(t, unit, "Group"); !slices.Equal(user, []string{"relayd"}) || !slices.Equal(group, []string{"relay"}) {
			t.Errorf("%s runs as %q of %q", unit, user, group)
		}
	}
	root := t.TempDir()
	uid, gid := makeUser(t, root)
	mustTool(t, "systemd-tmpfiles", "--root="+root, "--create", absolute(t, "../tmpfiles.d/relayd.conf"))
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, "var/lib/relayd"), &st); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%04o %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
	for _, unit := range []string{service, sweepService} {
		mode := values(t, unit, "StateDirectoryMode")
		if want := fmt.Sprintf("%s %s:%s", mode[0], uid, gid); got != want {
			t.Errorf("the root has mode and owners %s, want %s as %s makes it", got, want, unit)
		}
	}
}

// makeUser lets sysusers make relayd's user and group below root and returns
// their numbers.
func makeUser(t *testing.T, root string) (uid, gid string) {
	t.Helper()
	write(t, filepath.Join(root, "etc/machine-id"), "", 0o644)
	file := absolute(t, "../sysusers.d/relayd.conf")
	dry := mustTool(t, "systemd-sysusers", "--root="+root, "--dry-run", file)
	if !strings.Contains(dry, "Creating group 'relay'") || !strings.Contains(dry, "Creating user 'relayd'") {
		t.Errorf("a dry run says:\n%s", dry)
	}
	if os.Getuid() != 0 {
		// Only root can give a directory to someone else.
		uid, gid = strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
		write(t, filepath.Join(root, "etc/passwd"), "relayd:x:"+uid+":"+gid+"::/:/bin/sh\n", 0o644)
		write(t, filepath.Join(root, "etc/group"), "relay:x:"+gid+":\n", 0o644)
		return uid, gid
	}
	mustTool(t, "systemd-sysusers", "--root="+root, file)
	passwd, group := read(t, filepath.Join(root, "etc/passwd")), read(t, filepath.Join(root, "etc/group"))
	user := regexp.MustCompile(`(?m)^relayd:x:(\d+):(\d+):.*:/var/lib/relayd:.*/nologin$`).FindStringSubmatch(passwd)
	if user == nil || !strings.Contains(group, "relay:x:"+user[2]+":") {
		t.Fatalf("sysusers made\n%s%s", passwd, group)
	}
	return user[1], user[2]
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensures that the timer's schedule is one, and as frequent as relayd's own.
func TestTimer_Calendar(t *testing.T) {
	t.Parallel()
	calendar := values(t, sweepTimer, "OnCalendar")
	if len(calendar) != 1 {
		t.Fatalf("OnCalendar = %q", calendar)
	}
	if out := mustTool(t, "systemd-analyze", "calendar", calendar[0]); !strings.Contains(out, "*-*-* *:00:00") {
		t.Errorf("it means\n%s", out)
	}
}

// Ensures that the file for cron does nothing until its one line is taken into
// use, and that cron accepts it then: its name, its variables, its fields, the
// newline at its end, and no "%", which cron would make a newline.
func TestCron(t *testing.T) {
	t.Parallel()
	const path = "../cron.d/relayd"
	text := read(t, path)
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(filepath.Base(path)) {
		t.Errorf("cron passes over a file of this name: %s", path)
	}
	if !strings.HasSuffix(text, "\n") {
		t.Error("cron needs a newline at the end")
	}
	jobs := 0
	for _, line := range strings.Split(text, "\n") {
		if job, ok := strings.CutPrefix(line, "#"); ok && regexp.MustCompile(`^[0-9*]`).MatchString(job) {
			jobs++
			checkJob(t, job)
			continue
		}
		if line != "" && !strings.HasPrefix(line, "#") && !regexp.MustCompile(`^(SHELL|PATH)=/\S+$`).MatchString(line) {
			t.Errorf("%q is in use", line)
		}
	}
	if jobs != 1 {
		t.Errorf("%d lines are there to be used, want 1", jobs)
	}
}

func checkJob(t *testing.T, job string) {
	t.Helper()
	found := regexp.MustCompile(`^((?:\S+ ){5})(\S+) ([^%]+)$`).FindStringSubmatch(job)
	if found == nil {
		t.Fatalf("%q is not five fields, a user and a command", job)
	}
	if _, err := cron.ParseStandard(strings.TrimSpace(found[1])); err != nil {
		t.Errorf("%q: %v", job, err)
	}
	run := values(t, sweepService, "ExecStart")
	if found[2] != "relayd" || !strings.HasPrefix(found[3], "[ ! -x /usr/bin/chat ] || "+run[0]) {
		t.Errorf("%s runs %q, want relayd and %q", found[2], found[3], run[0])
	}
}
