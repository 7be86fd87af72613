package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"
)

// Option describes one key.
type Option struct {
	// Key is the name in the file, with a dot between section and name.
	Key string
	// Doc says in one or more sentences what the key means, with its unit.
	Doc string
	// Default is the default as it would stand in the file.
	Default string
	// IsList reports that the file may hold a list; elsewhere its items are
	// separated by commas.
	IsList bool
	// Reloads reports that a change takes effect with a reload; others need a
	// restart.
	Reloads bool

	value value
}

// Env is the name of the environment variable for the key.
func (o Option) Env() string { return envName(o.Key) }

// Value is the effective value as it would stand in the file.
func (o Option) Value() string { return o.value.String() }

// value parses and prints one setting in its place in a Config.
type value interface {
	Set(string) error
	String() string
}

// Options returns every key, bound to c, in the order in which they are
// documented.
func (c *Config) Options() []Option {
	day := 24 * time.Hour
	return []Option{
		{Key: "root", Default: "/var/lib/relayd", value: pathValue{&c.Root, false},
			Doc: "The directory that holds everything. Threads are in <root>/spaces/<space>/data/chat."},
		{Key: "space", Default: "newos4", value: nameValue{&c.Space},
			Doc: "The name of the space, as it stands in the routes and in the path of the threads."},
		{Key: "listen", Default: "127.0.0.1:8640", value: addressValue{&c.Listen, false},
			Doc: "The address and port that relayd serves HTTP on. Port 0 takes any free one."},
		{Key: "state_dir", Default: "", value: pathValue{&c.StateDir, true},
			Doc: "Where relayd keeps what must survive its restart and is no conversation. Empty means <root>/state."},

		{Key: "http.trusted_proxies", Default: "127.0.0.0/8,::1/128", IsList: true, value: prefixesValue{&c.HTTP.TrustedProxies},
			Doc: "Addresses or networks whose X-Forwarded-For header is believed. A client's address is the right-most one that is not trusted."},
		{Key: "http.allowed_origins", Default: "", IsList: true, value: originsValue{&c.HTTP.AllowedOrigins},
			Doc: "Origins, such as https://app.example, whose pages may use the chat from another host. Empty means the same origin only."},
		{Key: "http.header_timeout", Default: "5s", value: durationValue{&c.HTTP.HeaderTimeout, time.Millisecond, time.Hour},
			Doc: "How long a client may take to send the header of a request."},
		{Key: "http.read_timeout", Default: "15s", value: durationValue{&c.HTTP.ReadTimeout, time.Millisecond, time.Hour},
			Doc: "How long a client may take to send a whole request."},
		{Key: "http.write_timeout", Default: "30s", value: durationValue{&c.HTTP.WriteTimeout, time.Millisecond, time.Hour},
			Doc: "How long the answer to a request may take, from the end of its header."},
		{Key: "http.idle_timeout", Default: "75s", value: durationValue{&c.HTTP.IdleTimeout, time.Millisecond, day},
			Doc: "How long a connection is kept open between two requests."},
		{Key: "http.shutdown_timeout", Default: "4s", value: durationValue{&c.HTTP.ShutdownTimeout, time.Millisecond, time.Hour},
			Doc: "How long a stop waits for requests that are being answered."},

		{Key: "limits.thread_posts", Reloads: true, Default: "20", value: intValue{&c.Limits.ThreadPosts, 1, 1 << 20},
			Doc: "Messages that one thread may post within limits.window."},
		{Key: "limits.ip_posts", Reloads: true, Default: "40", value: intValue{&c.Limits.IPPosts, 1, 1 << 20},
			Doc: "Messages that one address may post within limits.window. An IPv6 network /64 counts as one address."},
		{Key: "limits.window", Reloads: true, Default: "600s", value: durationValue{&c.Limits.Window, time.Second, 30 * day},
			Doc: "The length of the sliding window of the two limits above."},
		{Key: "limits.threads", Reloads: true, Default: "500", value: intValue{&c.Limits.Threads, 1, 1 << 20},
			Doc: "Threads that may exist. A message that would start one more is refused."},
		{Key: "limits.messages", Reloads: true, Default: "200", value: intValue{&c.Limits.Messages, 1, 1 << 16},
			Doc: "Messages that a thread keeps. Older ones are dropped."},
		{Key: "limits.text", Reloads: true, Default: "4000", value: intValue{&c.Limits.Text, 1, 1 << 20},
			Doc: "Length of a message in Unicode code points. A longer one is refused, never cut."},
		{Key: "limits.body", Reloads: true, Default: "32768", value: intValue{&c.Limits.Body, 64, 1 << 26},
			Doc: "Size of a request's body in bytes."},
		{Key: "limits.page", Reloads: true, Default: "50", value: intValue{&c.Limits.Page, 1, 1 << 16},
			Doc: "Messages that one poll returns at most."},
		{Key: "limits.ip_new_threads", Reloads: true, Default: "100", value: intValue{&c.Limits.IPNewThreads, 0, 1 << 20},
			Doc: "Threads that one address may start within limits.ip_new_window; 0 means any number. It keeps one visitor from taking every thread that limits.threads allows."},
		{Key: "limits.ip_new_window", Reloads: true, Default: "24h", value: durationValue{&c.Limits.IPNewWindow, time.Second, 30 * day},
			Doc: "The length of the sliding window of limits.ip_new_threads."},

		{Key: "retention.max_age", Reloads: true, Default: "720h", value: durationValue{&c.Retention.MaxAge, time.Minute, 3650 * day},
			Doc: "How long a message is kept."},
		{Key: "retention.schedule", Default: "@hourly", value: scheduleValue{&c.Retention.Schedule},
			Doc: "When relayd sweeps old messages: five cron fields in UTC, or @hourly, @daily, @every 30m. It also sweeps at its start."},

		{Key: "watch.rescan", Default: "30s", value: durationValue{&c.Watch.Rescan, 100 * time.Millisecond, time.Hour},
			Doc: "How often the thread directory is read in full, in case the kernel did not tell of a change."},

		{Key: "agent.backend", Reloads: true, Default: BackendNone, value: choiceValue{&c.Agent.Backend, []string{BackendNone, BackendExtract, BackendOpenAI, BackendHermes, BackendCommand}},
			Doc: "What answers threads that await Hermes: none leaves them to chat reply; extract quotes the readable files and needs no model; openai is any chat-completions server; hermes is a Hermes API server without tools; command is a program."},
		{Key: "agent.roots", Reloads: true, Default: "", IsList: true, value: pathsValue{&c.Agent.Roots},
			Doc: "Directories whose files the agent may read and quote to anybody who asks. None by default."},
		{Key: "agent.quiet", Reloads: true, Default: "2s", value: durationValue{&c.Agent.Quiet, 0, time.Hour},
			Doc: "How long a thread must have been quiet before it is answered, so that a burst of messages gets one answer."},
		{Key: "agent.concurrency", Reloads: true, Default: "2", value: intValue{&c.Agent.Concurrency, 1, 64},
			Doc: "How many threads are answered at once."},
		{Key: "agent.sandbox", Reloads: true, Default: SandboxStrict, value: choiceValue{&c.Agent.Sandbox, []string{SandboxStrict, SandboxBestEffort}},
			Doc: "What to do where the kernel cannot confine the reader of files: strict refuses to start the agent, best-effort goes on with what there is and logs what is missing."},
		{Key: "agent.budget.time", Reloads: true, Default: "120s", value: durationValue{&c.Agent.Budget.Time, time.Second, time.Hour},
			Doc: "How long one answer may take."},
		{Key: "agent.budget.tool_calls", Reloads: true, Default: "24", value: intValue{&c.Agent.Budget.ToolCalls, 0, 1000},
			Doc: "How often files may be listed, read or searched for one answer."},
		{Key: "agent.budget.bytes", Reloads: true, Default: "65536", value: intValue{&c.Agent.Budget.Bytes, 0, 1 << 24},
			Doc: "How many bytes of files the model may be shown for one answer."},
		{Key: "agent.budget.tokens", Reloads: true, Default: "50000", value: intValue{&c.Agent.Budget.Tokens, 100, 1 << 30},
			Doc: "How many tokens one answer may use, prompts included."},
		{Key: "agent.budget.thread_runs_per_hour", Reloads: true, Default: "10", value: intValue{&c.Agent.Budget.ThreadRunsPerHour, 0, 1 << 20},
			Doc: "Answers that one thread may be given in an hour; 0 means any number."},
		{Key: "agent.budget.runs_per_hour", Reloads: true, Default: "60", value: intValue{&c.Agent.Budget.RunsPerHour, 0, 1 << 20},
			Doc: "Answers to all threads in an hour; 0 means any number."},
		{Key: "agent.budget.runs_per_day", Reloads: true, Default: "500", value: intValue{&c.Agent.Budget.RunsPerDay, 0, 1 << 20},
			Doc: "Answers to all threads in 24 hours; 0 means any number."},
		{Key: "agent.budget.tokens_per_hour", Reloads: true, Default: "500000", value: intValue{&c.Agent.Budget.TokensPerHour, 0, 1 << 30},
			Doc: "Tokens that all answers may use in an hour; 0 means any number."},
		{Key: "agent.budget.tokens_per_day", Reloads: true, Default: "2000000", value: intValue{&c.Agent.Budget.TokensPerDay, 0, 1 << 30},
			Doc: "Tokens that all answers may use in 24 hours; 0 means any number."},
		{Key: "agent.budget.agent_turns", Reloads: true, Default: "6", value: intValue{&c.Agent.Budget.AgentTurns, 0, 1000},
			Doc: "How often in a row the page's own agent is answered without a word from the person; 0 means for ever."},
		{Key: "agent.budget.retries", Reloads: true, Default: "3", value: intValue{&c.Agent.Budget.Retries, 0, 100},
			Doc: "How often a message is tried again after a failure that may pass."},
		{Key: "agent.openai.base_url", Reloads: true, Default: "", value: urlValue{&c.Agent.OpenAI.BaseURL},
			Doc: "Where the chat-completions server is, such as http://127.0.0.1:8080/v1."},
		{Key: "agent.openai.model", Reloads: true, Default: "", value: textValue{&c.Agent.OpenAI.Model},
			Doc: "The model that is asked for."},
		{Key: "agent.openai.key_file", Reloads: true, Default: "", value: keyFileValue{&c.Agent.OpenAI.KeyFile},
			Doc: "The file with the server's key, or credential:NAME for one of systemd's. Empty sends none."},
		{Key: "agent.hermes.base_url", Reloads: true, Default: "", value: urlValue{&c.Agent.Hermes.BaseURL},
			Doc: "Where the Hermes API server is, such as http://127.0.0.1:8642/v1."},
		{Key: "agent.hermes.key_file", Reloads: true, Default: "", value: keyFileValue{&c.Agent.Hermes.KeyFile},
			Doc: "The file with the server's key, or credential:NAME for one of systemd's."},
		{Key: "agent.command.argv", Reloads: true, Default: "", IsList: true, value: wordsValue{&c.Agent.Command.Argv},
			Doc: "The program that writes answers, and its arguments. No shell reads them."},

		{Key: "workspace.enabled", Default: "false", value: boolValue{&c.Workspace.Enabled},
			Doc: "Whether the workspace is served beside the chat: signed-in people who talk to Hermes agents, alone and in groups, below /api/app on the same address. Until the first account exists, whoever reaches a private address of relayd may set it up; relayd user add does it before."},
		{Key: "workspace.data_dir", Default: "", value: pathValue{&c.Workspace.DataDir, true},
			Doc: "Where the workspace keeps its database, its keys and its files. Nobody else may read it. Empty means <root>/workspace."},
		{Key: "workspace.allowed_hosts", Default: "", IsList: true, value: wordsValue{&c.Workspace.AllowedHosts},
			Doc: "Hosts, with or without a port, under which the workspace is reached besides loopback and private addresses, such as chat.example. Requests for any other host are refused."},
		{Key: "workspace.secure_cookies", Default: "false", value: boolValue{&c.Workspace.SecureCookies},
			Doc: "Whether browsers send the workspace's cookies over TLS alone, also where relayd does not see that a front end speaks TLS."},
		{Key: "workspace.user_quota", Default: "2147483648", value: intValue{&c.Workspace.UserQuota, 0, 1 << 50},
			Doc: "How many bytes the files of one user may have; 0 means any number."},
		{Key: "workspace.total_quota", Default: "10737418240", value: intValue{&c.Workspace.TotalQuota, 0, 1 << 50},
			Doc: "How many bytes the files of all users may have; 0 means any number."},
		{Key: "workspace.voice", Default: "true", value: boolValue{&c.Workspace.Voice},
			Doc: "Whether the settings of voices, text-to-speech and speech-to-text are served."},
		{Key: "workspace.share_voice_key", Default: "true", value: boolValue{&c.Workspace.ShareVoiceKey},
			Doc: "Whether every signed-in user is told the key of the duplex voices, which clients need that talk to the provider themselves."},

		{Key: "admin.listen", Default: "127.0.0.1:8641", value: addressValue{&c.Admin.Listen, true},
			Doc: "The address and port of the operator's side: /healthz, /readyz and /metrics. It asks nobody who he is, so keep it to this host. Empty serves none."},

		{Key: "log.level", Reloads: true, Default: "info", value: levelValue{&c.Log.Level},
			Doc: "The least important level that is logged: debug, info, warn or error."},
		{Key: "log.format", Default: LogText, value: choiceValue{&c.Log.Format, []string{LogText, LogJSON, LogJournal}},
			Doc: "The form of the log: text or json on standard error, or journal, which hands systemd's journal each attribute as a field of its own."},
	}
}

// Default is the default of a key, for the texts that mention it. A key that does
// not exist is a mistake of the program and panics.
func Default(key string) string {
	for _, o := range new(Config).Options() {
		if o.Key == key {
			return o.Default
		}
	}
	panic("config: there is no key " + key)
}

// ParseSchedule parses the value of retention.schedule. Its times are in UTC.
func ParseSchedule(s string) (cron.Schedule, error) { return cron.ParseStandard("TZ=UTC " + s) }

// YAML is the effective value as it stands behind the key in a file.
func (o Option) YAML() string {
	if !o.IsList {
		return quoteYAML(o.Value())
	}
	items := splitList(o.Value())
	for i, item := range items {
		items[i] = quoteItem(item)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// quoteItem quotes what would be read as something else inside brackets, where
// "::1" is no plain text.
func quoteItem(s string) string {
	var items []string
	if err := yaml.Unmarshal([]byte("["+s+"]"), &items); err == nil && len(items) == 1 && items[0] == s {
		return s
	}
	return strconv.Quote(s)
}

// quoteYAML quotes what would be read as something else if it stood alone.
func quoteYAML(s string) string {
	if n, err := strconv.Atoi(s); err == nil && strconv.Itoa(n) == s {
		return s
	}
	if s == "true" || s == "false" {
		return s
	}
	quoted, err := yaml.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(string(quoted), "\n")
}
