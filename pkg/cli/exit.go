package cli

import (
	"fmt"
	"strings"
)

// exitCode is how a run of chat ended. The numbers are stable: scripts are
// written against them.
type exitCode int

const (
	exitDone exitCode = iota
	exitFailed
	exitUsage
	exitNoThread
	exitRefused
	exitCorrupt
	exitNothing
)

// meaning says what the code stands for, in the words of the help.
func (c exitCode) meaning() string {
	switch c {
	case exitDone:
		return "done"
	case exitFailed:
		return "failed: a file, the disk or a permission"
	case exitUsage:
		return "usage: a flag, an argument, the text or the configuration is wrong"
	case exitNoThread:
		return "no such thread"
	case exitRefused:
		return "refused by a limit or a condition"
	case exitCorrupt:
		return "a thread is corrupt"
	case exitNothing:
		return "nothing came before the time was up"
	}
	return "unknown"
}

// exitCodeTable lists every code for the help.
func exitCodeTable() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for code := exitDone; code <= exitNothing; code++ {
		fmt.Fprintf(&b, "  %d  %s\n", code, code.meaning())
	}
	return b.String()
}
