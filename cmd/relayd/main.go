// Command relayd serves the newOS4 chat to browsers; see relayd(8).
package main

import (
	"context"
	"os"

	"github.com/newos4/relay/pkg/daemon"
	"github.com/newos4/relay/pkg/sandbox"
)

func main() {
	// The agent's reader of files is this program again, confined.
	sandbox.RunChildIfAsked(os.Args)
	os.Exit(daemon.Main(context.Background(), daemon.Env{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
	}))
}
