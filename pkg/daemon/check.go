package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/diagnosis"
)

// verdictError is the exit code of a command that has said all by itself.
type verdictError struct{ code int }

func (e verdictError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// checkOptions are the flags of relayd check.
type checkOptions struct {
	json, noNetwork, strict bool
}

func newCheckCommand(env Env, flags configFlags) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look for what is wrong with this installation",
		Long: `Look for what is wrong with this installation, before relayd serves or while it
does, and say how to mend it. Nothing is made or changed. Run it as the user of
relayd: sudo -u relayd relayd check.

  ok    as it should be
  note  nothing is wrong, or this user cannot tell
  warn  relayd works, with less than it could, or not for long
  FAIL  something does not work, or is open to whom it should not be

The exit code is 1 after a failure, and with --strict after a warning too, and 2
when the configuration cannot be loaded.`,
		Example: `  sudo -u relayd relayd check
  relayd check --json | jq -r '.findings[] | select(.level == "failure") | .what'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runCheck(cmd.Context(), env, flags, o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&o.noNetwork, "no-network", false, "do not ask the agent's server")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "let warnings fail too")
	return cmd
}

func runCheck(ctx context.Context, env Env, flags configFlags, o checkOptions) error {
	tell := func(f diagnosis.Finding) { diagnosis.Print(env.Stdout, f) }
	if o.json {
		tell = func(diagnosis.Finding) {}
	}
	cfg, err := flags.load(env)
	if err != nil {
		report := diagnosis.Unusable(err, "man 5 relayd.yaml", tell)
		return errors.Join(printReport(env, report, o), verdictError{exitUsage})
	}
	report, err := diagnosis.Run(ctx, diagnosisOptions(cfg, flags.path(), o), tell)
	if err != nil {
		return fmt.Errorf("the check was ended: %w", err)
	}
	if err := printReport(env, report, o); err != nil {
		return err
	}
	if report.Failures > 0 || o.strict && report.Warnings > 0 {
		return verdictError{exitFailed}
	}
	return nil
}

func printReport(env Env, report diagnosis.Report, o checkOptions) error {
	if o.json {
		return diagnosis.PrintJSON(env.Stdout, report)
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s\n", report.Summary()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func diagnosisOptions(cfg *config.Config, file string, o checkOptions) diagnosis.Options {
	silent := slog.New(slog.DiscardHandler) // what a part would log is a finding here
	store := openStore(cfg, silent, nil)
	if absolute, err := filepath.Abs(file); err == nil {
		file = absolute
	}
	closed := closedPaths(cfg, file, store.Path())
	return diagnosis.Options{
		Config: cfg, ConfigFile: file, Store: store, Closed: closed,
		NoNetwork:   o.noNetwork,
		Credentials: os.Getenv(credentials),
		InService:   os.Getenv(invocation) != "",
		ReadKey: func(file string) error {
			_, err := readKey(file)
			return err
		},
		Probe: func(ctx context.Context) error { return tryBackend(ctx, cfg, closed, silent) },
	}
}

// invocation is what systemd sets for the processes of a service.
const invocation = "INVOCATION_ID"

// tryBackend makes the back end, asks whether it can be used, and closes it.
func tryBackend(ctx context.Context, cfg *config.Config, closed []string, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	backend, err := newBackend(ctx, cfg, closed, log, nil)
	if err != nil || backend == nil {
		return err
	}
	return errors.Join(backend.Probe(ctx), backend.Close())
}
