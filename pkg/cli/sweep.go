package cli

import (
	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/storage"
)

const sweepLong = `Sweep drops messages that are too old or too many, removes threads of which
nothing is left, and clears away temporary files that a crash left behind.
relayd does the same from time to time; both may run at once.

A corrupt thread is named and left alone, and the exit code is 5 though the rest
was swept. A thread that another process holds is named as busy and left to the
next sweep. A thread directory that does not exist holds no thread; a hint on
standard error names it.`

// sweepOptions are the flags of chat sweep besides --max-age, which stands for
// a key of the configuration.
type sweepOptions struct {
	dryRun bool
}

// sweepJSON is the report of a sweep.
type sweepJSON struct {
	DryRun    bool            `json:"dry_run"`
	Threads   int             `json:"threads"`
	Messages  int             `json:"messages"`
	Removed   []chat.ThreadID `json:"removed"`
	Shortened []chat.ThreadID `json:"shortened"`
	Busy      []chat.ThreadID `json:"busy"`
	Temporary int             `json:"temporary"`
	Corrupt   []faultJSON     `json:"corrupt"`
}

func (a *app) sweepCommand() *cobra.Command {
	var o sweepOptions
	cmd := &cobra.Command{
		Use:     "sweep",
		Short:   "Drop what is not kept any longer",
		Long:    sweepLong,
		Example: "  chat sweep --dry-run\n  chat sweep --max-age 168h",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("it sweeps every thread; chat reset THREAD is for one", "sweep takes no argument")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sweep(cmd, o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "change nothing, only say what would be dropped")
	flags.String("max-age", "", "drop messages older than this `DURATION`, such as 168h (default "+config.Default("retention.max_age")+")")
	return cmd
}

func (a *app) sweep(cmd *cobra.Command, o sweepOptions) error {
	s, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	s.doubtRoot()
	report, swept := s.store.Sweep(cmd.Context(), storage.SweepOptions{DryRun: o.dryRun})
	if swept != nil && report.Threads == 0 {
		return s.explain("", swept)
	}
	if err := s.printSweep(report, o.dryRun); err != nil {
		return err
	}
	s.warn(report.Corrupt)
	if swept != nil {
		return s.explain("", swept)
	}
	if len(report.Corrupt) > 0 {
		return &failure{code: exitCorrupt}
	}
	return nil
}

func (s *session) printSweep(r storage.SweepReport, dryRun bool) error {
	if s.json {
		corrupt, _ := faultsToJSON(r.Corrupt)
		return s.printJSON(sweepJSON{
			DryRun: dryRun, Threads: r.Threads, Messages: r.Messages,
			Removed: r.Removed, Shortened: r.Shortened, Busy: r.Busy,
			Temporary: r.Temporary, Corrupt: corrupt,
		})
	}
	s.printSweepForPeople(r, dryRun)
	return nil
}

func (s *session) printSweepForPeople(r storage.SweepReport, dryRun bool) {
	dropped, removed := "dropped", "removed"
	if dryRun {
		dropped, removed = "to drop", "to remove"
	}
	s.printf("%s, %s %s, %s %s\n", count(r.Threads, "thread"),
		count(r.Messages, "message"), dropped, count(r.Temporary, "temporary file"), removed)
	for _, list := range []struct {
		label string
		ids   []chat.ThreadID
	}{{removed, r.Removed}, {"shortened", r.Shortened}, {"busy", r.Busy}} {
		for _, id := range list.ids {
			s.printf("%-9s  %s\n", list.label, id)
		}
	}
}
