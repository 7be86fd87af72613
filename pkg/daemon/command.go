// Package daemon is relayd: it wires the parts of the program together, owns
// every goroutine of it and gives it its commands.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/untrusted"
	"github.com/newos4/relay/pkg/version"
)

// Env is what the process is given.
type Env struct {
	Args    []string // without the program's name
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// Exit codes of relayd.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a command line or a configuration that cannot be used.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Main runs the command that the arguments name until it is done or ctx ends,
// and returns the exit code. SIGINT and SIGTERM end it as ctx does.
func Main(ctx context.Context, env Env) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newRootCommand(env)
	root.SetArgs(env.Args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if verdict, ok := errors.AsType[verdictError](err); ok {
		return verdict.code
	}
	fmt.Fprintf(env.Stderr, "relayd: %s\n", untrusted.Visible(err.Error()))
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

func newRootCommand(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "relayd",
		Short: "Serve the newOS4 chat to browsers",
		Long: `relayd serves the newOS4 chat over HTTP and keeps its conversations as files,
on which the chat command works beside it.

Exit codes: 0 done, 1 failed, 2 usage or configuration.`,
		Version:       version.String(),
		Args:          subcommandOnly,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          needsCommand(env),
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nhint: %s --help lists the flags", err, cmd.CommandPath())}
	})
	// A command that holds others can run only to say that one is missing.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.SetVersionTemplate("relayd {{.Version}}\n") // as chat prints its own
	flags := newConfigFlags(root.PersistentFlags())
	completeFlags(root)
	root.AddCommand(newServeCommand(env, flags), newCheckCommand(env, flags), newHealthcheckCommand(env, flags),
		newConfigCommand(env, flags), newAgentCommand(env, flags), newUserCommand(env, flags), newWorkspaceCommand(env, flags))
	return root
}

// completeFlags says what a shell proposes behind the flags that take a path. It
// proposes commands and flags anywhere else, and no files.
func completeFlags(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for flag, directive := range map[string]cobra.ShellCompDirective{
		"config": cobra.ShellCompDirectiveDefault, "root": cobra.ShellCompDirectiveFilterDirs,
	} {
		// The only error is for a flag that does not exist.
		_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, directive))
	}
}

// noArguments is for commands that do something by themselves.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s takes no argument, and so not %q", cmd.CommandPath(), args[0])}
}

// subcommandOnly is for commands that only hold others.
func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s has no command %q\nhint: %s --help lists the commands", cmd.CommandPath(), args[0], cmd.CommandPath())}
}

// needsCommand is what a command does that only holds others: it shows them, as an
// error, so that a service which forgot to say serve does not seem to have done
// its work.
func needsCommand(env Env) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		cmd.SetOut(env.Stderr)
		return errors.Join(cmd.Help(), verdictError{exitUsage})
	}
}

// configFlags are the flags that change the configuration.
type configFlags struct {
	set  *pflag.FlagSet
	file *string
}

func newConfigFlags(set *pflag.FlagSet) configFlags {
	file := set.String("config", "", "read the configuration from `FILE` (default "+config.DefaultFile+", if it exists)")
	set.String("root", "", "keep everything below `DIR`")
	set.String("listen", "", "serve HTTP on `ADDRESS:PORT`")
	set.String("space", "", "serve the space `NAME`")
	return configFlags{set: set, file: file}
}

// path is the file that the configuration is read from.
func (f configFlags) path() string {
	if *f.file != "" {
		return *f.file
	}
	return config.DefaultFile
}

func (f configFlags) load(env Env) (*config.Config, error) {
	cfg, err := config.Load(config.Source{
		File: *f.file,
		Env:  env.Environ,
		Flags: map[string]*pflag.Flag{
			"root": f.set.Lookup("root"), "listen": f.set.Lookup("listen"), "space": f.set.Lookup("space"),
		},
	})
	if err != nil {
		return nil, usageError{err}
	}
	return cfg, nil
}

func newServeCommand(env Env, flags configFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve browsers until SIGTERM or SIGINT",
		Long: `Serve browsers until SIGTERM or SIGINT; requests that are being answered then
finish first. SIGHUP reads the configuration again: limits, retention, the
log's level and all of the agent change at once, and the log names what needs a
restart. Every key of the configuration can also be given in the environment:
RELAYD_ and the key in upper case, with _ for each dot.`,
		Example: "  relayd serve --root ./var --listen 127.0.0.1:8640",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), env, flags)
		},
	}
}

// serve runs the daemon as its service manager, if it has one, asks for it.
func serve(ctx context.Context, env Env, flags configFlags) error {
	cfg, err := flags.load(env)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(cfg.Log.Level)
	logger, err := newLogger(env.Stderr, cfg.Log.Format, level)
	if err != nil {
		return err
	}
	listener, err := handedListener()
	if err != nil {
		return err
	}
	watchdog, err := watchdogTime()
	if err != nil {
		return err
	}
	reloads := make(chan os.Signal, 1)
	signal.Notify(reloads, syscall.SIGHUP)
	defer signal.Stop(reloads)
	server, err := NewServer(ctx, Options{
		Config:     cfg,
		ConfigFile: flags.path(),
		Load:       func() (*config.Config, error) { return flags.load(env) },
		Reloads:    reloads,
		Logger:     logger,
		Level:      level,
		Listener:   listener,
		Notify:     notifier(os.Getenv("NOTIFY_SOCKET")),
		Watchdog:   watchdog,
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func newConfigCommand(env Env, flags configFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at the configuration",
		Args:  subcommandOnly,
		RunE:  needsCommand(env),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "print",
		Short: "Print the effective value of every key",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := flags.load(env)
			if err != nil {
				return err
			}
			return printConfig(env.Stdout, cfg)
		},
	})
	return cmd
}

// printConfig prints the configuration as a YAML file that means the same.
func printConfig(w io.Writer, cfg *config.Config) error {
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	var open []string // the sections that the lines now stand in
	for _, o := range cfg.Options() {
		parts := strings.Split(o.Key, ".")
		sections := parts[:len(parts)-1]
		for depth, section := range sections {
			if depth < len(open) && open[depth] == section {
				continue
			}
			open = open[:depth]
			fmt.Fprintf(out, "%s%s:\n", strings.Repeat("  ", depth), section)
			open = append(open, section)
		}
		open = open[:len(sections)]
		fmt.Fprintf(out, "%s%s:\t%s\n", strings.Repeat("  ", len(sections)), parts[len(parts)-1], o.YAML())
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return nil
}
