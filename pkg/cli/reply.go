package cli

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

const replyLong = `Reply adds a message by hermes to THREAD and prints its id and epoch. With exit
code 0 the message is on disk and the browser's next poll shows it; with 2 to 5
nothing was sent. After 1 look with chat poll THREAD: the message may have been
written before the disk or the output failed.

The text is one argument, or a file with -F, or standard input with - in its
place; standard input is not read otherwise. One line feed at the end of a file
or of standard input is dropped; nothing else is changed. Text that begins with
"-" goes after --, where everything is text.

--if-last refuses with exit code 4 when the thread's last message is not
MSG-ID, because something newer stands.`

const replyExample = `  chat reply 60e05bd1b195af2f 'The meeting is at 9.'
  chat reply 60e05bd1b195af2f -- '-5 degrees'
  chat reply 60e05bd1b195af2f -F answer.txt
  make-answer | chat reply 60e05bd1b195af2f -`

// replyOptions are the flags of chat reply.
type replyOptions struct {
	file   string
	ifLast string
}

// receiptJSON says what was sent, in the words of the contract's answer to a
// post (section 4).
type receiptJSON struct {
	Success bool          `json:"success"`
	ID      string        `json:"id"`
	Epoch   int64         `json:"epoch"`
	TS      string        `json:"ts"`
	Thread  chat.ThreadID `json:"thread"`
}

func (a *app) replyCommand() *cobra.Command {
	var o replyOptions
	cmd := &cobra.Command{
		Use:               "reply THREAD [TEXT|-]",
		Short:             "Answer a thread as hermes",
		Long:              replyLong,
		Example:           replyExample,
		ValidArgsFunction: a.threadCompletion(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reply(cmd, o, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "F", "", "take the text from `FILE`; - is standard input")
	flags.StringVar(&o.ifLast, "if-last", "", "refuse unless `MSG-ID` is the thread's last message")
	completes(cmd, cobra.ShellCompDirectiveDefault, "file")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usagef(dashHint, "nothing was sent: %w", err)
	})
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if len(cmd.Flags().Args()) == 0 {
			help(cmd, args)
			return
		}
		// Whoever wrote a THREAD meant to send something and must not take the
		// help's success for that of the message.
		a.refusal = usagef(dashHint, "nothing was sent: --help is a flag; chat reply --help shows the help")
	})
	return cmd
}

const dashHint = `text that begins with "-" goes after --, for example: chat reply THREAD -- '-5 degrees'`

func (a *app) reply(cmd *cobra.Command, o replyOptions, args []string) error {
	if err := o.check(cmd, args); err != nil {
		return err
	}
	id, err := parseThread(args[0])
	if err != nil {
		return err
	}
	s, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	text, err := s.text(source(cmd, o, args))
	if err != nil {
		return err
	}
	if err := s.mustExist(id); err != nil {
		return err
	}
	post := storage.Post{Author: chat.Hermes, Text: text, IfLast: o.ifLast}
	receipt, err := s.store.Append(cmd.Context(), id, post)
	if err != nil {
		return s.explain(id, err)
	}
	return a.printReceipt(receipt)
}

// check refuses what would send something else than was meant.
func (o replyOptions) check(cmd *cobra.Command, args []string) error {
	hasFile := cmd.Flags().Changed("file")
	switch {
	case len(args) == 0:
		return usagef("for example: chat reply 60e05bd1b195af2f 'The meeting is at 9.'", "reply needs a THREAD and a text")
	case len(args) == 1 && !hasFile:
		return usagef("give it as one argument, with -F FILE, or as - for standard input; text that begins with \"-\" goes after --", "reply needs a text")
	case len(args) > 2:
		return usagef("quote the text: chat reply THREAD "+quote(strings.Join(args[1:], " ")), "the text is %d arguments and must be one", len(args)-1)
	case hasFile && len(args) > 1:
		return usagef("", "the text is given twice, as an argument and with -F")
	case hasFile && o.file == "":
		return usagef("", "-F is empty and names no file")
	case cmd.Flags().Changed("if-last") && o.ifLast == "":
		return usagef("", "--if-last is empty and names no message")
	}
	return nil
}

func (a *app) printReceipt(r storage.Receipt) error {
	m := r.Message
	if a.json {
		return a.printJSON(receiptJSON{Success: true, ID: m.ID, Epoch: m.Epoch, TS: m.TS(), Thread: r.Thread})
	}
	a.printf("%s %d\n", m.ID, m.Epoch)
	return nil
}

// quote returns text as one word of a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// fileHint is for a file that is missing because it was never meant as one:
// "-Fix it" reads as -F with the file "ix it". A path with a slash was meant.
func fileHint(name string, err error) string {
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(name, "/") {
		return dashHint
	}
	return ""
}
