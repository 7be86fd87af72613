package livetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Token is the token that servers are started with.
const Token = "token-for-tries-only"

// Home is the home directory of a Hermes with its profiles.
type Home struct{ dir string }

// NewHome writes a home into dir: the profile "default" and those that are named,
// each of which asks the model server below a path of its own. Approvals are
// asked of people, and nothing is installed or fetched by itself.
func NewHome(dir, models string, profiles ...string) (Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Home{}, fmt.Errorf("find the home: %w", err)
	}
	home := Home{dir: filepath.Join(dir, "home")}
	if err := home.write(home.dir, models+"/default/v1"); err != nil {
		return home, err
	}
	for _, name := range profiles {
		if err := home.write(filepath.Join(home.dir, "profiles", name), models+"/"+name+"/v1"); err != nil {
			return home, err
		}
	}
	return home, nil
}

// write writes one profile.
func (h Home) write(dir, model string) error {
	config := "model:\n  default: scripted\n  provider: custom\n  base_url: " + model + "\n  api_key: none\n" +
		"approvals:\n  mode: manual\nsecurity:\n  allow_lazy_installs: false\n"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	for name, text := range map[string]string{"config.yaml": config, ".env": "OPENAI_API_KEY=none\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write a profile: %w", err)
		}
	}
	return nil
}

// Server is a running `hermes serve`.
type Server struct {
	command *exec.Cmd
	port    string
	output  *os.File
	exited  chan struct{}
}

// Start starts a server on a port of loopback ("0" for a free one) and waits until
// it is ready. What it writes goes to a file in its home. The caller stops it.
func (h Home) Start(ctx context.Context, hermes, port string) (*Server, error) {
	work := filepath.Join(h.dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, fmt.Errorf("start hermes: %w", err)
	}
	output, err := os.OpenFile(filepath.Join(h.dir, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start hermes: %w", err)
	}
	command := exec.Command(hermes, "serve", "--isolated", "--host", "127.0.0.1", "--port", port) //nolint:gosec,noctx // Stop ends it
	command.Dir = work
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "HERMES_HOME=" + h.dir, "LANG=C.UTF-8",
		"HERMES_DASHBOARD_SESSION_TOKEN=" + Token, "HERMES_DISABLE_LAZY_INSTALLS=1", "HERMES_SKIP_NODE_BOOTSTRAP=1",
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Stderr = output
	lines, err := command.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start hermes: %w", err), output.Close())
	}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start hermes: %w", err), output.Close())
	}
	s := &Server{command: command, output: output, exited: make(chan struct{})}
	ready := make(chan string, 1)
	go s.follow(lines, ready)
	select {
	case s.port = <-ready:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("start hermes: it ended at once; see %s", output.Name())
	case <-ctx.Done():
		s.Kill()
		return nil, fmt.Errorf("start hermes: wait until it is ready: %w", ctx.Err())
	}
}

// follow reads what the server writes, tells its port once, and ends with it.
func (s *Server) follow(lines io.Reader, ready chan<- string) {
	defer close(s.exited)
	scanner := bufio.NewScanner(io.TeeReader(lines, s.output))
	for scanner.Scan() {
		if port, ok := strings.CutPrefix(scanner.Text(), "HERMES_BACKEND_READY port="); ok {
			select {
			case ready <- strings.TrimSpace(port):
			default:
			}
		}
	}
	_ = s.command.Wait()
	_ = s.output.Close()
}

// URL returns the server's address, and Port its port.
func (s *Server) URL() string { return "http://127.0.0.1:" + s.port }

// Port returns the server's port, so that another one can be started on it.
func (s *Server) Port() string { return s.port }

// Kill ends the server and everything that it started, at once, as a crash does.
func (s *Server) Kill() {
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	<-s.exited
}
