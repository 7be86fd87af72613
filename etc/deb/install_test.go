package deb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensures that the sources build and install without git, wherever that is, that
// nothing of an administrator's is replaced or removed, and that a package of them
// has the version that it is given.
func TestInstall_FromASourceArchive(t *testing.T) {
	t.Parallel()
	nfpm := tools(t)
	dir := sources(t)
	mustRun(t, dir, "make", "build")
	// From here on nothing is built: root may have no Go.
	h := &host{t: t, root: t.TempDir()}
	h.make(dir, "install")
	for file, program := range map[string]string{
		"lib/systemd/system/relayd.service": "relayd serve", "lib/systemd/system/relayd-sweep.service": "chat sweep",
	} {
		if unit := mustRead(t, h.path("usr/local/"+file)); !strings.Contains(unit, "\nExecStart=/usr/local/bin/"+program+"\n") {
			t.Errorf("%s does not start /usr/local/bin/%s", file, program)
		}
	}
	for _, path := range []string{
		"usr/local/share/man/man8/relayd.8", "usr/local/share/zsh/site-functions/_chat",
		"usr/local/share/bash-completion/completions/chat", "usr/local/share/fish/vendor_completions.d/relayd.fish",
		"usr/local/lib/tmpfiles.d/relayd.conf", "usr/local/share/doc/newos4-relay/copyright", "etc/cron.d/relayd",
	} {
		if !h.has(path) {
			t.Errorf("%s is not installed", path)
		}
	}
	h.checkSysusers()

	mustWrite(t, h.path("etc/relayd/relayd.yaml"), "space: mine\n")
	h.make(dir, "install")
	if got := mustRead(t, h.path("etc/relayd/relayd.yaml")); got != "space: mine\n" {
		t.Errorf("installing again changes the configuration to\n%s", got)
	}
	h.checkInterrupted(dir)
	h.make(dir, "uninstall")
	left := strings.Fields(mustRun(t, h.root, "find", ".", "-name", "*relay*", "-o", "-name", "*chat*"))
	if got, want := strings.Join(left, " "), "./etc/relayd ./etc/relayd/relayd.yaml"; got != want {
		t.Errorf("uninstalling leaves %s, want %s", got, want)
	}

	output, err := run(t.Context(), dir, "make", "deb", "TOOLS="+nfpm)
	if err == nil || !strings.Contains(output, "hint: make deb VERSION=") {
		t.Errorf("a package without a version: %v\n%s", err, output)
	}
	if deb := mustMakeDeb(t, dir, nfpm, "VERSION=v0.2.0-rc.1"); !strings.HasPrefix(filepath.Base(deb), "newos4-relay_0.2.0~rc.1-1_") {
		t.Errorf("the package is %s", deb)
	}
	mustRun(t, dir, "make", "clean")
	if built, err := filepath.Glob(dir + "/bin"); err != nil || built != nil {
		t.Errorf("make clean leaves %q, %v", built, err)
	}
}

// make calls make for the host, with a Go that does not exist.
func (h *host) make(dir, target string) {
	h.t.Helper()
	mustRun(h.t, dir, "make", target, "DESTDIR="+h.root, "GO=/nonexistent/go")
}

// checkInterrupted ensures that an installation that ends early, as for want of
// room, leaves whole programs and nothing else.
func (h *host) checkInterrupted(dir string) {
	h.t.Helper()
	bin := h.path("usr/local/bin")
	before := mustRead(h.t, bin+"/chat")
	full := h.t.TempDir()
	mustWrite(h.t, full+"/cp", "#!/bin/sh\nfor to; do :; done\necho half >\"$to\"\nexit 1\n")
	mustRun(h.t, full, "chmod", "+x", "cp")
	path := "PATH=" + full + ":" + os.Getenv("PATH")
	if output, err := run(h.t.Context(), dir, "make", "install", "DESTDIR="+h.root, "GO=/nonexistent/go", path); err == nil {
		h.t.Errorf("succeeds without room:\n%s", output)
	}
	if mustRead(h.t, bin+"/chat") != before {
		h.t.Error("a program is cut")
	}
	if left := mustRun(h.t, bin, "ls", "-A"); left != "chat\nrelayd\n" {
		h.t.Errorf("leaves %q", left)
	}
	if output, err := run(h.t.Context(), dir, "make", "install", "DESTDIR="+h.root, "GO=/nonexistent/go", "PREFIX=/opt/a b"); err == nil || !strings.Contains(output, "PREFIX holds more") {
		h.t.Errorf("a prefix that no unit can name: %v\n%s", err, output)
	}
}

// checkSysusers ensures that systemd finds the user and the group where make
// install put them.
func (h *host) checkSysusers() {
	h.t.Helper()
	mustRun(h.t, h.root, "systemd-sysusers", "--root="+h.root, "--dry-run", "relayd.conf")
}
