// Package config holds the one configuration of relayd and chat.
//
// A value comes from a flag, else from the environment (RELAYD_ and the key in
// upper case, with _ for each dot), else from a YAML file, else from the
// default in this package. Nothing is guessed: an unknown key, in the file or
// the environment, and every value that does not parse or is out of bounds stop
// the start, and all of them are named at once.
package config

import (
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// DefaultFile is read when no other file is named; it may be missing.
const DefaultFile = "/etc/relayd/relayd.yaml"

// Config holds every setting. [Options] documents each key.
type Config struct {
	Root      string
	Space     string
	Listen    string
	StateDir  string
	HTTP      HTTP
	Limits    Limits
	Retention Retention
	Watch     Watch
	Agent     Agent
	Workspace Workspace
	Admin     Admin
	Log       Log
}

// Workspace configures the workspace.
type Workspace struct {
	Enabled       bool
	DataDir       string
	AllowedHosts  []string
	SecureCookies bool
	UserQuota     int // bytes
	TotalQuota    int // bytes
	Voice         bool
	ShareVoiceKey bool
}

// Admin says where the operator's side is served.
type Admin struct {
	Listen string // empty for nowhere
}

// HTTP bounds what a connection may cost and says whom to believe.
type HTTP struct {
	TrustedProxies  []netip.Prefix
	AllowedOrigins  []string
	HeaderTimeout   time.Duration
	ReadTimeout     time.Duration
	WriteTimeout    time.Duration
	IdleTimeout     time.Duration
	ShutdownTimeout time.Duration
}

// Limits are those of the newOS4 contract, section 4, and relay's own.
type Limits struct {
	ThreadPosts  int
	IPPosts      int
	Window       time.Duration
	Threads      int
	Messages     int
	Text         int // code points
	Body         int // bytes
	Page         int
	IPNewThreads int
	IPNewWindow  time.Duration
}

// Retention says how long messages are kept and when the sweep runs.
type Retention struct {
	MaxAge   time.Duration
	Schedule string
}

// Watch says how the threads are followed.
type Watch struct {
	Rescan time.Duration
}

// Agent configures the auto-reply agent.
type Agent struct {
	Backend     string
	Roots       []string
	Quiet       time.Duration
	Concurrency int
	Sandbox     string
	Budget      Budget
	OpenAI      OpenAI
	Hermes      Hermes
	Command     Command
}

// Budget bounds what answers may cost. A bound of 0 is none, except for one
// answer.
type Budget struct {
	Time      time.Duration
	ToolCalls int
	Bytes     int
	Tokens    int

	ThreadRunsPerHour int
	RunsPerHour       int
	RunsPerDay        int
	TokensPerHour     int
	TokensPerDay      int
	AgentTurns        int
	Retries           int
}

// OpenAI is a chat-completions server.
type OpenAI struct {
	BaseURL string
	Model   string
	KeyFile string
}

// Hermes is the API server of a Hermes.
type Hermes struct {
	BaseURL string
	KeyFile string
}

// Command is a program that writes answers.
type Command struct {
	Argv []string
}

// Names of the agent's back ends.
const (
	BackendNone    = "none"
	BackendOpenAI  = "openai"
	BackendHermes  = "hermes"
	BackendCommand = "command"
	BackendExtract = "extract"
)

// Values of agent.sandbox.
const (
	SandboxStrict     = "strict"
	SandboxBestEffort = "best-effort"
)

// Log says what is logged and how.
type Log struct {
	Level  slog.Level
	Format string
}

// Formats of the log.
const (
	LogText    = "text"
	LogJSON    = "json"
	LogJournal = "journal"
)

// Keep returns what bounds a thread.
func (c *Config) Keep() chat.Retention {
	return chat.Retention{Messages: c.Limits.Messages, MaxAge: c.Retention.MaxAge}
}

// StatePath returns the path of a file in the state directory, which by default
// lies in the root.
func (c *Config) StatePath(name string) string {
	if c.StateDir == "" {
		return filepath.Join(c.Root, "state", name)
	}
	return filepath.Join(c.StateDir, name)
}

// WorkspaceDir returns the workspace's data directory, which by default lies in
// the root.
func (c *Config) WorkspaceDir() string {
	if c.Workspace.DataDir == "" {
		return filepath.Join(c.Root, "workspace")
	}
	return c.Workspace.DataDir
}

// Dialable returns where a program of this host reaches a server that listens on
// address: one that listens everywhere also does so on loopback.
func Dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && addr == netip.IPv4Unspecified():
		return net.JoinHostPort("127.0.0.1", port)
	case err == nil && addr == netip.IPv6Unspecified():
		return net.JoinHostPort("::1", port)
	}
	return address
}
