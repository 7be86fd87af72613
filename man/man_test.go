// Package man_test keeps the manual pages and the programs equal.
package man_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/cli"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/daemon"
)

// read returns the source of a page.
func read(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func pages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.[1-8]")
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	return names
}

// mandoc runs mandoc, which scripts/setup installs.
func mandoc(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("mandoc")
	if err != nil {
		t.Fatal("mandoc is missing; scripts/setup (make setup) installs it")
	}
	out, err := exec.CommandContext(t.Context(), path, args...).Output()
	if len(out) == 0 && err != nil {
		t.Fatalf("mandoc %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// rendered returns a page, or a part of its source, as people read it, with
// every run of blanks as one.
func rendered(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page")
	if !strings.HasPrefix(source, ".Dd") {
		source = ".Dd November 30, 2026\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd x\n" + source
	}
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	text := mandoc(t, "-Tutf8", "-O", "width=1000", file)
	overstruck := regexp.MustCompile(`.\x08`)
	return strings.Join(strings.Fields(overstruck.ReplaceAllString(text, "")), " ")
}

// section returns what stands below a heading, up to the next of its rank.
func section(source, heading string) string {
	_, body, found := strings.Cut(source, "\n"+heading+"\n")
	if !found {
		return ""
	}
	if end := strings.Index(body, "\n"+heading[:len(".Sh ")]); end >= 0 {
		body = body[:end+1]
	}
	return body
}

// entry is an item of a list: what stands behind .It, and what follows it.
type entry struct{ head, body string }

// entries returns the items of all tagged lists, without those of columns.
func entries(source string) []entry {
	var list []entry
	end := regexp.MustCompile(`(?m)^\.(It|El|Sh|Ss)\b`)
	for _, part := range strings.Split(source, "\n.It ")[min(1, strings.Count(source, "\n.It ")):] {
		head, body, _ := strings.Cut(part, "\n")
		if i := end.FindStringIndex(body); i != nil {
			body = body[:i[0]]
		}
		list = append(list, entry{head, body})
	}
	return list
}

// Ensures that mandoc finds nothing to complain about in any page. Whether pages
// that are referred to are installed on this machine does not matter.
func TestPages_AreClean(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for line := range strings.Lines(mandoc(t, "-Tlint", page)) {
			if !strings.Contains(line, "referenced manual not found") {
				t.Error(strings.TrimSpace(line))
			}
		}
	}
}

// Ensures that a page that another one, a comment or a text refers to exists.
func TestPages_ReferencesLeadSomewhere(t *testing.T) {
	t.Parallel()
	reference := regexp.MustCompile(`\b((?:chat|relayd|newos4)[a-z0-9.-]*)(?:\((\d)\)| (\d)\b)`)
	for file, text := range texts(t) {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			page := m[1] + "." + m[2] + m[3]
			isReference := m[2] != "" || strings.Contains(text, ".Xr "+m[0])
			if _, err := os.Stat(page); err != nil && isReference {
				t.Errorf("%s refers to %s, which does not exist", file, m[0])
			}
		}
	}
}

// texts returns the sources of the project that may refer to the manual.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, dir := range []string{".", "../cmd", "../etc", "../pkg", "../scripts", "../README.md"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Base(path) == "man_test.go" {
				return err
			}
			found[path] = read(t, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Ensures that a section of the contract that the code names is in
// newos4-chat(7). Packages that follow another document say so themselves.
func TestContract_SectionsLeadSomewhere(t *testing.T) {
	t.Parallel()
	contract := read(t, "newos4-chat.7")
	named := regexp.MustCompile(`\bsections? (\d+)`)
	for file, text := range texts(t) {
		if regexp.MustCompile(`/(hermesapi|hermes|account|workspace|jsonbody)/`).MatchString(file) {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(contract, "\n.Sh "+m[1]+". ") {
				t.Errorf("%s names %s, which newos4-chat(7) does not have", file, m[0])
			}
		}
	}
}

// command is a command as its help describes it.
type command struct {
	path  string // such as "relayd config print"
	flags map[string]flag
	args  []string // names of its arguments
}

type flag struct {
	short, value, preset string
}

// program is one of the two programs.
type program struct {
	name string
	page string
	help string // of the program itself
	// global are the flags of every command.
	global   map[string]flag
	commands []command
}

// programs returns both programs as their help describes them.
func programs(t *testing.T) []program {
	t.Helper()
	run := map[string]func(args []string, out *bytes.Buffer) int{
		"chat": func(args []string, out *bytes.Buffer) int {
			return cli.Main(t.Context(), cli.Env{Args: args, Stdin: new(bytes.Buffer), Stdout: out, Stderr: out})
		},
		"relayd": func(args []string, out *bytes.Buffer) int {
			return daemon.Main(context.WithoutCancel(t.Context()), daemon.Env{Args: args, Stdout: out, Stderr: out})
		},
	}
	both := []program{{name: "chat", page: "chat.1"}, {name: "relayd", page: "relayd.8"}}
	for i := range both {
		p := &both[i]
		help := func(path string) string {
			var out bytes.Buffer
			args := append(strings.Fields(path)[1:], "--help")
			if code := run[p.name](args, &out); code != 0 {
				t.Fatalf("%s --help exits with %d: %s", path, code, &out)
			}
			return out.String()
		}
		p.help = help(p.name)
		p.global = flagsOf(p.help, "Flags:")
		p.commands = walk(help, p.name)
	}
	return both
}

// walk returns the commands below path that do something.
func walk(help func(string) string, path string) []command {
	text := help(path)
	names := regexp.MustCompile(`(?m)^  (\S+)`).FindAllStringSubmatch(paragraph(text, "Available Commands:"), -1)
	if len(names) == 0 || strings.HasSuffix(path, " completion") {
		usage := strings.TrimSpace(paragraph(text, "Usage:"))
		return []command{{
			path:  path,
			flags: flagsOf(text, "Flags:"),
			args:  regexp.MustCompile(`\b[A-Z]{2,}\b`).FindAllString(usage, -1),
		}}
	}
	var commands []command
	for _, name := range names {
		if name[1] != "help" {
			commands = append(commands, walk(help, path+" "+name[1])...)
		}
	}
	return commands
}

// paragraph returns the lines below a heading of a help text.
func paragraph(help, heading string) string {
	_, rest, _ := strings.Cut("\n"+help, "\n"+heading+"\n")
	body, _, _ := strings.Cut(rest, "\n\n")
	return body
}

func flagsOf(help, heading string) map[string]flag {
	flags := make(map[string]flag)
	line := regexp.MustCompile(`(?m)^ +(?:-(\w), )?--([\w-]+)(?: (\S+))? {2,}(.*)$`)
	preset := regexp.MustCompile(`\(default "?([^",)]+)`)
	for _, m := range line.FindAllStringSubmatch(paragraph(help, heading), -1) {
		f := flag{short: m[1], value: m[3]}
		if found := preset.FindStringSubmatch(m[4]); found != nil {
			f.preset = found[1]
		}
		flags[m[2]] = f
	}
	return flags
}

// Ensures that every flag has an entry with its short form, its value and its
// default in the page of its command, and that no page has other ones.
func TestPages_HaveEveryFlag(t *testing.T) {
	t.Parallel()
	for _, p := range programs(t) {
		documented := map[string]map[string]flag{p.page: p.global}
		known := maps.Clone(p.global)
		for _, c := range p.commands {
			flags := maps.Clone(c.flags)
			delete(flags, "help") // it is on the program's own page
			maps.Copy(known, flags)
			if page, ok := commandPage(c); ok {
				documented[page] = flags
			} else if len(flags) > 0 {
				t.Errorf("%s has flags of its own and no page", c.path)
			}
		}
		for page, flags := range documented {
			checkFlags(t, page, flags)
			mentioned := regexp.MustCompile(`(?:^|[\s(\[])--([a-z][a-z-]*)`)
			for _, m := range mentioned.FindAllStringSubmatch(rendered(t, withoutForeign(read(t, page))), -1) {
				if _, ok := known[m[1]]; !ok {
					t.Errorf("%s mentions --%s, which %s does not have", page, m[1], p.name)
				}
			}
		}
	}
}

// commandPage returns the page of a command that has one of its own, in the
// manual section of its program.
func commandPage(c command) (string, bool) {
	for _, section := range []string{".1", ".8"} {
		page := strings.ReplaceAll(c.path, " ", "-") + section
		if _, err := os.Stat(page); err == nil {
			return page, true
		}
	}
	return "", false
}

// withoutForeign drops the lines that call other programs.
func withoutForeign(source string) string {
	return regexp.MustCompile(`(?m)^(groupadd|useradd|    --no-create-home).*$`).ReplaceAllString(source, "")
}

// words returns the words of a text, without the marks behind them, and the empty
// one.
func words(text string) []string {
	all := []string{""}
	for word := range strings.FieldsSeq(text) {
		all = append(all, strings.TrimRight(word, ".,;"))
	}
	return all
}

func checkFlags(t *testing.T, page string, flags map[string]flag) {
	t.Helper()
	source := read(t, page)
	synopsis := section(source, ".Sh SYNOPSIS")
	described := make(map[string]entry)
	long := regexp.MustCompile(`Fl Fl ([\w-]+)`)
	for _, e := range entries(section(source, ".Sh DESCRIPTION")) {
		if m := long.FindStringSubmatch(e.head); m != nil && strings.HasPrefix(e.head, "Fl ") {
			described[m[1]] = e
		}
	}
	for name := range described {
		if _, ok := flags[name]; !ok {
			t.Errorf("%s describes --%s, which does not exist", page, name)
		}
	}
	for name, f := range flags {
		want := "Fl Fl " + name
		if f.short != "" {
			want = "Fl " + f.short + " , " + want
		}
		if f.value != "" {
			want += " Ar " + strings.ToLower(f.value)
		}
		e, ok := described[name]
		if !ok || e.head != want {
			t.Errorf("%s has no entry %q for --%s", page, ".It "+want, name)
		}
		if !regexp.MustCompile(`Fl Fl ` + name + `\b`).MatchString(synopsis) {
			t.Errorf("%s leaves --%s out of its synopsis", page, name)
		}
		if !slices.Contains(words(e.body), f.preset) {
			t.Errorf("%s does not name %s, the default of --%s", page, f.preset, name)
		}
	}
}

// Ensures that every command has a page or a heading with its arguments, and
// that no page is about another one.
func TestPages_HaveEveryCommand(t *testing.T) {
	t.Parallel()
	for _, p := range programs(t) {
		source := read(t, p.page)
		known := map[string]bool{p.page: true}
		var headings []string
		for _, c := range p.commands {
			place := source
			if page, ok := commandPage(c); ok {
				known[page], place = true, read(t, page)
				if !strings.Contains(source, ".Xr "+strings.Replace(page, ".", " ", 1)) {
					t.Errorf("%s does not refer to %s", p.page, page)
				}
			} else {
				headings = append(headings, c.path)
			}
			synopsis := rendered(t, ".Sh SYNOPSIS\n"+section(place, ".Sh SYNOPSIS"))
			for _, want := range append([]string{c.path}, c.args...) {
				if !strings.Contains(synopsis, want) && !strings.Contains(synopsis, strings.ToLower(want)) {
					t.Errorf("the synopsis of %s lacks %q", c.path, want)
				}
			}
		}
		var described []string
		for _, m := range regexp.MustCompile(`(?m)^\.Ss (`+p.name+` .*)$`).FindAllStringSubmatch(section(source, ".Sh COMMANDS"), -1) {
			name, _, _ := strings.Cut(m[1], " Ar ")
			described = append(described, name)
		}
		slices.Sort(headings)
		slices.Sort(described)
		if !slices.Equal(headings, described) {
			t.Errorf("%s describes the commands %q, want %q", p.page, described, headings)
		}
		for _, page := range pages(t) {
			isTopic := strings.HasSuffix(page, ".7") // and of no one command
			if strings.HasPrefix(page, p.name+"-") && !known[page] && !isTopic {
				t.Errorf("%s is about a command that %s does not have", page, p.name)
			}
		}
	}
}

// Ensures that the exit status of a program is described in the words of its
// help, and that no page of its commands has other ones.
func TestPages_HaveEveryExitStatus(t *testing.T) {
	t.Parallel()
	for _, p := range programs(t) {
		codes := make(map[string]string)
		for _, m := range regexp.MustCompile(`(?m)^  (\d)  (.*)$`).FindAllStringSubmatch(paragraph(p.help, "Exit codes:"), -1) {
			codes[m[1]] = m[2]
		}
		if _, inline, ok := strings.Cut(p.help, "Exit codes: "); ok {
			inline, _, _ = strings.Cut(inline, ".")
			for part := range strings.SplitSeq(inline, ", ") {
				code, meaning, _ := strings.Cut(part, " ")
				codes[code] = meaning
			}
		}
		if len(codes) < 3 {
			t.Fatalf("the help of %s lists the exit codes %v", p.name, codes)
		}
		described := make(map[string]bool)
		for _, e := range entries("\n" + section(read(t, p.page), ".Sh EXIT STATUS")) {
			described[e.head] = true
			if !strings.HasPrefix(strings.Join(strings.Fields(e.body), " "), codes[e.head]) {
				t.Errorf("%s says of %s %q, want %q", p.page, e.head, e.body, codes[e.head])
			}
		}
		for code := range codes {
			if !described[code] {
				t.Errorf("%s leaves exit status %s out", p.page, code)
			}
		}
		for _, c := range p.commands {
			page, ok := commandPage(c)
			if !ok {
				continue
			}
			list := entries("\n" + section(read(t, page), ".Sh EXIT STATUS"))
			if len(list) == 0 {
				t.Errorf("%s describes no exit status", page)
			}
			for _, e := range list {
				if codes[e.head] == "" {
					t.Errorf("%s describes exit status %s, which %s does not have", page, e.head, p.name)
				}
			}
		}
	}
}

// Ensures that relayd.yaml(5) describes every key with its default, its variable
// and what a change needs, in the code's order, and no other key.
func TestPages_HaveEveryKey(t *testing.T) {
	t.Parallel()
	options := defaults(t)
	var described []string
	bodies := make(map[string]string)
	for _, e := range entries("\n" + section(read(t, "relayd.yaml.5"), ".Sh KEYS")) {
		if key, ok := strings.CutPrefix(e.head, "Ic "); ok {
			described = append(described, key)
			bodies[key] = e.body
		}
	}
	var keys []string
	for _, o := range options {
		keys = append(keys, o.Key)
		change := "restart"
		if o.Reloads {
			change = "reload"
		}
		escaped := strings.NewReplacer(`"`, `\(dq`, `'`, `\(aq`).Replace(o.YAML())
		want := fmt.Sprintf(".Pp\nDefault\n.Li %s ;\n.Ev %s ;\n%s.\n", escaped, o.Env(), change)
		if !strings.HasSuffix(strings.TrimSpace(bodies[o.Key])+"\n", want) {
			t.Errorf("relayd.yaml(5), %s: the entry does not end with\n%s", o.Key, want)
		}
	}
	if !slices.Equal(described, keys) {
		t.Errorf("relayd.yaml(5) describes\n%q, want\n%q", described, keys)
	}
}

// Ensures that every key that any page mentions exists, and that the limits of
// the contract have the code's defaults.
func TestPages_MentionKeysThatExist(t *testing.T) {
	t.Parallel()
	preset := make(map[string]string)
	for _, o := range defaults(t) {
		preset[o.Key] = o.YAML()
		for section := o.Key; strings.Contains(section, "."); {
			section = section[:strings.LastIndexByte(section, '.')]
			preset[section] = ""
		}
	}
	mentioned := regexp.MustCompile(`(?m)^\.(?:It )?Ic ([a-z_.]*[a-z])(?: Ta (\S+))?`)
	variable := regexp.MustCompile(`RELAYD_[A-Z_]*[A-Z]`)
	for _, page := range pages(t) {
		source := read(t, page)
		for _, m := range mentioned.FindAllStringSubmatch(source, -1) {
			value, ok := preset[m[1]]
			if !ok && m[1] != "a.b" {
				t.Errorf("%s mentions the key %s, which does not exist", page, m[1])
			}
			if m[2] != "" && m[2] != value {
				t.Errorf("%s says that the default of %s is %s, want %s", page, m[1], m[2], value)
			}
		}
		for _, name := range variable.FindAllString(source, -1) {
			if !slices.ContainsFunc(defaults(t), func(o config.Option) bool { return o.Env() == name }) {
				t.Errorf("%s mentions the variable %s, which does not exist", page, name)
			}
		}
	}
	for key := range preset {
		if strings.HasPrefix(key, "limits.") && !strings.Contains(read(t, "newos4-chat.7"), ".It Ic "+key+" Ta ") {
			t.Errorf("newos4-chat(7) leaves %s out", key)
		}
	}
}

// defaults returns every key, bound to its default.
func defaults(t *testing.T) []config.Option {
	t.Helper()
	c, err := config.Load(config.Source{DefaultFile: filepath.Join(t.TempDir(), "none.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	return c.Options()
}
