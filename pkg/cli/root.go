package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/version"
)

const rootLong = `Chat is the host's side of the newOS4 chat. It shows what browsers have
written and answers as hermes, on the files that relayd serves and under the
same locks, whether relayd runs or not.

Settings come from a flag, else from a variable such as RELAYD_ROOT, else from
the configuration file, else from the defaults.`

const rootExample = `  chat poll                              who waits for an answer
  chat poll 60e05bd1b195af2f             what was said
  chat reply 60e05bd1b195af2f 'At 9.'    answer
  chat poll --wait 5m --json             wait for work, for a program`

// rootCommand returns the command chat. Nothing of it outlives the run.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:                "chat",
		Short:              "Read and answer the threads of the newOS4 chat",
		Long:               rootLong,
		Example:            rootExample,
		Version:            version.String(),
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
		CompletionOptions:  cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRun:   func(*cobra.Command, []string) { a.found = true },
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.env.Stderr)
			if err := cmd.Help(); err != nil {
				return err
			}
			return &failure{code: exitUsage}
		},
	}
	root.SetHelpTemplate(root.HelpTemplate() + "{{if not .HasParent}}\n" + exitCodeTable() + "{{else}}\nExit codes: see chat --help\n{{end}}")
	// The root can run only to say that a command is missing.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable .HasParent}}", 1))
	root.SetVersionTemplate("chat {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef(cmd.CommandPath()+" --help lists the flags", "%w", err)
	})
	flags := root.PersistentFlags()
	flags.String("root", "", "the `DIRECTORY` that holds everything (default "+config.Default("root")+")")
	flags.String("space", "", "the `NAME` of the space below the root (default "+config.Default("space")+")")
	flags.StringVar(&a.configFile, "config", "", "read this configuration `FILE` instead of "+config.DefaultFile)
	flags.BoolVar(&a.json, "json", false, "print JSON")
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	completes(root, cobra.ShellCompDirectiveDefault, "config")
	completes(root, cobra.ShellCompDirectiveFilterDirs, "root")
	root.AddCommand(a.pollCommand(), a.replyCommand(), a.sweepCommand(), a.resetCommand())
	return root
}
