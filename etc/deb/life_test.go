package deb_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// token is a browser's, 64 zeros, and thread the thread that it opens.
var token = strings.Repeat("0", 64)

const thread = "60e05bd1b195af2f"

// host is a directory that dpkg looks after as if it were the root of a system,
// with nothing but what the package depends on. It needs no right to change
// into it, nor any user but the one who runs the tests.
type host struct {
	t    *testing.T
	root string
	// as lets dpkg believe that it is root, unless it is.
	as []string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, root: t.TempDir()}
	for _, dir := range []string{"etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(h.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, h.path("var/lib/dpkg/status"), `Package: systemd
Status: install ok installed
Maintainer: nobody <nobody@newos4.example>
Architecture: all
Version: 252
Description: stands for what the package depends on
`)
	mustWrite(t, h.path("var/lib/dpkg/info/systemd.list"), "/.\n")
	if os.Geteuid() != 0 {
		state := h.path("fakeroot")
		mustWrite(t, state, "")
		h.as = []string{"fakeroot", "-i", state, "-s", state, "--"}
	}
	return h
}

// path returns where a path of the host is.
func (h *host) path(name string) string { return filepath.Join(h.root, name) }

// rooted runs a program as root sees the host.
func (h *host) rooted(argv ...string) string {
	h.t.Helper()
	return mustRun(h.t, h.root, append(h.as, argv...)...)
}

// dpkg runs dpkg with the answers that apt gives where nobody can be asked, and
// without what the machine leaves out of packages.
func (h *host) dpkg(args ...string) string {
	h.t.Helper()
	return h.rooted(append([]string{
		"dpkg", "--root=" + h.root, "--log=" + h.path("dpkg.log"), "--force-script-chrootless",
		"--force-confdef", "--force-confold", "--path-include=/*",
	}, args...)...)
}

// has reports whether a path exists, be it a link to nowhere.
func (h *host) has(path string) bool {
	_, err := os.Lstat(h.path(path))
	return err == nil
}

// chat runs the installed chat and returns what it prints.
func (h *host) chat(args ...string) string {
	h.t.Helper()
	return mustRun(h.t, h.root, append([]string{h.path("usr/bin/chat"), "--config", h.path("etc/relayd/relayd.yaml")}, args...)...)
}

// serve starts the installed relayd, and returns the address of the chat and what
// stops it.
func (h *host) serve() (url string, stop func()) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), h.path("usr/bin/relayd"), "--config", h.path("etc/relayd/relayd.yaml"), "serve")
	log, err := cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewReader(log)
	stop = func() {
		h.t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			h.t.Error(err)
		}
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			h.t.Errorf("relayd ends with %v\n%s", err, rest)
		}
	}
	serving := regexp.MustCompile(`msg=serving address=(\S+)`)
	for {
		line, err := lines.ReadString('\n')
		if m := serving.FindStringSubmatch(line); m != nil {
			return "http://" + m[1] + "/spaces/newos4/api/chat/", stop
		}
		if err != nil {
			h.t.Fatalf("relayd does not serve: %v", cmd.Wait())
		}
	}
}

// exchange sends a browser's request and returns the answer.
func (h *host) exchange(method, url, body string) string {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	request.Header.Set("X-Chat-Token", token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		h.t.Fatalf("%s %s: %s, %v\n%s", method, url, response.Status, err, answer)
	}
	return string(answer)
}

// texts returns what a browser reads of its conversation.
func (h *host) texts(url string) string {
	h.t.Helper()
	var page struct {
		Messages []struct{ Author, Text string }
	}
	if err := json.Unmarshal([]byte(h.exchange(http.MethodGet, url+"poll.php?since=0", "")), &page); err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprint(page.Messages)
}

// enabled is the link by which a system starts relayd.
const enabled = "etc/systemd/system/multi-user.target.wants/relayd.service"

// data is the file of the conversation.
const data = "var/lib/relayd/spaces/newos4/data/chat/" + thread + ".json"

// checkLife ensures that who installs the package, configures it, talks, upgrades,
// removes and purges it never loses a conversation, nor a setting before the
// purge.
func checkLife(t *testing.T, first, second string) {
	h := newHost(t)
	h.dpkg("--install", first)
	h.checkInstalled()
	settings := "root: " + h.path("var/lib/relayd") + "\nlisten: 127.0.0.1:0\n"
	mustWrite(t, h.path("etc/relayd/relayd.yaml"), settings)

	url, stop := h.serve()
	h.exchange(http.MethodPost, url+"post.php", `{"text": "When does it open?"}`)
	if waiting := h.chat("poll"); !strings.Contains(waiting, thread) {
		t.Errorf("nobody waits for an answer:\n%s", waiting)
	}
	h.chat("reply", thread, "At 9.")
	stop()

	mustRemove(t, h.path(enabled)) // as systemctl disable does
	h.dpkg("--install", second)
	if h.has(enabled) {
		t.Error("the upgrade enables what was disabled")
	}
	if got := mustRead(t, h.path("etc/relayd/relayd.yaml")); got != settings {
		t.Errorf("the upgrade changes the configuration to\n%s", got)
	}
	if fresh := mustRead(t, h.path("etc/relayd/relayd.yaml.dpkg-dist")); !strings.Contains(fresh, "next version") {
		t.Error("the new configuration is not laid beside the old one")
	}
	if version := h.chat("--version"); !strings.Contains(version, "+dirty") {
		t.Errorf("after the upgrade chat is %s", version)
	}
	const said = "[{operator When does it open?} {hermes At 9.}]"
	url, stop = h.serve()
	if got := h.texts(url); got != said {
		t.Errorf("after the upgrade a browser reads %s, want %s", got, said)
	}
	stop()

	kept := mustRead(t, h.path(data))
	h.dpkg("--remove", "newos4-relay")
	if h.has("usr/bin/chat") || !h.has("etc/relayd/relayd.yaml") || mustRead(t, h.path(data)) != kept {
		t.Error("removing leaves programs, or takes the configuration or a conversation")
	}
	output := h.dpkg("--purge", "newos4-relay")
	if !strings.Contains(output, "rm -r "+h.path("var/lib/relayd")) {
		t.Errorf("purging does not say how conversations are deleted:\n%s", output)
	}
	if h.has("etc/relayd/relayd.yaml") || h.has("etc/cron.d/relayd") || mustRead(t, h.path(data)) != kept {
		t.Error("purging leaves configuration, or takes a conversation")
	}
	left := h.rooted("find", ".", "-name", "*relay*", "-not", "-path", "./var/lib/dpkg/*")
	if left != "./var/lib/relayd\n" {
		t.Errorf("purging leaves\n%swant ./var/lib/relayd", left)
	}

	h.dpkg("--install", second)
	url, stop = h.serveAgain(settings)
	if got := h.texts(url); got != said {
		t.Errorf("installed anew, a browser reads %s, want %s", got, said)
	}
	stop()
}

// serveAgain is serve with a configuration.
func (h *host) serveAgain(settings string) (url string, stop func()) {
	h.t.Helper()
	mustWrite(h.t, h.path("etc/relayd/relayd.yaml"), settings)
	return h.serve()
}

// checkInstalled ensures that the installation made the user, the group and the
// directory that they share, and will serve.
func (h *host) checkInstalled() {
	h.t.Helper()
	user := regexp.MustCompile(`(?m)^relayd:[^:]*:(\d+):(\d+):[^:]*:/var/lib/relayd:/usr/sbin/nologin$`).FindStringSubmatch(mustRead(h.t, h.path("etc/passwd")))
	group := regexp.MustCompile(`(?m)^relay:[^:]*:(\d+):`).FindStringSubmatch(mustRead(h.t, h.path("etc/group")))
	if user == nil || group == nil || user[2] != group[1] {
		h.t.Fatalf("user %q, group %q", user, group)
	}
	got := strings.TrimSpace(h.rooted("stat", "--format=%a %u %g", "var/lib/relayd"))
	if want := "2770 " + user[1] + " " + group[1]; got != want {
		h.t.Errorf("/var/lib/relayd has %s, want %s", got, want)
	}
	if !h.has(enabled) {
		h.t.Error("relayd is not enabled")
	}
	for _, unit := range []string{"sockets.target.wants/relayd.socket", "timers.target.wants/relayd-sweep.timer"} {
		if h.has("etc/systemd/system/" + unit) {
			h.t.Errorf("%s is enabled, though nobody chose it", unit)
		}
	}
}

func mustRemove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
