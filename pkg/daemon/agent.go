package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/command"
	"github.com/newos4/relay/pkg/autoreply/extract"
	"github.com/newos4/relay/pkg/autoreply/hermesapi"
	"github.com/newos4/relay/pkg/autoreply/openai"
	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/sandbox"
	"github.com/newos4/relay/pkg/storage"
)

// probeTimeout bounds the question whether a back end can be used.
const probeTimeout = 30 * time.Second

// agentSettings returns how the agent answers threads under the configuration.
func (s *Server) agentSettings(ctx context.Context, cfg *config.Config) autoreply.Settings {
	settings := agentSettings(ctx, cfg, s.closed(cfg), s.log, nil)
	settings.Ended = func(r autoreply.RunEnd) { s.metrics.Run(r.Outcome, string(r.Reason), r.Tokens, r.Took) }
	return settings
}

// agentSettings returns how the agent answers under the configuration. A back
// end that cannot be made leaves the threads to people and says why in each. What
// a command complains of goes to complaints, nil for nowhere.
func agentSettings(ctx context.Context, cfg *config.Config, closed []string, log *slog.Logger, complaints io.Writer) autoreply.Settings {
	a := cfg.Agent
	settings := autoreply.Settings{
		Mark:  markOf(cfg),
		Quiet: a.Quiet, Concurrency: a.Concurrency, Limit: cfg.Limits.Text,
		Budget: autoreply.Budget{Time: a.Budget.Time, ToolCalls: a.Budget.ToolCalls, Bytes: a.Budget.Bytes, Tokens: a.Budget.Tokens},
		Bounds: autoreply.Bounds{
			ThreadRunsPerHour: a.Budget.ThreadRunsPerHour,
			RunsPerHour:       a.Budget.RunsPerHour, RunsPerDay: a.Budget.RunsPerDay,
			TokensPerHour: a.Budget.TokensPerHour, TokensPerDay: a.Budget.TokensPerDay,
			AgentTurns: a.Budget.AgentTurns, Retries: a.Budget.Retries,
		},
	}
	backend, err := newBackend(ctx, cfg, closed, log, complaints)
	switch {
	case err != nil && ctx.Err() != nil:
		backend = broken{err} // cut short by a stop, which says nothing about the agent
	case err != nil:
		log.Error("the agent cannot start", "backend", a.Backend, "error", err)
		backend = broken{err}
	case backend == nil:
		log.Info("the agent is off")
	default:
		log.Info("the agent answers", "backend", a.Backend, "roots", a.Roots)
	}
	settings.Backend, settings.Outgoing = backend, autoreply.NewOutgoing(secretsOf(a))
	return settings
}

// secretsOf returns the keys that no answer may carry: all that are configured,
// also those of back ends that are not in use. One that cannot be read cannot be
// in an answer either.
func secretsOf(a config.Agent) []string {
	var secrets []string
	for _, file := range []string{a.OpenAI.KeyFile, a.Hermes.KeyFile} {
		if key, err := readKey(file); err == nil {
			secrets = append(secrets, key)
		}
	}
	return secrets
}

// markOf tells one configuration of the agent from another.
func markOf(cfg *config.Config) string {
	var all strings.Builder
	for _, o := range cfg.Options() {
		if strings.HasPrefix(o.Key, "agent.") {
			fmt.Fprintf(&all, "%s=%q\n", o.Key, o.Value())
		}
	}
	sum := sha256.Sum256([]byte(all.String()))
	return hex.EncodeToString(sum[:8])
}

// newBackend makes the configured back end, nil for none.
func newBackend(ctx context.Context, cfg *config.Config, closed []string, log *slog.Logger, complaints io.Writer) (autoreply.Backend, error) {
	switch cfg.Agent.Backend {
	case config.BackendOpenAI:
		return newOpenAI(ctx, cfg, closed, log)
	case config.BackendHermes:
		return newHermes(ctx, cfg, closed, log)
	case config.BackendExtract:
		reader, err := openReader(ctx, cfg.Agent, closed, log)
		if err != nil {
			return nil, err
		}
		return owner{extract.New(newIndex(reader)), reader}, nil
	case config.BackendCommand:
		return command.New(command.Options{Argv: cfg.Agent.Command.Argv, Logger: log, Complaints: complaints})
	}
	return nil, nil
}

func newOpenAI(ctx context.Context, cfg *config.Config, closed []string, log *slog.Logger) (autoreply.Backend, error) {
	key, err := readKey(cfg.Agent.OpenAI.KeyFile)
	if err != nil {
		return nil, err
	}
	opts := openai.Options{BaseURL: cfg.Agent.OpenAI.BaseURL, Model: cfg.Agent.OpenAI.Model, Key: openai.Key(key),
		RequestTimeout: cfg.Agent.Budget.Time, // the whole answer is bounded by it
	}
	if len(cfg.Agent.Roots) == 0 {
		return openai.New(opts)
	}
	reader, err := openReader(ctx, cfg.Agent, closed, log)
	if err != nil {
		return nil, err
	}
	opts.Files = reader
	backend, err := openai.New(opts)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return owner{backend, reader}, nil
}

func newHermes(ctx context.Context, cfg *config.Config, closed []string, log *slog.Logger) (autoreply.Backend, error) {
	key, err := readKey(cfg.Agent.Hermes.KeyFile)
	if err != nil {
		return nil, err
	}
	opts := hermesapi.Options{BaseURL: cfg.Agent.Hermes.BaseURL, Key: key}
	if len(cfg.Agent.Roots) == 0 {
		return hermesapi.New(opts)
	}
	reader, err := openReader(ctx, cfg.Agent, closed, log)
	if err != nil {
		return nil, err
	}
	opts.Passages = newIndex(reader)
	backend, err := hermesapi.New(opts)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return owner{backend, reader}, nil
}

// openReader starts the confined reader of the readable roots, in which the
// closed paths stay closed.
func openReader(ctx context.Context, cfg config.Agent, closed []string, log *slog.Logger) (*sandbox.Reader, error) {
	mode := sandbox.Strict
	if cfg.Sandbox == config.SandboxBestEffort {
		mode = sandbox.BestEffort
	}
	reader, err := sandbox.Start(ctx, sandbox.Options{Roots: cfg.Roots, Deny: closed, Mode: mode, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("confining the reader of files: %w", err)
	}
	report := reader.Report()
	if missing := report.Missing(); len(missing) > 0 {
		log.Warn("the reader of files is not fully confined, as agent.sandbox best-effort allows", "missing", missing)
	}
	for _, note := range report.Notes {
		log.Warn("the reader of files", "note", note)
	}
	return reader, nil
}

// newIndex indexes what may be quoted: a passage with a secret stays out of it.
func newIndex(reader *sandbox.Reader) *passage.Index {
	return passage.New(passage.Options{Files: reader, Closed: autoreply.NewOutgoing(nil).HoldsSecret})
}

// credentials is where systemd says that it has put a service's credentials.
const credentials = "CREDENTIALS_DIRECTORY"

// readKey returns the key in a file, or in a credential that systemd hands over.
func readKey(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	if name, ok := strings.CutPrefix(file, config.CredentialPrefix); ok {
		dir := os.Getenv(credentials)
		if dir == "" {
			return "", fmt.Errorf("the key %q is a systemd credential, and systemd has handed over none", file)
		}
		file = filepath.Join(dir, name)
	}
	data, err := storage.ReadRegular(file)
	if err != nil {
		return "", fmt.Errorf("reading a key: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" || strings.ContainsAny(key, " \t\r\n\x00") {
		return "", fmt.Errorf("reading a key: %s does not hold one key on one line", file)
	}
	return key, nil
}

// closedPaths are what the agent must never read, in whatever root it lies. A key
// that is a credential has no path, but lies in the directory of all credentials.
func closedPaths(cfg *config.Config, configFile string, threads string) []string {
	paths := []string{filepath.Dir(threads), filepath.Dir(cfg.StatePath("x")), cfg.WorkspaceDir()}
	// A relative path would not be recognised beneath a readable root. Where it
	// cannot be made absolute no file could be read by it either.
	if absolute, err := filepath.Abs(configFile); err == nil {
		paths = append(paths, absolute)
	}
	for _, path := range []string{cfg.Agent.OpenAI.KeyFile, cfg.Agent.Hermes.KeyFile, os.Getenv(credentials)} {
		if filepath.IsAbs(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// owner is a back end together with what it reads through.
type owner struct {
	autoreply.Backend
	reader io.Closer
}

// Close closes both.
func (o owner) Close() error { return errors.Join(o.Backend.Close(), o.reader.Close()) }

// broken stands in for a back end that cannot be made.
type broken struct{ err error }

func (b broken) failure() error {
	return autoreply.Failf(autoreply.ReasonUnsafe, false, "the agent cannot start: %w", b.err)
}

// Probe fails.
func (b broken) Probe(context.Context) error { return b.failure() }

// Answer fails.
func (b broken) Answer(context.Context, autoreply.Question) (autoreply.Answer, error) {
	return autoreply.Answer{}, b.failure()
}

// Close does nothing.
func (b broken) Close() error { return nil }

// probe tells the log whether the back end can be used.
func probe(ctx context.Context, backend autoreply.Backend, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := backend.Probe(ctx); err != nil && !errors.Is(err, context.Canceled) {
		log.Error("the agent's back end cannot be used now", "error", err)
	}
}
