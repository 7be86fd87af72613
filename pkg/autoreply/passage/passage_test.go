package passage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/sandbox"
)

const english = `# Relay

Relay keeps one JSON file for each conversation.

## Listening

The daemon listens on 127.0.0.1:8640. Another address is set by
` + "`server.listen`" + ` in the configuration file.

## Retention

Messages are deleted after thirty days, at the latest when a thread
holds five hundred of them.

` + "```sh" + `
chat sweep

# not a heading
chat reset
` + "```" + `
`

const chinese = `# 使用手册

## 监听地址

守护进程默认监听 127.0.0.1:8640，可以在配置文件中修改监听端口。

## 消息保留

消息在三十天之后被删除，会话令牌不会写入日志。
`

func manual() *shelf {
	return &shelf{files: map[string]string{
		"docs/manual.md":      english,
		"docs/手册.md":          chinese,
		"docs/ops/backup.txt": "To make a backup, copy the directory of the threads while nothing is written.\n",
		"etc/notes.txt":       "Nothing of interest.\n",
	}}
}

// Ensures that questions in English and in Chinese find the passage that
// answers them, with its lines.
func TestSearch(t *testing.T) {
	t.Parallel()
	x := newIndex(t, passage.Options{Files: manual()})
	for question, want := range map[string]string{
		"Which address does the daemon listen on?":      "docs/manual.md:5-8",
		"how can I configure another listening address": "docs/manual.md:5-8",
		"When do you delete my messages?":               "docs/manual.md:10-20",
		"backups":                                       "docs/ops/backup.txt:1-1",
		"如何修改监听端口？":                                     "docs/手册.md:1-5",
		"消息什么时候删除":                                      "docs/手册.md:7-9",
		"令牌":                                            "docs/手册.md:7-9",
		"请问 token 会写入日志吗":                               "docs/手册.md:7-9",
		"ｂａｃｋｕｐ":                                        "docs/ops/backup.txt:1-1",
		"BACKUP\" OR NEAR(copy*) -- {body} ^x ":         "docs/ops/backup.txt:1-1",
	} {
		if got := MustSearch(t, x, question); len(got) == 0 || got[0] != want {
			t.Errorf("%q found %q, want %s first", question, got, want)
		}
	}
}

// Ensures that a question about something else finds nothing, rather than
// whatever shares a word with it.
func TestSearch_Nothing(t *testing.T) {
	t.Parallel()
	x := newIndex(t, passage.Options{Files: manual()})
	for _, question := range []string{
		"", "?!", "What is it?", "are you there", "你好", "这个怎么样？", "\x00\"*",
		"Can I have a pizza with mushrooms delivered to another town?", "今天北京的天气怎么样",
		strings.Repeat("unrelated words about cooking ", 200),
	} {
		if got := MustSearch(t, x, question); len(got) > 0 {
			t.Errorf("%q found %q", question, got)
		}
	}
}

// Ensures that passages are cut at headings and between paragraphs, never too
// long, that together they hold every line with words, and that a code block's
// comment is no heading.
func TestSearch_Passages(t *testing.T) {
	t.Parallel()
	paragraph := strings.Repeat("All of this is about gardens and the plants in them.\n", 5)
	long := strings.Repeat("Gardens again.\n", 60)
	files := &shelf{files: map[string]string{
		"a.md":  "# Plants\n\n## Gardens\n\n" + paragraph + "\n" + paragraph + "\n" + paragraph + "\n" + long,
		"b.txt": "# gardens\n\n\n# are not headings here\n",
	}}
	found, err := newIndex(t, passage.Options{Files: files}).Search(t.Context(), "gardens", 100)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b passage.Passage) int {
		return strings.Compare(fmt.Sprintf("%s %04d", a.Path, a.First), fmt.Sprintf("%s %04d", b.Path, b.First))
	})
	next := 1
	for _, p := range found {
		if p.Path == "b.txt" {
			if p.First != 1 || p.Last != 4 {
				t.Errorf("b.txt:%d-%d", p.First, p.Last)
			}
			continue
		}
		lines := strings.Split(files.files["a.md"], "\n")
		if skipped := strings.TrimSpace(strings.Join(lines[next-1:p.First-1], "")); skipped != "" {
			t.Errorf("between the passages: %q", skipped)
		}
		if diff := cmp.Diff(strings.Join(lines[p.First-1:p.Last], "\n"), p.Text); diff != "" {
			t.Error(diff)
		}
		if p.Last-p.First >= 24 || len(p.Text) > 1300 {
			t.Errorf("%d lines, %d bytes", p.Last-p.First+1, len(p.Text))
		}
		next = p.Last + 1
	}
	if next != 4+6*3+60+1 {
		t.Errorf("the last line found is %d", next-1)
	}
}

// Ensures that files are looked at no more often than needed, that a change of
// the listing shows at the next look, and that one of the same size shows when
// the index is old.
func TestSearch_Fresh(t *testing.T) {
	t.Parallel()
	files := manual()
	now := time.Unix(1_700_000_000, 0)
	x := newIndex(t, passage.Options{Files: files, Now: func() time.Time { return now }, CheckEvery: time.Minute, MaxAge: time.Hour})
	expect := func(what, question string, found bool, wantLists, wantReads int) {
		t.Helper()
		listsBefore, readsBefore := files.counts()
		got := MustSearch(t, x, question)
		lists, reads := files.counts()
		if len(got) > 0 != found || lists-listsBefore != wantLists || reads-readsBefore != wantReads {
			t.Errorf("%s: found %q with %d lists and %d reads, want %v, %d, %d",
				what, got, lists-listsBefore, reads-readsBefore, found, wantLists, wantReads)
		}
	}
	expect("first", "backup", true, 4, 4)
	expect("at once", "backup", true, 0, 0)
	expect("no words", "what?", false, 0, 0)
	files.set("docs/new.txt", "Zebras have stripes.\n")
	expect("not checked yet", "zebras", false, 0, 0)
	now = now.Add(time.Minute)
	expect("listing changed", "zebras", true, 4, 5)
	now = now.Add(time.Minute)
	expect("listing the same", "zebras", true, 4, 0)
	files.set("docs/new.txt", "Horses have stripes.\n")
	now = now.Add(time.Minute)
	expect("changed in place", "zebras", true, 4, 0)
	now = now.Add(time.Hour)
	expect("too old", "zebras", false, 4, 5)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	expect("after closing", "horses", true, 4, 5)
}

// Ensures that a file that cannot be read hides no other, and that a failing
// reader is an error and not an empty index.
func TestSearch_Failures(t *testing.T) {
	t.Parallel()
	files := manual()
	files.fail = map[string]error{
		"docs/manual.md": fmt.Errorf("reading: %w", sandbox.ErrTooLarge),
		"docs/手册.md":     sandbox.ErrBinary,
		"etc":            sandbox.ErrNotReadable,
	}
	x := newIndex(t, passage.Options{Files: files})
	if got := MustSearch(t, x, "backup"); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	broken := errors.New("broken")
	for _, at := range []string{"", "docs/ops/backup.txt"} {
		files := manual()
		files.fail = map[string]error{at: broken}
		x := newIndex(t, passage.Options{Files: files})
		if _, err := x.Search(t.Context(), "backup", 1); !errors.Is(err, broken) {
			t.Errorf("with %q broken: %v", at, err)
		}
		files.fail = nil
		if got := MustSearch(t, x, "backup"); len(got) != 1 {
			t.Errorf("found %q after %q was mended", got, at)
		}
	}
}

// Ensures that a call that is given up leaves the index usable.
func TestSearch_Cancelled(t *testing.T) {
	t.Parallel()
	x := newIndex(t, passage.Options{Files: manual()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if _, err := x.Search(ctx, "backup", 1); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if got := MustSearch(t, x, "backup"); len(got) != 1 {
			t.Fatalf("found %q", got)
		}
	}
}

// Ensures that a file is read to its end in as many pieces as it takes, over a
// line that cannot be read, and that the limits hold.
func TestSearch_Bounds(t *testing.T) {
	t.Parallel()
	files := &shelf{step: 2, files: map[string]string{
		"a.txt": "one\ntwo\nthree\n" + strings.Repeat("\xff", 5000) + "\nfive\nsix zebras\n",
		"b.txt": "horses\n",
		"c.txt": "donkeys\n",
	}}
	x := newIndex(t, passage.Options{Files: files, MaxFiles: 2})
	for question, want := range map[string]int{"zebras": 1, "horses": 1, "donkeys": 0} {
		if got := MustSearch(t, x, question); len(got) != want {
			t.Errorf("%q found %q, want %d", question, got, want)
		}
	}
	x = newIndex(t, passage.Options{Files: files, MaxBytes: 15})
	for question, want := range map[string]int{"three": 1, "zebras": 0, "horses": 0} {
		if got := MustSearch(t, x, question); len(got) != want {
			t.Errorf("with little room, %q found %q, want %d", question, got, want)
		}
	}
}

// Ensures that questions may be asked at the same time.
func TestSearch_Concurrent(t *testing.T) {
	t.Parallel()
	x := newIndex(t, passage.Options{Files: manual()})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if found, err := x.Search(t.Context(), "backup", 1); err != nil || len(found) != 1 {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
	group.Wait()
}

// Ensures that no question is an error of the index.
func FuzzSearch(f *testing.F) {
	for _, question := range []string{"how to listen?", `"a" OR b* NEAR(c, 2) {body}: ^x - +`, "监听端口 ー한국어のテスト", "\xff\x00é̂ß①Ⅷ", "a\u0301"} {
		f.Add(question)
	}
	files := &shelf{files: map[string]string{"a.txt": english + chinese}}
	x := newIndex(f, passage.Options{Files: files})
	f.Fuzz(func(t *testing.T, question string) {
		if _, err := x.Search(t.Context(), question, 3); err != nil {
			t.Errorf("Search(%+q): %v", question, err)
		}
	})
}
