// Command hermes-up runs a real Hermes to try things on: the pinned release in a
// virtual environment, two profiles, and a model server that answers "ok", all on
// loopback, until it is interrupted. It needs python3 with the module venv (on
// Debian python3-venv), and the first time a network for pip.
//
// Usage: go run ./scripts/hermes-up [-dir DIR] [-port PORT] [-install]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/newos4/relay/pkg/hermes/livetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "hermes-up: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("hermes-up", flag.ContinueOnError)
	dir := flags.String("dir", "var/hermes", "keep the profiles below `DIR`")
	port := flags.String("port", "9119", "listen on `PORT` of loopback, 0 for a free one")
	only := flags.Bool("install", false, "install what is needed, and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "hermes-up: installing Hermes, unless it is there …")
	hermes, err := livetest.Install(ctx)
	if err != nil || *only {
		return err
	}
	return serve(ctx, hermes, *dir, *port)
}

// serve runs both servers until ctx ends.
func serve(ctx context.Context, hermes, dir, port string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the model server: %w", err)
	}
	models := &http.Server{Handler: livetest.NewModel(), ReadHeaderTimeout: time.Minute}
	go func() { _ = models.Serve(listener) }()
	defer func() { _ = models.Close() }()
	home, err := livetest.NewHome(dir, "http://"+listener.Addr().String(), "planner", "writer")
	if err != nil {
		return err
	}
	server, err := home.Start(ctx, hermes, port)
	if err != nil {
		return err
	}
	defer server.Kill()
	fmt.Printf("Hermes listens on %s\ntoken: %s\nprofiles: default, planner, writer\n", server.URL(), livetest.Token)
	<-ctx.Done()
	return nil
}
