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
	Log       Log
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
	Backend string
}

// Log says what is logged and how.
type Log struct {
	Level  slog.Level
	Format string
}

// Formats of the log.
const (
	LogText = "text"
	LogJSON = "json"
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
