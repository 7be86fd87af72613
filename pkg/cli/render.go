package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/untrusted"
)

// textPrefix stands before every line of a message's text, and before what is
// left of a line on a terminal that is too narrow for it. Headers and remarks
// begin at the margin, so no text can pass for one.
const textPrefix = "  | "

// headerIndent stands before what is left of a header on such a terminal.
const headerIndent = "      "

// printMessage prints a message for people: who, when and which on one line,
// then the text.
func (a *app) printMessage(m chat.Message) {
	when := time.UnixMilli(m.Epoch).UTC().Format("2006-01-02 15:04:05 UTC")
	a.printFolded(fmt.Sprintf("%s  %s  %s", m.Author, when, m.ID), headerIndent)
	shown := untrusted.Visible(m.Text)
	if shown != m.Text {
		a.printRemark("holds hidden or stacked characters; they are spelled out as ⟦U+XXXX⟧")
	}
	for line := range strings.SplitSeq(shown, "\n") {
		a.printFolded(textPrefix+line, textPrefix)
	}
}

// printRemark prints what the program, and no author, has to say.
func (a *app) printRemark(format string, args ...any) {
	const prefix = "-- "
	a.printFolded(prefix+untrusted.Line(fmt.Sprintf(format, args...)), prefix)
}

// firstLineWidth keeps a row of the inbox, in most scripts, within 80 columns, in
// code points.
const firstLineWidth = 31

// rowFormat aligns the inbox without knowing its rows, so that a stream looks
// like a list.
const rowFormat = "%-16s  %7s  %10v  %-8s  %s"

func (a *app) printInboxHeader() {
	a.printRow("THREAD", "WAITING", "UNANSWERED", "LAST BY", "TEXT")
}

func (a *app) printInboxRow(e inboxEntry) {
	wait := formatAge(time.Duration(e.AgeMS) * time.Millisecond)
	a.printRow(e.Thread, wait, e.Unanswered, e.Last.Author, untrusted.FirstLine(e.Last.Text, firstLineWidth))
	a.printAgent(e.Agent)
}

func (a *app) printRow(columns ...any) {
	a.printFolded(fmt.Sprintf(rowFormat, columns...), textPrefix)
}

// formatAge returns a duration in its two largest units, in at most seven
// characters up to 99 days.
func formatAge(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < day:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d/day), int(d.Hours())%24)
}

// count returns n and its noun, in the plural where it belongs.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
