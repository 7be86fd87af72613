// Package diagnosis looks for what keeps an installation of relayd from doing what
// its configuration says, or opens it to people whom it should keep out.
//
// It only looks: nothing is made, changed or sent to a thread. What the host says
// comes through [Host], so that tests can have any host they want.
package diagnosis

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/permission"
	"github.com/newos4/relay/pkg/storage"
)

// Options say what is looked at.
type Options struct {
	Config *config.Config
	// ConfigFile is the absolute path that the configuration was read from; it may
	// be missing.
	ConfigFile string
	// Store holds the threads of the configuration.
	Store *storage.Store
	// Closed are the paths that the agent must never read.
	Closed []string
	// NoNetwork leaves the servers of the agent alone. The addresses that relayd
	// listens on are of this host and are looked at all the same.
	NoNetwork bool
	// Credentials is the directory of systemd's credentials, "" outside of a
	// service, and InService reports whether a service manager runs this process.
	Credentials string
	InService   bool
	// ReadKey reports whether a key can be read from where the configuration says
	// it is.
	ReadKey func(file string) error
	// Probe reports whether the agent's back end can be made and used now.
	Probe func(ctx context.Context) error
	// Host stands for the machine; nil means the one that this process is on.
	Host *Host
}

// check is one thing that is looked at. A check that has nothing to do with this
// installation finds nothing.
type check struct {
	name string
	look func(context.Context, *patient) []Finding
}

// checks are in the order in which they are made and shown: later ones rely on
// what earlier ones have found.
func checks() []check {
	return []check{
		{configurationCheck, lookAtConfiguration},
		{"user", lookAtUser},
		{"directory", lookAtDirectory},
		{"group", lookAtGroup},
		{"state", lookAtState},
		{"space", lookAtSpace},
		{"disk", lookAtDisk},
		{"threads", lookAtThreads},
		{"clock", lookAtClock},
		{"watch", lookAtWatch},
		{"files", lookAtOpenFiles},
		{"listen", lookAtListen},
		{"admin", lookAtAdmin},
		{"proxies", lookAtProxies},
		{sandboxCheck, lookAtSandbox},
		{rootsCheck, lookAtRoots},
		{keysCheck, lookAtKeys},
		{"agent", lookAtAgent},
	}
}

const (
	configurationCheck = "configuration"
	sandboxCheck       = "sandbox"
	rootsCheck         = "roots"
	keysCheck          = "keys"
)

// patient is the installation under examination, with what is known of it by now.
type patient struct {
	Options

	cfg  *config.Config
	host *Host
	me   permission.Identity
	// threads is the thread directory, or the one that it would be made in.
	// isMade reports which, and owner is whose it is; nil where that is unknown.
	threads string
	isMade  bool
	owner   *fileOwner
	// isOpen reports that this process may use the thread directory.
	isOpen bool

	survey    storage.Survey
	surveyErr error
	// isKeyAbsent reports that a key cannot be read by this process, and that
	// this proves nothing about relayd.
	isKeyAbsent bool
	failed      map[string]bool // checks with a failure
}

// Run makes all checks, tells of each finding when it is made, and returns them
// all. It ends early with ctx, whose end is then the error.
func Run(ctx context.Context, o Options, tell func(Finding)) (Report, error) {
	p := newPatient(o)
	p.survey, p.surveyErr = o.Store.Survey(ctx)
	var report Report
	for _, c := range checks() {
		for _, f := range c.look(ctx, p) {
			f.Check = c.name
			p.failed[c.name] = p.failed[c.name] || f.Level == Failure
			report.add(f)
			tell(f)
		}
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
	}
	return report, nil
}

func newPatient(o Options) *patient {
	host := o.Host
	if host == nil {
		host = ThisHost()
	}
	p := &patient{Options: o, cfg: o.Config, host: host, me: host.User(), failed: make(map[string]bool)}
	p.threads, p.owner = permission.Nearest(o.Store.Path())
	p.isMade = p.threads == o.Store.Path()
	return p
}

// isService reports whether this process is the user that relayd runs as, as far
// as can be told: whoever owns the threads. A directory of root tells nothing,
// for it may be one that was never given to relayd.
func (p *patient) isService() bool {
	return p.owner == nil || p.owner.Uid == 0 || int(p.owner.Uid) == p.me.UID
}

// isRoot reports whether the kernel refuses this process nothing.
func (p *patient) isRoot() bool { return p.me.UID == 0 }

// hint says how this user gets at what err refuses.
func (p *patient) hint(err error) string {
	return permission.Hint(err, func() permission.Identity { return p.me })
}

// asService is the command that looks at the installation with the eyes of relayd.
func (p *patient) asService() string { return "sudo -u " + p.serviceUser() + " " + p.command() }

// serviceUser is the user that relayd seems to run as, or the one of the manual.
func (p *patient) serviceUser() string {
	if p.owner == nil || p.owner.Uid == 0 {
		return "relayd"
	}
	return p.me.UserName(int(p.owner.Uid))
}

// command is this check as it is typed.
func (p *patient) command() string {
	if p.ConfigFile == config.DefaultFile {
		return "relayd check"
	}
	return "relayd check --config " + quoted(p.ConfigFile)
}

// Unusable returns the report on a configuration that cannot be loaded, with
// which nothing else can be looked at, and tells of each finding. The mend is for
// what no permission would mend.
func Unusable(err error, mend string, tell func(Finding)) Report {
	problems := []string{strings.TrimPrefix(err.Error(), configurationCheck+": ")}
	if listed, ok := errors.AsType[*config.Error](err); ok {
		problems = listed.Problems
	}
	var report Report
	if refused := permission.Hint(err, permission.Current); refused != "" {
		mend = refused
	}
	for i, problem := range problems {
		f := failure(problem, "", "")
		f.Check = configurationCheck
		if i == len(problems)-1 {
			f.Mend = mend // one for all
		}
		report.add(f)
		tell(f)
	}
	return report
}

// maxFuture is how far ahead of the clock a message may be: the clocks of hosts
// that share a directory differ a little.
const maxFuture = time.Minute
