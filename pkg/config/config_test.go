package config_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/newos4/relay/pkg/config"
)

// load reads a configuration from the file text and environment alone.
func load(t *testing.T, file string, env ...string) (*config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relayd.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Source{File: path, Env: env})
}

// Ensures that the numbers of the contract are the defaults (section 4).
func TestLoad_DefaultsAreTheContracts(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Source{DefaultFile: filepath.Join(t.TempDir(), "none.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Limits{
		ThreadPosts: 20, IPPosts: 40, Window: 600 * time.Second, Threads: 500, Messages: 200,
		Text: 4000, Body: 32768, Page: 50, IPNewThreads: 100, IPNewWindow: 24 * time.Hour,
	}
	if diff := cmp.Diff(want, c.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if c.Retention.MaxAge != 720*time.Hour || c.Space != "newos4" || c.Agent.Backend != "none" {
		t.Errorf("defaults are %+v", c)
	}
	if got, want := c.StatePath("x"), "/var/lib/relayd/state/x"; got != want {
		t.Errorf("StatePath = %q, want %q", got, want)
	}
	if got, want := c.WorkspaceDir(), "/var/lib/relayd/workspace"; got != want {
		t.Errorf("WorkspaceDir = %q, want %q", got, want)
	}
}

// samples has a value for every key that differs from its default, and how it
// is printed.
func samples() map[string]string {
	return map[string]string{
		"root": "/srv/relay", "space": "other", "listen": "[::1]:9", "state_dir": "/srv/state",
		"http.trusted_proxies": "10.0.0.0/8,192.0.2.1/32", "http.allowed_origins": "https://a.example,http://b.example:81",
		"http.header_timeout": "1s", "http.read_timeout": "2s", "http.write_timeout": "3s", "http.idle_timeout": "4s", "http.shutdown_timeout": "5s",
		"limits.thread_posts": "1", "limits.ip_posts": "2", "limits.window": "3m", "limits.threads": "4", "limits.messages": "5",
		"limits.text": "6", "limits.body": "700", "limits.page": "8", "limits.ip_new_threads": "0", "limits.ip_new_window": "10h",
		"retention.max_age": "24h", "retention.schedule": "7 3 * * *", "watch.rescan": "11s", "agent.backend": "none",
		"agent.roots": `/srv/a\,b,/srv/c`, "agent.quiet": "3s", "agent.concurrency": "4", "agent.sandbox": "best-effort",
		"agent.budget.time": "1m", "agent.budget.tool_calls": "1", "agent.budget.bytes": "2", "agent.budget.tokens": "300",
		"agent.budget.thread_runs_per_hour": "1", "agent.budget.runs_per_hour": "2", "agent.budget.runs_per_day": "3",
		"agent.budget.tokens_per_hour": "4", "agent.budget.tokens_per_day": "5", "agent.budget.agent_turns": "7", "agent.budget.retries": "8",
		"agent.openai.base_url": "http://127.0.0.1:1/v1", "agent.openai.model": "m:1", "agent.openai.key_file": "/srv/key",
		"agent.hermes.base_url": "https://h.example/v1", "agent.hermes.key_file": "credential:hermes", "agent.command.argv": `/bin/x,-a,one\,two`,
		"workspace.enabled": "true", "workspace.data_dir": "/srv/ws", "workspace.allowed_hosts": "a.example,b.example:81",
		"workspace.secure_cookies": "true", "workspace.user_quota": "1", "workspace.total_quota": "0", "workspace.voice": "false", "workspace.share_voice_key": "false",
		"admin.listen": "[::1]:8", "log.level": "debug", "log.format": "json",
	}
}

// Ensures that each key takes effect from the environment alone and from the
// file alone, and that the environment covers the file.
func TestLoad_EveryKeyFromEveryLayer(t *testing.T) {
	t.Parallel()
	values := samples()
	for _, o := range new(config.Config).Options() {
		want, ok := values[o.Key]
		if !ok {
			t.Errorf("no sample for %s", o.Key)
			continue
		}
		t.Run(o.Key, func(t *testing.T) {
			t.Parallel()
			file := yamlFor(o.Key, want)
			fromEnv, err := load(t, "", o.Env()+"="+want)
			check(t, o.Key, want, fromEnv, err)
			fromFile, err := load(t, file)
			check(t, o.Key, want, fromFile, err)
			both, err := load(t, yamlFor(o.Key, o.Default), o.Env()+"="+want)
			if o.Default != "" || o.IsList {
				check(t, o.Key, want, both, err)
			}
		})
	}
}

func yamlFor(key, value string) string {
	var b strings.Builder
	parts := strings.Split(key, ".")
	for depth, part := range parts[:len(parts)-1] {
		b.WriteString(strings.Repeat("  ", depth) + part + ":\n")
	}
	b.WriteString(strings.Repeat("  ", len(parts)-1) + parts[len(parts)-1] + ": '" + value + "'\n")
	return b.String()
}

func check(t *testing.T, key, want string, c *config.Config, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("loading %s: %v", key, err)
		return
	}
	for _, o := range c.Options() {
		if o.Key == key && o.Value() != want {
			t.Errorf("%s = %q, want %q", key, o.Value(), want)
		}
	}
}

// Ensures that a flag covers the environment, and only when it was given.
func TestLoad_FlagsComeFirst(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("root", "", "")
	flags.String("listen", "", "")
	if err := flags.Parse([]string{"--root", "/from/flag"}); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Source{
		DefaultFile: filepath.Join(t.TempDir(), "none.yaml"),
		Env:         []string{"RELAYD_ROOT=/from/env", "RELAYD_LISTEN=127.0.0.1:1"},
		Flags:       map[string]*pflag.Flag{"root": flags.Lookup("root"), "listen": flags.Lookup("listen")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Root != "/from/flag" || c.Listen != "127.0.0.1:1" {
		t.Errorf("root = %q, listen = %q", c.Root, c.Listen)
	}
}

// Ensures that lists may be written as YAML lists and that numbers need no
// quotes.
func TestLoad_YAMLForms(t *testing.T) {
	t.Parallel()
	c, err := load(t, `
root: /srv
space: 0123
http:
  trusted_proxies: [10.1.2.3, "2001:db8::/32"]
limits:
  thread_posts: 7
retention:
log: {level: warn}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("2001:db8::/32")}
	if diff := cmp.Diff(want, c.HTTP.TrustedProxies, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("trusted proxies (-want +got):\n%s", diff)
	}
	if c.Space != "0123" || c.Limits.ThreadPosts != 7 || c.Log.Level != slog.LevelWarn {
		t.Errorf("got %+v", c)
	}
}

// Ensures that everything wrong is named at once, with key, value and place,
// and that no misspelt key is passed over.
func TestLoad_NamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := load(t, `
Root: /srv
trusted_proxy: 10.0.0.1
http:
  trusted-proxies: 10.0.0.1
limits:
  thread_posts: many
  page: [1]
log: loud
`, "RELAYD_LIMITS_WINDOW=soon", "RELAYD_LIMITS_THREADZ=1", "RELAYD_LIMITS_IP_POSTS=0", "RELAYD_LIMITS_BODY=", "RELAYD_RETENTION_SCHEDULE=CRON_TZ=Europe/Rome @daily", "PATH=/bin")
	var problems *config.Error
	if !errors.As(err, &problems) {
		t.Fatalf("error is %T: %v", err, err)
	}
	for _, want := range []string{
		"Root: unknown key in ", "did you mean root?",
		"trusted_proxy: unknown key in ", "did you mean http.trusted_proxies?",
		"http.trusted-proxies: unknown key",
		`limits.thread_posts: "many" is not a whole number (from /`,
		"limits.page: is a list in ", "relayd.yaml:8 and should be one value",
		"log: unknown key",
		`limits.window: "soon" is not a duration such as 90s, 10m or 720h (from RELAYD_LIMITS_WINDOW)`,
		"RELAYD_LIMITS_THREADZ: unknown variable in the environment",
		`limits.ip_posts: "0" is not between 1 and 1048576 (from RELAYD_LIMITS_IP_POSTS)`,
		`limits.body: "" is not a whole number`,
		"retention.schedule: ", "the schedule is in UTC",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if len(problems.Problems) != 11 {
		t.Errorf("%d problems, want 11:\n%v", len(problems.Problems), err)
	}
}

// Ensures that nothing in the file is passed over, a security setting above all
// (https://github.com/binwiederhier/ntfy/issues/255).
func TestLoad_PassesOverNothing(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"root: /a\n---\nbogus: 1\n":                                              "something follows the first document",
		"http:\n  trusted_proxies:\n    - 10.0.0.1: yes\n":                       "http.trusted_proxies: is a list in ",
		"http:\n  trusted_proxies: [[10.0.0.1]]\n":                               "http.trusted_proxies: is a list in ",
		"http.trusted_proxies: 10.0.0.1\nhttp:\n  trusted_proxies: [10.0.0.2]\n": "http.trusted_proxies: stands twice, in ",
	} {
		if c, err := load(t, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %+v, %v, want %q", file, c, err, want)
		}
	}
	for _, file := range []string{"", "# nothing\n", "---\nroot: /a\n", "root: /a\n...\n"} {
		if _, err := load(t, file); err != nil {
			t.Errorf("%q gave %v", file, err)
		}
	}
}

// Ensures that what would never match or never work is refused and not passed
// over.
func TestLoad_RefusesValues(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"an origin with a path":   "http: {allowed_origins: 'https://a.example/x'}",
		"an origin without host":  "http: {allowed_origins: '*'}",
		"an origin in upper case": "http: {allowed_origins: 'https://A.example'}",
		"an origin with its port": "http: {allowed_origins: 'https://a.example:443'}",
		"a network of letters":    "http: {trusted_proxies: [localhost]}",
		"a section for a value":   "limits: {page: {x: 1}}",
		"a space with a slash":    "space: a/b",
		"a space of dots":         "space: ..",
		"a root with a NUL":       `root: "/a\0"`,
		"an address without port": "listen: 127.0.0.1",
		"a port out of range":     "listen: 127.0.0.1:65536",
		"a second document":       "space: a\n---\nspace: b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := load(t, file); err == nil {
				t.Error("taken as it is")
			}
		})
	}
}

// Ensures that a hint leads to the key that was meant, and never to one of
// another section that means something else.
func TestLoad_Hints(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"agent: {root: [/srv]}":           "did you mean agent.roots?",
		"http: {trusted-proxy: 10.0.0.1}": "did you mean http.trusted_proxies?",
		"thread_posts: 1":                 "did you mean limits.thread_posts?",
		"limits: {root: 1}":               "",
	} {
		_, err := load(t, file)
		if err == nil || !strings.Contains(err.Error(), want) || want == "" && strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// Ensures that a file that was named must exist, that the default one need not,
// and that each key that stands twice is a problem of its own, in one line.
func TestLoad_File(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := config.Load(config.Source{File: missing}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file gave %v", err)
	}
	_, err := load(t, "space: a\nspace: b\nroot: /a\nroot: /b\n")
	twice, ok := errors.AsType[*config.Error](err)
	if !ok || len(twice.Problems) != 2 {
		t.Fatalf("two keys that stand twice gave %v", err)
	}
	for _, problem := range twice.Problems {
		if !strings.Contains(problem, "already defined at line") || strings.ContainsAny(problem, "\n") {
			t.Errorf("a key that stands twice gave %q", problem)
		}
	}
	if _, err := load(t, "- a\n"); err == nil {
		t.Error("a list was taken for a configuration")
	}
}

// Ensures that a back end without what it needs stops the start, and that keys
// cannot stand in a URL.
func TestLoad_Agent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  []string
		want string
	}{
		"openai":     {[]string{"RELAYD_AGENT_BACKEND=openai", "RELAYD_AGENT_OPENAI_MODEL=m"}, "agent.openai.base_url: is empty"},
		"extract":    {[]string{"RELAYD_AGENT_BACKEND=extract"}, "agent.roots: is empty"},
		"command":    {[]string{"RELAYD_AGENT_BACKEND=command"}, "agent.command.argv: is empty"},
		"password":   {[]string{"RELAYD_AGENT_OPENAI_BASE_URL=http://a:b@c/"}, "name a key_file instead"},
		"scheme":     {[]string{"RELAYD_AGENT_HERMES_BASE_URL=ftp://c/"}, "is not a URL"},
		"credential": {[]string{"RELAYD_AGENT_OPENAI_KEY_FILE=credential:../x"}, "does not name a credential"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := load(t, "", test.env...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
	c, err := load(t, "agent: {backend: command, command: {argv: [/bin/x, 'a, b', 'c\\d']}}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/bin/x", "a, b", `c\d`}, c.Agent.Command.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
}

// Ensures that a schedule means UTC, so that no change of the clocks skips or
// doubles a sweep (robfig/cron#541).
func TestParseSchedule_IsUTC(t *testing.T) {
	t.Parallel()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := config.ParseSchedule("30 1 * * *")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, rome)
	for day := 29; day <= 31; day++ {
		at = schedule.Next(at)
		if want := time.Date(2026, 3, day, 1, 30, 0, 0, time.UTC); !at.Equal(want) {
			t.Errorf("next sweep at %v, want %v", at, want)
		}
	}
}

// Ensures that a server which listens on all addresses is asked on loopback.
func TestDialable(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		":80": "127.0.0.1:80", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "[::1]:80", "192.0.2.1:80": "192.0.2.1:80", "localhost:80": "localhost:80",
	} {
		if got := config.Dialable(address); got != want {
			t.Errorf("Dialable(%q) = %q, want %q", address, got, want)
		}
	}
}
