package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/untrusted"
)

func newAgentCommand(env Env, flags configFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Try the auto-reply agent",
		Args:  subcommandOnly,
		RunE:  needsCommand(env),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "test QUESTION",
		Short: "Let the agent answer a question and store nothing",
		Long: `Let the agent answer a question by the rules that hold for threads, and show
what it looked at and what it would have stored. Nothing is stored, and nothing
counts towards a limit. relayd need not run.`,
		Example: `  relayd agent test "When is the observatory open?"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s takes one QUESTION, in quotes, and not %d arguments", cmd.CommandPath(), len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return testAgent(cmd, env, flags, args[0])
		},
	})
	return cmd
}

func testAgent(cmd *cobra.Command, env Env, flags configFlags, question string) error {
	cfg, err := flags.load(env)
	if err != nil {
		return err
	}
	if err := chat.CheckText(question, cfg.Limits.Text); err != nil {
		return usageError{err}
	}
	// Whoever tries the agent sits at a terminal, whatever the daemon's log is.
	log := slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: cfg.Log.Level}))
	settings := agentSettings(cmd.Context(), cfg, closedPaths(cfg, flags.path(), openStore(cfg, log, nil).Path()), log, env.Stderr)
	if settings.Backend == nil {
		return usageError{errors.New("agent.backend is none, so there is nothing to try\nhint: set it, or try RELAYD_AGENT_BACKEND=extract RELAYD_AGENT_ROOTS=DIR relayd agent test …")}
	}
	started := time.Now()
	answer, err := autoreply.DryRun(cmd.Context(), settings, chat.Message{
		ID: "MSG-test", Epoch: started.UnixMilli(), Author: chat.Operator, Text: question,
	})
	took := time.Since(started)
	if closing := settings.Backend.Close(); closing != nil {
		log.Warn("closing the back end", "error", closing)
	}
	printTools(env.Stdout, answer.Tools)
	if err != nil {
		return fmt.Errorf("no answer after %s: %w", took.Round(time.Millisecond), err)
	}
	fmt.Fprintf(env.Stdout, "-- answer: %d code points, %d tokens, %s\n%s\n",
		utf8.RuneCountInString(answer.Text), answer.Tokens, took.Round(time.Millisecond), untrusted.Visible(answer.Text))
	return nil
}

// printTools prints what was looked at. The model chose the targets, and
// whoever asked may have chosen them for it.
func printTools(w io.Writer, tools []autoreply.ToolUse) {
	for _, tool := range tools {
		fmt.Fprintf(w, "-- %s %s: %s\n", untrusted.Line(tool.Name), untrusted.Line(tool.Target), untrusted.Line(tool.Outcome))
	}
}
