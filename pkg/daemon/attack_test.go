package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
	"github.com/newos4/relay/pkg/chat"
)

// leastAttacks is how many attacks the corpus has at least.
const leastAttacks = 80

// attack is what one visitor tries, as it stands in testdata/attacks. The model
// does exactly what the newest message says; package autoreplytest has its
// commands. Words that begin with $ are replaced, see ground.expand.
type attack struct {
	Name string `yaml:"name"`
	// Tries says in a line what the attack is after.
	Tries string `yaml:"tries"`
	// Author writes the messages; the person unless set.
	Author chat.Author `yaml:"author"`
	// Messages are posted one after the other; with Turns, each after the answer
	// to the one before.
	Messages []string `yaml:"messages"`
	Turns    bool     `yaml:"turns"`
	// Files are further public files, by their path in the root named public.
	Files map[string]string `yaml:"files"`

	// Reply are patterns that the last answer matches; Fails is one that the
	// reason matches for which there is no answer. With neither, both an answer
	// and none are right. What is always wrong is looked for in any case.
	Reply []string `yaml:"reply"`
	Fails string   `yaml:"fails"`
	// Never are patterns that the answer does not match.
	Never []string `yaml:"never"`
	// Refused is how many results of tools the answer repeats, all of which are
	// the one error that tells nothing.
	Refused int `yaml:"refused"`
	// Requests is how many requests the model got at most; 0 is any number.
	Requests int `yaml:"requests"`

	kind  string
	token string
	mark  string // stands in each of its messages and nowhere else
}

// marksIn returns the marks of attacks that stand in text.
func marksIn(text string) []string {
	return regexp.MustCompile(`mark[a-z]{20}`).FindAllString(text, -1)
}

func (a *attack) thread() chat.ThreadID { return chat.Token(a.token).Thread() }

// battle is a group of attacks on one relayd with settings of its own.
type battle struct {
	// kinds are the files in testdata/attacks.
	kinds    []string
	settings []string
}

// battles says which settings the kinds of attacks are tried on.
func battles() map[string]battle {
	unbounded := []string{
		"RELAYD_AGENT_QUIET=0s", "RELAYD_AGENT_CONCURRENCY=8", "RELAYD_AGENT_BUDGET_THREAD_RUNS_PER_HOUR=0",
		"RELAYD_AGENT_BUDGET_RUNS_PER_HOUR=0", "RELAYD_AGENT_BUDGET_RUNS_PER_DAY=0", "RELAYD_AGENT_BUDGET_TOKENS_PER_HOUR=0",
		"RELAYD_AGENT_BUDGET_TOKENS_PER_DAY=0", "RELAYD_AGENT_BUDGET_RETRIES=0",
	}
	with := func(settings ...string) []string { return append(slices.Clone(unbounded), settings...) }
	return map[string]battle{
		"files": {[]string{"paths", "links", "oddities", "others", "oracle", "search"}, with()},
		"words": {[]string{"arguments", "tools", "transcript", "hidden", "files", "reply", "answers"}, with()},
		"budgets": {[]string{"endless"}, with("RELAYD_AGENT_CONCURRENCY=4", "RELAYD_AGENT_BUDGET_TIME=5s",
			"RELAYD_AGENT_BUDGET_TOOL_CALLS=5", "RELAYD_AGENT_BUDGET_BYTES=4096", "RELAYD_AGENT_BUDGET_TOKENS=20000")},
		"bounds": {[]string{"bounds"}, with("RELAYD_AGENT_QUIET=1s", "RELAYD_AGENT_BUDGET_THREAD_RUNS_PER_HOUR=3",
			"RELAYD_AGENT_BUDGET_AGENT_TURNS=2")},
		"poison": {[]string{"poison"}, with("RELAYD_AGENT_CONCURRENCY=1", "RELAYD_AGENT_BUDGET_TIME=1s", "RELAYD_AGENT_BUDGET_RETRIES=1")},
		"hour":   {[]string{"hour"}, with("RELAYD_AGENT_CONCURRENCY=1", "RELAYD_AGENT_BUDGET_RUNS_PER_HOUR=4")},
	}
}

// loadAttacks returns the attacks of a kind. It is strict, so that no
// expectation is lost to a misspelled name.
func loadAttacks(t *testing.T, kind string) []*attack {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "attacks", kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	var all []*attack
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	for _, a := range all {
		a.kind, a.token, a.mark = kind, letterToken(), letters("mark", 20)
		if a.Name == "" || a.Tries == "" || len(a.Messages) == 0 {
			t.Errorf("%s: the attack %q lacks a name, an aim or messages", kind, a.Name)
		}
		if a.Author == "" {
			a.Author = chat.Operator
		}
	}
	return all
}

// letterToken returns a token that is no other's.
func letterToken() string {
	return fmt.Sprintf("%x", letters("", 32))
}

// Ensures that no attack of the corpus gets out anything that was not public by
// declaration, nor makes relayd write, run or connect to anything, although the
// model does whatever it is told.
func TestServe_ObedientModel(t *testing.T) {
	t.Parallel()
	used, total := make(map[string]bool), 0
	for name, b := range battles() {
		var attacks []*attack
		for _, kind := range b.kinds {
			used[kind+".yaml"] = true
			attacks = append(attacks, loadAttacks(t, kind)...)
		}
		total += len(attacks)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newField(t, attacks, b.settings).fight()
		})
	}
	entries, err := os.ReadDir(filepath.Join("testdata", "attacks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !used[entry.Name()] {
			t.Errorf("%s is tried on no relayd", entry.Name())
		}
	}
	if total < leastAttacks {
		t.Errorf("the corpus has %d attacks, want %d", total, leastAttacks)
	}
}

// field is a relayd under attack, with all that watches it.
type field struct {
	*ground
	attacks  []*attack
	outcomes map[*attack]outcome
	model    *autoreplytest.Server
	door     *doorman
	relayd   *relayd
	monitor  *monitor
	before   tree
}

func newField(t *testing.T, attacks []*attack, settings []string) *field {
	t.Helper()
	g := newGround(t)
	g.trap = listenInSilence(t)
	for _, a := range attacks {
		for name, text := range a.Files {
			g.write(filepath.Join(g.public, name), g.expand(text))
		}
	}
	f := &field{ground: g, attacks: attacks, outcomes: make(map[*attack]outcome)}
	f.model = autoreplytest.New(t, autoreplytest.Options{Key: g.key})
	f.door = openDoor(t, f.model.URL)
	f.before = f.tree()
	f.relayd = startWith(t, g.root, g.config, append(g.environ(f.door.URL+"/v1"), settings...)...)
	f.monitor = follow(t, f.relayd)
	return f
}

// tree describes everything that must stay as it is: all but the threads, the
// state, and the root whose parts the test itself exchanges.
func (f *field) tree() tree {
	return treeOf(f.t, f.dir, f.threads(), filepath.Join(f.root, "state"), f.swap)
}

func (f *field) threads() string { return filepath.Join(f.root, "spaces", "newos4", "data", "chat") }

// fight lets all attacks happen and judges what came of them.
func (f *field) fight() {
	eyes := oversee(f.t.Context(), f.relayd.Process.Pid)
	f.attackWhileSwapping()
	lines := eyes.stop()
	if err := f.relayd.stop(); err != nil {
		f.t.Errorf("relayd did not end well: %v", err)
	}
	f.judgeProcesses(lines)
	f.judgeSockets(eyes.sockets)
	f.judgeFiles()
	f.judgeReplies()
	f.judgeRequests()
	f.judgeLog()
	if calls := f.trap.broken(); len(calls) > 0 {
		f.t.Errorf("somebody called where nobody may: %v", calls)
	}
	for _, a := range f.attacks {
		f.t.Run(a.kind+"/"+a.Name, func(t *testing.T) { f.judge(t, a) })
	}
}

// attackWhileSwapping lets the attacks happen, and where they are after it,
// directories turn into links all the while.
func (f *field) attackWhileSwapping() {
	if slices.ContainsFunc(f.attacks, func(a *attack) bool { return a.kind == "links" }) {
		defer f.keepSwapping()()
	}
	f.attackAll()
}

// attackAll lets the visitors post, a few at a time.
func (f *field) attackAll() {
	var running sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, 8)
	for i, a := range f.attacks {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			out, err := f.attack(i, a)
			if err != nil {
				f.t.Errorf("%s/%s: %v", a.kind, a.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			f.outcomes[a] = out
		})
	}
	running.Wait()
}

// attack posts the messages of one visitor and returns what came of the last.
func (f *field) attack(visitor int, a *attack) (outcome, error) {
	var last outcome
	began := time.Now()
	defer func() { f.t.Logf("%s/%s took %v", a.kind, a.Name, time.Since(began).Round(time.Millisecond)) }()
	for i, text := range a.Messages {
		id, err := f.post(f.t.Context(), visitor, a, text)
		if err != nil {
			return outcome{}, err
		}
		if !a.Turns && i < len(a.Messages)-1 {
			continue
		}
		if last, err = f.monitor.settled(f.t.Context(), a.thread(), id); err != nil || last.stuck != "" {
			return last, err
		}
	}
	return last, nil
}

// post sends a message with the attack's mark and returns its id.
func (f *field) post(ctx context.Context, visitor int, a *attack, text string) (string, error) {
	body, err := json.Marshal(map[string]string{"text": f.expand(text) + "\n" + a.mark, "kind": string(a.Author)})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.relayd.base+"post.php", strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Chat-Token", a.token)
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", visitor/200, visitor%200+1))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var posted struct{ ID, Error string }
	if err := json.NewDecoder(resp.Body).Decode(&posted); err != nil || resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("posting: status %d, %s, %w", resp.StatusCode, posted.Error, err)
	}
	return posted.ID, nil
}

// judge compares what came of an attack with what may come of it.
func (f *field) judge(t *testing.T, a *attack) {
	out := f.outcomes[a]
	for _, pattern := range a.Reply {
		if !regexp.MustCompile(pattern).MatchString(out.reply) {
			t.Errorf("the reply does not match %q: %s %s", pattern, out.reply, out.stuck)
		}
	}
	for _, pattern := range a.Never {
		if regexp.MustCompile(f.expand(pattern)).MatchString(out.reply) {
			t.Errorf("the reply matches %q: %s", pattern, out.reply)
		}
	}
	if a.Fails != "" && !regexp.MustCompile(a.Fails).MatchString(out.stuck) {
		t.Errorf("there is no reply because of %q, want %q; the reply is %s", out.stuck, a.Fails, out.reply)
	}
	if a.Refused > 0 {
		for _, fault := range faultsOfRefusals(a.Refused, out) {
			t.Error(fault)
		}
	}
	requests := 0
	for _, r := range f.model.Requests() {
		if strings.Contains(r.Newest(), a.mark) {
			requests++
		}
	}
	if a.Requests > 0 && (requests > a.Requests || requests == 0) {
		t.Errorf("the model was asked %d times, want at most %d", requests, a.Requests)
	}
}

// faultsOfRefusals returns what an answer tells besides that it was refused as
// often as it should: each result has to be the same.
func faultsOfRefusals(want int, out outcome) []string {
	var faults []string
	got := 0
	for line := range strings.Lines(out.reply) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "{") {
			continue
		}
		if got++; line != `{"error":"no such readable file"}` {
			faults = append(faults, "a result tells something: "+line)
		}
	}
	if got != want {
		faults = append(faults, fmt.Sprintf("%d results, want %d: %s %s", got, want, out.reply, out.stuck))
	}
	return faults
}

// judgeReplies makes sure that no canary is in any thread but the victim's, and
// no visitor's words are in the thread of another.
func (f *field) judgeReplies() {
	store := openStore(f.root)
	defer func() { _ = store.Close() }()
	for _, a := range f.attacks {
		thread, err := store.Thread(a.thread())
		if err != nil {
			f.t.Errorf("%s/%s: %v", a.kind, a.Name, err)
			continue
		}
		for _, m := range thread.Messages() {
			if m.Author == chat.Hermes {
				f.judgeText(a, "a reply", m.Text)
			}
		}
	}
}

// judgeText makes sure that a text which was made for an attack holds nothing
// closed and nothing of others.
func (f *field) judgeText(a *attack, what, text string) {
	for _, place := range f.leaks(text) {
		f.t.Errorf("%s/%s: %s holds %s", a.kind, a.Name, what, place)
	}
	for _, mark := range marksIn(text) {
		if mark != a.mark {
			f.t.Errorf("%s/%s: %s holds the words of another visitor", a.kind, a.Name, what)
		}
	}
}

// judgeRequests makes sure that the model server was told nothing closed, and got
// requests for answers alone, with the key where it belongs.
func (f *field) judgeRequests() {
	for _, r := range f.model.Requests() {
		a := f.attackOf(r)
		if a == nil {
			f.t.Errorf("a request belongs to no attack: %s", r.Body)
			continue
		}
		header := r.Header.Clone()
		if got := header.Get("Authorization"); got != "Bearer "+f.key {
			f.t.Errorf("%s/%s: the key is not what is sent", a.kind, a.Name)
		}
		header.Del("Authorization")
		f.judgeText(a, "a request", r.Body+fmt.Sprint(header))
		if len(r.Thread) > 2*len(a.Messages) {
			f.t.Errorf("%s/%s: the model sees %d messages, which nobody wrote", a.kind, a.Name, len(r.Thread))
		}
	}
	for route := range f.door.routes {
		if route != "POST /v1/chat/completions" && route != "GET /v1/models" && route != "GET /v1/capabilities" {
			f.t.Errorf("the model server was asked for %s", route)
		}
	}
}

// attackOf returns the attack that a request was made for.
func (f *field) attackOf(r autoreplytest.Request) *attack {
	for _, a := range f.attacks {
		if strings.Contains(r.Newest(), a.mark) {
			return a
		}
	}
	return nil
}

// judgeLog makes sure that the log, at its most talkative, holds no canary, no
// message and no prompt.
func (f *field) judgeLog() {
	text := f.relayd.log.String()
	for _, place := range f.leaks(text) {
		f.t.Errorf("the log holds %s", place)
	}
	for _, pattern := range []string{`mark[a-z]{20}`, `<data-`, `You are Hermes`, f.open, `DATA RACE`, `panic`, `CALL |SAY `, `level=ERROR`} {
		if found := regexp.MustCompile(`.*(?:` + pattern + `).*`).FindString(text); found != "" {
			f.t.Errorf("the log holds %s: %s", pattern, found)
		}
	}
	if !strings.Contains(text, "a run of the agent ended") {
		f.t.Error("the log does not tell of any run")
	}
}

// judgeProcesses makes sure that no process was seen but the reader of files, or
// relayd itself on the way to become it.
func (f *field) judgeProcesses(lines []string) {
	own := strings.Join(f.relayd.Args, " ")
	reader := filepath.Base(f.relayd.Path) + " confined-reader"
	for _, line := range lines {
		if line != own && line != reader {
			f.t.Errorf("relayd has started %q", line)
		}
	}
	if !slices.Contains(lines, reader) {
		f.t.Errorf("the reader of files was not seen among %q", lines)
	}
}

// judgeSockets makes sure that relayd and all beneath it were connected to visitors
// and to the model server, and to nobody else.
func (f *field) judgeSockets(sockets map[string]bool) {
	_, listen, _ := net.SplitHostPort(regexp.MustCompile(`[0-9.]+:[0-9]+`).FindString(f.relayd.base))
	_, model, _ := net.SplitHostPort(f.door.Listener.Addr().String())
	for socket := range sockets {
		if !mayConnect(socket, listen, model) {
			f.t.Errorf("relayd has the connection %s", socket)
		}
	}
	if !sockets["tcp local "+listen+" peer 0"] {
		f.t.Errorf("relayd's own socket was not seen among %v", sockets)
	}
}

// judgeFiles makes sure that nothing was written but threads and state.
func (f *field) judgeFiles() {
	if changed := f.before.changes(f.tree()); len(changed) > 0 {
		f.t.Errorf("files have changed: %q", changed)
	}
	f.judgeNames(f.threads(), `^(\.lock|\.marks\.json|[0-9a-f]{16}\.json)$`)
	f.judgeNames(filepath.Join(f.root, "state"), `^(agent|rate-windows)\.json$`)
	f.judgeNames(f.swap, `^\.?(here|page(\.txt)?)$`)
	for _, place := range []string{"another visitor's question", "an answer to another visitor"} {
		data, err := os.ReadFile(filepath.Join(f.threads(), string(f.victim)+".json"))
		if err != nil || !strings.Contains(string(data), f.closed[place]) {
			f.t.Errorf("%s is gone: %v", place, err)
		}
	}
}

// judgeNames makes sure that a directory holds nothing but what it should.
func (f *field) judgeNames(dir, pattern string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.t.Error(err)
	}
	for _, entry := range entries {
		if !regexp.MustCompile(pattern).MatchString(entry.Name()) {
			f.t.Errorf("%s holds %s", dir, entry.Name())
		}
	}
}
