package cli

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// completes says what a shell proposes as the value of flags, in place of
// nothing. A flag that does not exist is passed over.
func completes(cmd *cobra.Command, directive cobra.ShellCompDirective, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, directive))
	}
}

// threadCompletion proposes the threads for a first argument THREAD: those that
// await hermes, the longest wait first, then the others. It reads and changes
// nothing, and proposes nothing where it cannot read: whoever types a command
// did not ask for an error. Nothing that a stranger wrote is shown.
func (a *app) threadCompletion(withCorrupt bool) cobra.CompletionFunc {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, directive
		}
		s, err := a.openLogging(cmd, slog.DiscardHandler)
		if err != nil {
			return nil, directive
		}
		defer s.close()
		return s.proposals(prefix, withCorrupt), directive
	}
}

// proposals returns the threads whose ids begin with prefix, each with what is
// known of it.
func (s *session) proposals(prefix string, withCorrupt bool) []cobra.Completion {
	ids, err := s.store.Threads()
	if err != nil {
		return nil
	}
	ids = slices.DeleteFunc(ids, func(id chat.ThreadID) bool { return !strings.HasPrefix(string(id), prefix) })
	var waiting, others []storage.Summary
	var corrupt []cobra.Completion
	for _, id := range ids {
		sum, ok, err := s.store.Summary(id)
		switch {
		case withCorrupt && exitOf(err) == exitCorrupt:
			corrupt = append(corrupt, cobra.CompletionWithDesc(string(id), "corrupt"))
		case err != nil || !ok:
		case sum.Unanswered > 0:
			waiting = append(waiting, sum)
		default:
			others = append(others, sum)
		}
	}
	slices.SortStableFunc(waiting, func(a, b storage.Summary) int { return cmp.Compare(a.Since, b.Since) })
	var proposals []cobra.Completion
	for _, sum := range append(waiting, others...) {
		proposals = append(proposals, cobra.CompletionWithDesc(string(sum.Thread), s.state(sum)))
	}
	return append(proposals, corrupt...)
}

// state says in a few words how a thread stands, without what is written in it.
func (s *session) state(sum storage.Summary) string {
	if sum.Unanswered == 0 {
		return count(sum.Messages, "message")
	}
	wait := time.Duration(max(0, s.env.Now().UnixMilli()-sum.Since)) * time.Millisecond
	return "awaits hermes for " + formatAge(wait)
}
