package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// floorCommand is the argument by which this program becomes the bare server
// that polls are compared with.
const floorCommand = "serve-floor"

// startHTTPFloor starts a bare server whose answers have size bytes.
func startHTTPFloor(ctx context.Context, size int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, floorCommand, "-size", strconv.Itoa(size))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the bare server: %w", err)
	}
	p, err := start(cmd, os.Stderr)
	if err != nil {
		return nil, err
	}
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the bare server did not begin to serve: %w", err), p.stop())
	}
	p.addr = strings.TrimSpace(addr)
	return p, nil
}

// serveFloor is the bare server: it prints its address and answers until ctx
// ends.
func serveFloor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	size := flags.Int("size", 0, "answer with so many `BYTES`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Println(listener.Addr())
	// Without the time-outs that relayd sets, for they too are part of its price.
	server := &http.Server{Handler: bareHandler(*size)}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// bareHandler answers everything with size bytes under the headers of a poll's
// answer. All that can be prepared is.
func bareHandler(size int) http.HandlerFunc {
	body := make([]byte, size)
	contentType, cacheControl := []string{"application/json; charset=utf-8"}, []string{"no-store"}
	options, length := []string{"nosniff"}, []string{strconv.Itoa(size)}
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"] = contentType
		h["Cache-Control"] = cacheControl
		h["X-Content-Type-Options"] = options
		h["Content-Length"] = length
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body) // an error is the client's, who has gone
	}
}
