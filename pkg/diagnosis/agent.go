package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/permission"
	"github.com/newos4/relay/pkg/sandbox"
)

// readsFiles reports whether the agent has a reader of files.
func (p *patient) readsFiles() bool {
	switch p.cfg.Agent.Backend {
	case config.BackendExtract:
		return true
	case config.BackendOpenAI, config.BackendHermes:
		return len(p.cfg.Agent.Roots) > 0
	}
	return false
}

func lookAtSandbox(_ context.Context, p *patient) []Finding {
	report := p.host.Sandbox()
	missing := report.Missing()
	if len(missing) == 0 {
		return []Finding{ok("Landlock ABI %d and seccomp", report.LandlockABI)}
	}
	what := "the kernel cannot confine a reader of files"
	why := fmt.Sprintf("%s (needs %s)", missing[0].Promise, missing[0].Needs)
	const mend = "boot a kernel with Landlock and seccomp; under a service manager look at its SystemCallFilter"
	switch {
	case !p.readsFiles():
		return []Finding{note(what, "no back end is configured that reads files", "")}
	case p.cfg.Agent.Sandbox == config.SandboxStrict:
		return []Finding{failure(what+", and agent.sandbox is strict", "unkept: "+why, mend)}
	}
	return []Finding{warning(what+" fully, as agent.sandbox best-effort allows", "unkept: "+why, mend)}
}

func lookAtRoots(_ context.Context, p *patient) []Finding {
	if !p.readsFiles() {
		return nil
	}
	var found []Finding
	for _, root := range p.cfg.Agent.Roots {
		found = append(found, p.lookAtRoot(root)...)
	}
	return orOK(found, "%s", strings.Join(p.cfg.Agent.Roots, ", "))
}

func (p *patient) lookAtRoot(root string) []Finding {
	denied, err := sandbox.Options{Roots: []string{root}, Deny: p.Closed}.DeniedBeneath()
	if err != nil {
		why := strings.TrimPrefix(err.Error(), fmt.Sprintf("sandbox: root %q: ", root))
		return []Finding{failure("agent.roots: "+root+" cannot be used", why, "make it a directory, or take it out of agent.roots")}
	}
	if err := permission.Check(root, permission.Read|permission.Search); err != nil {
		return []Finding{p.asFarAsSeen("agent.roots: "+root+" cannot be read", err)}
	}
	if len(denied) == 0 {
		return nil
	}
	return []Finding{warning(fmt.Sprintf("agent.roots: %s holds %s", root, strings.Join(denied, ", ")),
		"the reader's own rules alone keep that closed, the kernel does not", "name narrower directories in agent.roots")}
}

// asFarAsSeen is a failure if relayd is refused and a note if only this user is.
func (p *patient) asFarAsSeen(what string, err error) Finding {
	if errors.Is(err, fs.ErrPermission) && !p.isService() {
		return note(what+" by this user", "relayd may be able to", p.asService())
	}
	return failure(what, err.Error(), p.hint(err))
}

// keyFile is a key of the configuration that is set.
type keyFile struct {
	option, file string
	inUse        bool
}

func (p *patient) keyFiles() []keyFile {
	a := p.cfg.Agent
	var files []keyFile
	for _, k := range []keyFile{
		{"agent.openai.key_file", a.OpenAI.KeyFile, a.Backend == config.BackendOpenAI},
		{"agent.hermes.key_file", a.Hermes.KeyFile, a.Backend == config.BackendHermes},
	} {
		if k.file != "" {
			files = append(files, k)
		}
	}
	return files
}

func lookAtKeys(_ context.Context, p *patient) []Finding {
	keys := p.keyFiles()
	if len(keys) == 0 {
		return nil
	}
	var found []Finding
	for _, key := range keys {
		if bad := p.lookAtKey(key); bad != nil {
			found = append(found, *bad)
		}
	}
	return orOK(found, "%s, closed to others", counted(len(keys), "key"))
}

func (p *patient) lookAtKey(key keyFile) *Finding {
	name, isCredential := strings.CutPrefix(key.file, config.CredentialPrefix)
	if isCredential && p.Credentials == "" {
		return p.absentCredential(key, name)
	}
	path := key.file
	if isCredential {
		path = filepath.Join(p.Credentials, name)
	}
	if readable, err := permission.Everybody(path, permission.Read); err == nil && readable != 0 {
		f := failure(key.option+": everybody on this host may read "+path, "", "chmod o-rwx "+quoted(path))
		return &f
	}
	err := p.ReadKey(key.file)
	if err == nil || !key.inUse {
		return nil
	}
	f := p.asFarAsSeen(key.option+" cannot be read", err)
	if isCredential && errors.Is(err, fs.ErrNotExist) {
		f.Mend = loadCredential(name)
	}
	p.isKeyAbsent = p.isKeyAbsent || f.Level == Note
	return &f
}

// absentCredential is about a key that systemd hands to the service alone: seen
// from a shell its absence is no fault.
func (p *patient) absentCredential(key keyFile, name string) *Finding {
	if !key.inUse {
		return nil
	}
	if p.InService {
		f := failure(fmt.Sprintf("%s: systemd has handed over no credential %s", key.option, name), "", loadCredential(name))
		return &f
	}
	p.isKeyAbsent = true
	f := note(fmt.Sprintf("%s: the credential %s cannot be seen from a shell", key.option, name), "systemd hands it to the service alone",
		fmt.Sprintf("systemd-run --wait --pipe --uid=%s -p LoadCredential=%s:FILE %s", p.serviceUser(), name, p.command()))
	return &f
}

func loadCredential(name string) string {
	return "LoadCredential=" + name + ":FILE in relayd.service, then systemctl daemon-reload"
}

// lookAtAgent makes the back end and asks it whether it can be used. What was
// found to fail before would only be told a second time.
func lookAtAgent(ctx context.Context, p *patient) []Finding {
	a := p.cfg.Agent
	if a.Backend == config.BackendNone {
		return []Finding{ok("none; threads are left to chat reply")}
	}
	isServer := a.Backend == config.BackendOpenAI || a.Backend == config.BackendHermes
	switch {
	case p.failed[sandboxCheck] || p.failed[rootsCheck] || p.failed[keysCheck]:
		return []Finding{note(a.Backend+" was not tried", "mend what is above first", "")}
	case p.isKeyAbsent:
		return []Finding{note(a.Backend+" was not tried", "its key cannot be read here", "")}
	case isServer && p.NoNetwork:
		return []Finding{note(a.Backend+" was not tried", "--no-network", "")}
	}
	if err := p.Probe(ctx); err != nil {
		return []Finding{failure(a.Backend+" cannot be used now", err.Error(), p.mendAgent(err))}
	}
	return []Finding{ok("%s can be used", a.Backend)}
}

// mendAgent says how to go on, by the reason that the back end gives.
func (p *patient) mendAgent(err error) string {
	refused, ok := errors.AsType[*autoreply.Failure](err)
	if !ok {
		return ""
	}
	base, key := p.cfg.Agent.OpenAI.BaseURL, "agent.openai.key_file"
	switch p.cfg.Agent.Backend {
	case config.BackendHermes:
		base, key = p.cfg.Agent.Hermes.BaseURL, "agent.hermes.key_file"
	case config.BackendOpenAI:
	default:
		return ""
	}
	switch refused.Reason {
	case autoreply.ReasonUnavailable, autoreply.ReasonTimeout:
		return "is it running? curl -sS " + quoted(base)
	case autoreply.ReasonRefused:
		return "look at " + key + " and at the address in base_url"
	case autoreply.ReasonUnsafe:
		return "give the agent a profile of its own, without tools and MCP servers"
	}
	return ""
}
