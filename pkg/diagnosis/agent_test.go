package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/sandbox"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// unconfined is what a kernel without Landlock has to say.
func unconfined() sandbox.Report {
	return sandbox.Report{Guards: []sandbox.Guard{{Promise: "no file outside is read", Needs: "Landlock"}}}
}

// extract chooses a back end that reads files, of a directory that is returned.
func (in *installation) extract() string {
	in.t.Helper()
	dir := filepath.Join(in.dir, "public")
	in.must(os.Mkdir(dir, 0o755))
	in.set("AGENT_BACKEND", "extract")
	in.set("AGENT_ROOTS", dir)
	return dir
}

// openai chooses a server that may be asked and answers with err.
func openai(err error) func(in *installation) {
	return func(in *installation) {
		in.set("AGENT_BACKEND", "openai")
		in.set("AGENT_OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
		in.set("AGENT_OPENAI_MODEL", "m")
		in.options.Probe = func(context.Context) error { return err }
	}
}

// withKey is openai with the key in a file.
func withKey(file string, err error) func(in *installation) {
	return func(in *installation) {
		openai(nil)(in)
		in.set("AGENT_OPENAI_KEY_FILE", file)
		in.options.ReadKey = func(string) error { return err }
	}
}

// Ensures that each thing that can be wrong with the agent is found, once, and
// that its server is left alone where that would tell nothing.
func TestAgent(t *testing.T) {
	t.Parallel()
	absent := &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}
	testBreakages(t, map[string]breakage{
		"none":        {do: func(*installation) {}, check: "agent", level: OK, words: "none", silent: "roots"},
		"one at work": {do: openai(nil), check: "agent", level: OK, words: "openai can be used", silent: "keys"},
		"unavailable": {
			do:    openai(autoreply.Failf(autoreply.ReasonUnavailable, true, "refused")),
			check: "agent", level: Failure, words: "unavailable: refused", mend: "curl -sS http://127.0.0.1:1/v1",
		},
		"refused":    {do: openai(autoreply.Failf(autoreply.ReasonRefused, false, "401")), check: "agent", level: Failure, mend: "agent.openai.key_file"},
		"unsafe":     {do: openai(autoreply.Failf(autoreply.ReasonUnsafe, false, "x")), check: "agent", level: Failure, words: "unsafe", mend: "without tools"},
		"broken":     {do: openai(errors.New("odd")), check: "agent", level: Failure, words: "odd"},
		"no network": {do: func(in *installation) { openai(errors.New("x"))(in); in.options.NoNetwork = true }, check: "agent", level: Note, words: "--no-network"},
		"no network and no server": {
			do:    func(in *installation) { in.extract(); in.options.NoNetwork = true },
			check: "agent", level: OK, words: "extract can be used",
		},
		"unconfined and strict": {
			do:    func(in *installation) { in.extract(); in.host.Sandbox = unconfined },
			check: "sandbox", level: Failure, words: "no file outside is read (needs Landlock)", mend: "kernel",
		},
		"unconfined as allowed": {
			do: func(in *installation) {
				in.extract()
				in.host.Sandbox = unconfined
				in.set("AGENT_SANDBOX", "best-effort")
			},
			check: "sandbox", level: Warning,
		},
		"unconfined and of no use": {
			do:    func(in *installation) { in.host.Sandbox = unconfined },
			check: "sandbox", level: Note,
		},
		"a root that is missing": {
			do:    func(in *installation) { in.must(os.Remove(in.extract())) },
			check: "roots", level: Failure, words: "; lstat ", mend: "agent.roots",
		},
		"a root with a failure before": {
			do:    func(in *installation) { in.must(os.Remove(in.extract())) },
			check: "agent", level: Note, words: "mend what is above",
		},
		"a root in relayd's data": {
			do:    func(in *installation) { in.extract(); in.set("AGENT_ROOTS", in.store().Path()) },
			check: "roots", level: Failure, words: "denied",
		},
		"a root with relayd's data": {
			do:    func(in *installation) { in.extract(); in.set("AGENT_ROOTS", in.dir) },
			check: "roots", level: Warning, words: "/relayd.yaml", mend: "narrower",
		},
		"a root that refuses": {
			do: func(in *installation) {
				in.must(os.Chmod(in.extract(), 0o311))
				in.unprivileged = true
			},
			check: "roots", level: Failure, words: "permission denied",
		},
		"a root that refuses a user of chat": {
			do: func(in *installation) {
				in.must(os.Chmod(in.extract(), 0o311))
				in.openWay()
				in.give()
				in.unprivileged = true
			},
			check: "roots", level: Note, words: "by this user", mend: "sudo -u ",
		},
		"a key that all may read": {
			do:    func(in *installation) { withKey(in.file("key", "k", 0o644), nil)(in) },
			check: "keys", level: Failure, words: "everybody", mend: "chmod o-rwx ",
		},
		"a key of its own": {
			do:    func(in *installation) { withKey(in.file("key", "k", 0o600), nil)(in) },
			check: "keys", level: OK, words: "1 key",
		},
		"an agent without its key": {do: withKey("/nonexistent/key", absent), check: "agent", level: Note, words: "mend what is above first"},
		"a key that is missing":    {do: withKey("/nonexistent/key", absent), check: "keys", level: Failure, words: "cannot be read"},
		"a key that is missing and unused": {
			do:    func(in *installation) { withKey("/nonexistent/key", absent)(in); in.set("AGENT_BACKEND", "none") },
			check: "keys", level: OK,
		},
		"a key that a user of chat may not read": {
			do: func(in *installation) {
				withKey("/nonexistent/key", fmt.Errorf("reading a key: %w", fs.ErrPermission))(in)
				in.give()
			},
			check: "agent", level: Note, words: "its key cannot be read here",
		},
		"a credential seen from a shell": {
			do:    withKey("credential:openai", absent),
			check: "keys", level: Note, words: "from a shell", mend: "systemd-run ",
		},
		"a credential that the service lacks": {
			do:    func(in *installation) { withKey("credential:openai", absent)(in); in.options.InService = true },
			check: "keys", level: Failure, words: "no credential openai", mend: "LoadCredential=openai:",
		},
		"a credential among others": {
			do:    func(in *installation) { withKey("credential:openai", absent)(in); in.options.Credentials = in.dir },
			check: "keys", level: Failure, words: "cannot be read", mend: "LoadCredential=openai:",
		},
	})
}
