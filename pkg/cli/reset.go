package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
	"github.com/newos4/relay/pkg/untrusted"
)

const resetLong = `Reset moves the file of THREAD aside, whatever it holds, and prints its new
path. Nothing is deleted; the thread starts anew with its next message. It is the
only way on for a thread that is corrupt.

On a terminal it shows what it would move and asks; anything but y or yes moves
nothing. Elsewhere it needs --yes.`

// resetJSON says where a thread's file went.
type resetJSON struct {
	Success bool          `json:"success"`
	Thread  chat.ThreadID `json:"thread"`
	Path    string        `json:"path"`
}

func (a *app) resetCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "reset THREAD",
		Short:             "Move a thread aside, so that it starts anew",
		Long:              resetLong,
		Example:           "  chat reset 60e05bd1b195af2f",
		ValidArgsFunction: a.threadCompletion(true),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("for example: chat reset 60e05bd1b195af2f", "reset takes one THREAD, not %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.reset(cmd, args[0], yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) reset(cmd *cobra.Command, arg string, yes bool) error {
	id, err := parseThread(arg)
	if err != nil {
		return err
	}
	s, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.mustExist(id); err != nil {
		return err
	}
	if !yes {
		if err := s.confirmReset(id); err != nil {
			return err
		}
	}
	path, err := s.store.Reset(cmd.Context(), id)
	if err != nil {
		return s.explain(id, err)
	}
	if s.json {
		return s.printJSON(resetJSON{Success: true, Thread: id, Path: path})
	}
	s.printf("%s\n", path)
	return nil
}

// confirmReset returns nil when somebody at the terminal has agreed.
func (s *session) confirmReset(id chat.ThreadID) error {
	if !s.env.IsTerminal() {
		return usagef("to move it aside without being asked: chat reset "+string(id)+" --yes", "standard input is not a terminal, so nobody can be asked about thread %s", id)
	}
	content, err := s.describe(id)
	if err != nil {
		return err
	}
	about := fold(fmt.Sprintf("thread %s: %s", id, content), textPrefix, s.env.Columns(s.env.Stderr))
	fmt.Fprintf(s.env.Stderr, "%s\nmove it aside and let it start anew? [y/N] ", about)
	answer, err := bufio.NewReader(s.env.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch answer {
	case "y\n", "yes\n":
		return nil
	}
	return &failure{code: exitRefused, err: fmt.Errorf("nothing was moved: the answer was neither y nor yes")}
}

// describe says in one line what a thread's file holds.
func (s *session) describe(id chat.ThreadID) (string, error) {
	sum, ok, err := s.store.Summary(id)
	switch {
	case exitOf(err) == exitCorrupt:
		return "corrupt", nil
	case err != nil:
		return "", s.explain(id, err)
	case !ok:
		return "no messages", nil
	}
	return summaryLine(sum), nil
}

func summaryLine(sum storage.Summary) string {
	last := untrusted.FirstLine(sum.Last.Text, firstLineWidth)
	return fmt.Sprintf("%s, the last by %s: %s", count(sum.Messages, "message"), sum.Last.Author, last)
}
