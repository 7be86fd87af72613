// Package hermes_test holds what Hermes is given to the programs that it speaks
// of.
package hermes_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/cli"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/storage"
)

const skill = "skills/newos4-chat/SKILL.md"

// parts returns the front matter and the body of the skill.
func parts(t *testing.T) (front, body string) {
	t.Helper()
	data, err := os.ReadFile(skill)
	if err != nil {
		t.Fatal(err)
	}
	front, body, ok := strings.Cut(strings.TrimPrefix(string(data), "---\n"), "\n---\n")
	if !ok || !bytes.HasPrefix(data, []byte("---\n")) || strings.TrimSpace(body) == "" {
		t.Fatal("there is no front matter before a body")
	}
	return front, body
}

// Ensures that the front matter is what Hermes asks of a skill.
func TestSkill_FrontMatter(t *testing.T) {
	t.Parallel()
	front, _ := parts(t)
	var got struct {
		Name        string
		Description string
		Version     string
		Author      string
		License     string
		Platforms   []string
		Metadata    struct{ Hermes struct{ Tags []string } }
	}
	decoder := yaml.NewDecoder(strings.NewReader(front))
	decoder.KnownFields(true)
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Name != filepath.Base(filepath.Dir(skill)) || !regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`).MatchString(got.Name) {
		t.Errorf("name = %q", got.Name)
	}
	if !strings.HasPrefix(got.Description, "Use when ") || len(got.Description) > 1024 {
		t.Errorf("description = %q", got.Description)
	}
	if got.Version == "" || got.Author == "" || got.License != "MIT" || len(got.Platforms) != 1 || len(got.Metadata.Hermes.Tags) == 0 {
		t.Errorf("front matter = %+v", got)
	}
}

// run runs chat on a root.
func run(t *testing.T, root, stdin string, args ...string) (code int, stdout string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = cli.Main(t.Context(), cli.Env{
		Args: append([]string{"--root", root}, args...), Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &complaints,
	})
	t.Logf("chat %q: %d\n%s%s", args, code, &out, &complaints)
	return code, out.String()
}

// Ensures that the commands of the skill do what it says, as it prints them, from
// a waiting thread to an answered one, and that its exit codes are the program's.
func TestSkill_CommandsWork(t *testing.T) {
	t.Parallel()
	_, body := parts(t)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(body, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of commands, want 3", len(blocks))
	}
	root := t.TempDir()
	store := storage.Open(storage.Options{
		Root: root, Space: "newos4", Bounds: storage.Bounds{Threads: 500, Page: 50, Retention: chat.Retention{Messages: 200, MaxAge: time.Hour}},
	})
	t.Cleanup(func() { _ = store.Close() })
	asked, err := store.Append(t.Context(), "0123456789abcdef", storage.Post{Author: chat.Operator, Text: "When is it open?", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("THREAD", string(asked.Thread), "MSG-ID", asked.Message.ID)
	command := func(block int) (args []string, stdin string) {
		line, rest, _ := strings.Cut(words.Replace(strings.ReplaceAll(strings.TrimSpace(blocks[block][1]), "\n   ", "\n")), "\n")
		line, mark, heredoc := strings.Cut(line, " <<")
		if heredoc {
			stdin = strings.TrimSuffix(rest, strings.Trim(mark, "'"))
		}
		return strings.Fields(line)[1:], stdin
	}

	args, _ := command(0)
	code, out := run(t, root, "", args...)
	var inbox struct{ Threads []struct{ Thread string } }
	if err := json.Unmarshal([]byte(out), &inbox); err != nil || code != 0 || len(inbox.Threads) != 1 || inbox.Threads[0].Thread != string(asked.Thread) {
		t.Errorf("the inbox: %d %v %+v", code, err, inbox)
	}
	args, _ = command(1)
	if code, out := run(t, root, "", args...); code != 0 || !strings.Contains(out, asked.Message.ID) {
		t.Errorf("the thread: %d", code)
	}
	args, stdin := command(2)
	if code, _ := run(t, root, stdin, args...); code != 0 {
		t.Errorf("the answer: %d", code)
	}
	if code, _ := run(t, root, stdin, args...); code != 4 {
		t.Errorf("the answer once more: %d, want 4", code)
	}
	thread, err := store.Thread(asked.Thread)
	if err != nil {
		t.Fatal(err)
	}
	if last, _ := thread.Last(); thread.Len() != 2 || last.Author != chat.Hermes || last.Text != "The observatory is open from nine until midnight." {
		t.Errorf("the thread ends with %+v", last)
	}
	if code, _ := run(t, root, "", "poll", "--wait", "1ms", "--json"); code != 6 {
		t.Errorf("an empty inbox: %d, want 6", code)
	}
}

// Ensures that the length which the skill names is the default limit.
func TestSkill_NamesTheLimit(t *testing.T) {
	t.Parallel()
	_, body := parts(t)
	if want := "at most " + config.Default("limits.text") + "\n   characters"; !strings.Contains(body, want) {
		t.Errorf("lacks %q", want)
	}
}

// Ensures that the authors which the skill explains are those of threads.
func TestSkill_NamesTheAuthors(t *testing.T) {
	t.Parallel()
	_, body := parts(t)
	_, rest, _ := strings.Cut(body, "\nAuthors: ")
	sentence, _, _ := strings.Cut(rest, "\n\n")
	var named []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(sentence, -1) {
		named = append(named, m[1])
	}
	if want := []string{string(chat.Operator), string(chat.Agent), string(chat.Hermes)}; !slices.Equal(named, want) {
		t.Errorf("it explains %q, want %q", named, want)
	}
}
