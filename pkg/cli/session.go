package cli

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/permission"
	"github.com/newos4/relay/pkg/storage"
)

// session is what a command works with once the configuration is known.
type session struct {
	*app
	config *config.Config
	store  *storage.Store
}

// keyedFlags names the flags that stand for a key of the configuration.
func keyedFlags(cmd *cobra.Command) map[string]*pflag.Flag {
	keyed := make(map[string]*pflag.Flag)
	for key, name := range map[string]string{"root": "root", "space": "space", "retention.max_age": "max-age"} {
		if flag := cmd.Flags().Lookup(name); flag != nil {
			keyed[key] = flag
		}
	}
	return keyed
}

// open loads the configuration and opens the threads that it names. The caller
// closes the session.
func (a *app) open(cmd *cobra.Command) (*session, error) {
	return a.openLogging(cmd, warningHandler{a})
}

// openLogging is open with warnings of the storage to another place.
func (a *app) openLogging(cmd *cobra.Command, warnings slog.Handler) (*session, error) {
	cfg, err := config.Load(config.Source{
		File:        a.configFile,
		DefaultFile: a.env.DefaultConfig,
		Env:         a.env.Environ,
		Flags:       keyedFlags(cmd),
	})
	if err != nil {
		return nil, err
	}
	store := storage.Open(storage.Options{
		Root:   cfg.Root,
		Space:  cfg.Space,
		Bounds: storage.Bounds{Retention: cfg.Keep(), Threads: cfg.Limits.Threads, Page: cfg.Limits.Page},
		Now:    a.env.Now,
		Logger: slog.New(warnings),
	})
	return &session{app: a, config: cfg, store: store}, nil
}

// close releases the files. Everything that matters is on disk by then, so
// there is nothing to report.
func (s *session) close() { _ = s.store.Close() }

// explain gives an error of the store the hint that helps with it.
func (s *session) explain(id chat.ThreadID, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return s.refused(err)
	}
	code := exitOf(err)
	hint := ""
	switch code {
	case exitNoThread:
		hint = "chat poll lists the threads that await hermes; this looked in " + s.store.Path()
	case exitCorrupt:
		hint = resetHint(id)
	}
	return &failure{code: code, err: err, hint: hint}
}

// refused names the path of an error of the kernel that names none, so that the
// hint can say whom to ask.
func (s *session) refused(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return &fs.PathError{Op: "using", Path: s.store.Path(), Err: err}
}

func resetHint(id chat.ThreadID) string {
	return "chat reset " + string(id) + " moves the file aside, and the thread starts anew"
}

// doubtRoot asks about a root without threads, which a mistyped one is as well as
// that of a fresh installation.
func (s *session) doubtRoot() {
	if s.store.IsNew() {
		s.printHint("the directory " + s.store.Path() + " does not exist yet; is the root right?")
	}
}

// warn tells of threads that are left out because they could not be read. A hint
// that fits all of them is given once.
func (a *app) warn(faults []storage.Fault) {
	told := ""
	for _, f := range faults {
		a.printError(f.Err.Error())
		hint := permission.Hint(f.Err, permission.Current)
		if f.IsCorrupt() {
			hint = resetHint(f.Thread)
		}
		if hint != told {
			a.printHint(hint)
			told = hint
		}
	}
}

// parseThread returns the thread that a THREAD argument names.
func parseThread(arg string) (chat.ThreadID, error) {
	id, err := chat.ParseThreadID(arg)
	if err == nil {
		return id, nil
	}
	const list = "chat poll lists the threads that await hermes"
	if token, err := chat.ParseToken(arg); err == nil {
		return "", usagef("the thread of that token is "+string(token.Thread()), "this is a browser's token, a secret, and not a thread id")
	}
	if hideTokens(arg) != arg {
		return "", usagef("a thread id has 16 lower-case hex digits; "+list, "this looks like a browser's token, a secret, and is not a thread id")
	}
	return "", usagef(list, "%w", err)
}
