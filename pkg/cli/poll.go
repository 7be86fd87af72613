package cli

import (
	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/chat"
)

const pollLong = `Without THREAD, poll lists every thread that awaits hermes, the longest wait
first: how long its first unanswered message has waited, how many there are, who
wrote the last one, its first line, and below it what the auto-reply agent does
about it and why, if it does anything. Threads that are corrupt or cannot be
read are named on standard error and left out, and the others are listed all the
same; with one that cannot be read the list ends with exit code 1. A thread
directory that does not exist holds no thread; a hint on standard error names it.

With THREAD, poll shows the newest page of messages, oldest first; with --since
the first page after that epoch. A page has limits.page messages. Times are in
UTC. Every line of a message begins with "  | ", and a terminal that is too
narrow for a line gets the rest behind the same mark. Characters that do not
show, or that a terminal would obey, are spelled out as ⟦U+XXXX⟧, and so are
marks on one character beyond the fourth.

--wait returns as soon as there is something to show, and ends with exit code 6
when the time is up. Messages that stand already are something; with --since or
--cursor-file only those behind the cursor are. --follow shows what is there and
then all that comes, until it is interrupted. A THREAD that does not exist yet
is waited for, since a browser may be about to start it.

--cursor-file keeps the cursor between runs, so that each run shows what is new
since the last. It is written only once the output was, so nothing is lost; a
run that was killed may show its last messages again.

--json prints one value: {"threads":[…],"corrupt":[…],"unreadable":[…]} without
THREAD, and with THREAD what relayd answers to a browser's poll. With --follow it
prints one object a line, an entry of "threads" or a message.`

const pollExample = `  chat poll
  chat poll 60e05bd1b195af2f --all
  chat poll 60e05bd1b195af2f --cursor-file ~/.cursor --wait 10m --json
  chat poll --follow --json`

// pollOptions are the flags of chat poll.
type pollOptions struct {
	since      string
	all        bool
	cursorFile string
	patience   patience
}

func (a *app) pollCommand() *cobra.Command {
	var o pollOptions
	cmd := &cobra.Command{
		Use:               "poll [THREAD]",
		Short:             "Show the threads that await hermes, or the messages of one",
		Long:              pollLong,
		Example:           pollExample,
		ValidArgsFunction: a.threadCompletion(false),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("without THREAD it lists all that await hermes", "poll takes one THREAD, not %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.patience.limited = cmd.Flags().Changed("wait")
			return a.poll(cmd, o, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.since, "since", "0", "show the first page of messages after this `EPOCH`, in milliseconds (default 0, the newest page)")
	flags.Lookup("since").DefValue = "" // else pflag would print it in quotes, and tell nobody what it stands for
	flags.BoolVar(&o.all, "all", false, "show the whole thread and not only a page")
	flags.StringVar(&o.cursorFile, "cursor-file", "", "as --since with the epoch in `FILE`, and keep the new one there")
	flags.DurationVar(&o.patience.limit, "wait", 0, "wait this `DURATION`, such as 30s or 10m, for something to show")
	flags.BoolVarP(&o.patience.follow, "follow", "f", false, "show what is there and then all that comes")
	completes(cmd, cobra.ShellCompDirectiveDefault, "cursor-file")
	return cmd
}

func (a *app) poll(cmd *cobra.Command, o pollOptions, args []string) error {
	if err := o.check(cmd, len(args) > 0); err != nil {
		return err
	}
	if len(args) == 0 {
		return a.pollInbox(cmd, o)
	}
	id, err := parseThread(args[0])
	if err != nil {
		return err
	}
	return a.pollThread(cmd, o, id)
}

// check refuses flags that contradict each other or mean nothing here.
func (o pollOptions) check(cmd *cobra.Command, hasThread bool) error {
	var given []string
	for _, name := range []string{"since", "all", "cursor-file"} {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	switch {
	case len(given) > 0 && !hasThread:
		return usagef(exampleOf(given[0]), "%s needs a THREAD", given[0])
	case len(given) > 1:
		return usagef("", "%s and %s exclude each other", given[0], given[1])
	case cmd.Flags().Changed("cursor-file") && o.cursorFile == "":
		return usagef("", "--cursor-file is empty")
	case o.patience.limit < 0:
		return usagef("", "--wait is negative")
	}
	return nil
}

func (a *app) pollInbox(cmd *cobra.Command, o pollOptions) error {
	s, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	s.doubtRoot()
	if o.patience.follow {
		return s.poll(cmd.Context(), &inboxStream{session: s}, o.patience)
	}
	return s.poll(cmd.Context(), &inboxList{session: s}, o.patience)
}

func (a *app) pollThread(cmd *cobra.Command, o pollOptions, id chat.ThreadID) error {
	since, err := o.cursor()
	if err != nil {
		return err
	}
	s, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	return s.poll(cmd.Context(), &threadView{
		session:    s,
		id:         id,
		since:      since,
		all:        o.all,
		patience:   o.patience,
		cursorFile: o.cursorFile,
	}, o.patience)
}

// cursor returns the epoch to begin after, in milliseconds.
func (o pollOptions) cursor() (int64, error) {
	if o.cursorFile != "" {
		return readCursor(o.cursorFile)
	}
	return chat.ParseSince(o.since)
}

// exampleOf shows how a flag is used that needs a THREAD.
func exampleOf(flag string) string {
	value := map[string]string{"--since": " 1792778400123", "--cursor-file": " FILE"}
	return "for example: chat poll 60e05bd1b195af2f " + flag + value[flag]
}
