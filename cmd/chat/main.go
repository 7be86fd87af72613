// Command chat is the host's side of the newOS4 chat: it shows the threads that
// browsers have written to and answers them as hermes.
package main

import (
	"context"
	"os"

	"github.com/newos4/relay/pkg/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), cli.ProcessEnv()))
}
