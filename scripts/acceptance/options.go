package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// callTimeout bounds one HTTP call.
const callTimeout = 5 * time.Second

// options is what the command line says.
type options struct {
	target *target
	run    *regexp.Regexp
	list   bool
}

// parseOptions reads the command line; the flag package has already told the
// user about a flag that it could not read.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("acceptance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	base := flags.String("base", "http://127.0.0.1:8640", "`URL` of the server to judge")
	root := flags.String("root", "", "the server's root `directory`, for the cases that read or place files")
	chat := flags.String("chat", "", "the host-side chat `command`, with arguments that go before every call's own")
	space := flags.String("space", "newos4", "`name` of the space")
	newThreads := flags.Int("new-threads", 0, "the server's limit of new threads per address, when set below 40; `N` of at least 3")
	pattern := flags.String("run", "", "judge only the cases whose name matches the `regexp`")
	list := flags.Bool("list", false, "print the cases and what they want, judge nothing")
	remote := flags.Bool("remote", false, "allow a server on another host, which will be written to")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	selection, err := regexp.Compile(*pattern)
	if err != nil {
		return options{}, fmt.Errorf("-run: %w", err)
	}
	s := &target{space: *space, newThreads: *newThreads, client: newClient()}
	err = errors.Join(s.setBase(*base, *remote), s.setSpace(*space), s.setRoot(*root), s.setChat(*chat), s.checkNewThreads())
	return options{target: s, run: selection, list: *list}, err
}

// newClient returns a client that follows no redirect, heeds no proxy of the
// environment, and gives up in time.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       callTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (s *target) setBase(base string, remote bool) error {
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("-base: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("-base: %q is not of the form http://host:port", base)
	}
	if !remote && !isLoopback(u.Hostname()) {
		return fmt.Errorf("-base: %s is not this machine; the judge writes there, so add -remote if you mean it", u.Hostname())
	}
	s.base = &url.URL{Scheme: u.Scheme, Host: u.Host}
	return nil
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (s *target) setSpace(space string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(space) {
		return fmt.Errorf("-space: %q is not a plain name", space)
	}
	s.space = space
	return nil
}

func (s *target) setRoot(root string) error {
	if root == "" {
		return nil
	}
	info, err := os.Stat(root)
	if err != nil {
		return fmt.Errorf("-root: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("-root: %s is not a directory", root)
	}
	if root, err = filepath.Abs(root); err != nil {
		return fmt.Errorf("-root: %w", err)
	}
	s.root = root
	return nil
}

func (s *target) setChat(command string) error {
	if command == "" {
		return nil
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return errors.New("-chat: the command is blank")
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return fmt.Errorf("-chat: %w", err)
	}
	if words[0], err = filepath.Abs(path); err != nil {
		return fmt.Errorf("-chat: %w", err)
	}
	s.chat = words
	return nil
}

// checkNewThreads holds the limit between what the other cases need of one
// address and the contract's 40 posts, which would be reached first.
func (s *target) checkNewThreads() error {
	if s.newThreads != 0 && (s.newThreads < 3 || s.newThreads >= ipPosts) {
		return fmt.Errorf("-new-threads: %d is not between 3 and %d", s.newThreads, ipPosts-1)
	}
	return nil
}
