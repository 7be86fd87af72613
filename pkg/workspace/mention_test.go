package workspace_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/workspace"
)

// roster returns entries whose ids are the names themselves.
func roster(names ...string) []workspace.RosterEntry {
	entries := make([]workspace.RosterEntry, len(names))
	for i, name := range names {
		entries[i] = workspace.RosterEntry{ID: workspace.AgentID(name), Name: name}
	}
	return entries
}

// Ensure that mentions are found as section 5.3 says, and scenarios 36 to 38.
func TestParseMentions(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"Chinese on both sides (scenario 37)", "请@瑶儿继续", "瑶儿"},
		{"full-width brackets (scenario 37)", "（@竹儿）", "竹儿"},
		{"strong, the longest name (scenario 37)", "**@瑶儿助手**", "瑶儿助手"},
		{"a longer Latin word (scenario 37)", "@Anna", ""},
		{"a mail address (scenario 37)", "mail@Ann.com", ""},
		{"a path of a URL (scenario 37)", "https://x.example/@Ann", ""},
		{"after a URL and a full-width comma (scenario 38)", "见 https://x.example/a，请@竹儿", "竹儿"},
		{"a URL up to white space", "https://x.example/a,@竹儿 @Ann", "Ann"},
		{"an upper-case URL", "HTTPS://x.example/@Ann。@竹儿", "竹儿"},
		{"order of appearance, once", "@竹儿 @Ann @竹儿", "竹儿 Ann"},
		{"any case", "@ANN @ann", "Ann"},
		{"the next shorter name", "@Ann Lee2", "Ann"},
		{"the longest name with a blank", "@ann lee, hello", "Ann Lee"},
		{"the longest name that ends a word", "@Ann Leeway", "Ann"},
		{"broadcast", "@all 开会", "瑶儿 瑶儿助手 竹儿 Ann Ann Lee"},
		{"broadcast in Chinese within words", "请@所有人看", "瑶儿 瑶儿助手 竹儿 Ann Ann Lee"},
		{"broadcast in capitals", "@ALL!", "瑶儿 瑶儿助手 竹儿 Ann Ann Lee"},
		{"broadcast after a mention", "@竹儿 @All", "竹儿 瑶儿 瑶儿助手 Ann Ann Lee"},
		{"no broadcast in a longer word", "@allies @all_ @all1", ""},
		{"full-width at sign", "＠竹儿", ""},
		{"unknown name", "@小明", ""},
		{"nothing", "", ""},
		{"a lone sign at the end", "好@", ""},
		{"a doubled sign", "@@竹儿", ""},
		{"after a letter", "x@竹儿", ""},
		{"after a digit", "1@竹儿", ""},
		{"after each joining sign", "_@竹儿 .@竹儿 %@竹儿 +@竹儿 /@竹儿 -@竹儿", ""},
		{"before a Latin letter", "@竹儿a", ""},
		{"before an underscore", "@竹儿_", ""},
		{"before a full stop", "@Ann.", "Ann"},
		{"Chinese mention, full stop, more text", "请@竹儿.继续", "竹儿"},
		{"after a mail address", "a.b+c@x.example @Ann", "Ann"},
		{"decomposed name", "@Ame\u0301lie", ""},

		{"inline code (scenario 36)", "`@竹儿`", ""},
		{"inline code with a back-tick", "``a`@竹儿``", ""},
		{"an open back-tick", "`@竹儿", "竹儿"},
		{"back-ticks of two paragraphs", "a ` b\n\n@竹儿 c ` d", "竹儿"},
		{"inline code over one line break", "`a\n@竹儿`", ""},
		{"after inline code", "`code`@竹儿", "竹儿"},
		{"fence (scenario 36)", "```\n@竹儿\n```\n@Ann", "Ann"},
		{"fence with a language", "```go\n@竹儿\n```", ""},
		{"open fence to the end", "```\n@竹儿\n\n@Ann", ""},
		{"longer fence around a shorter", "````\n```\n@竹儿\n```\n````\n@Ann", "Ann"},
		{"tildes", "~~~\n@竹儿\n~~~\n@Ann", "Ann"},
		{"open tildes", "~~~ sh\n@竹儿", ""},
		{"tildes as punctuation", "好的~~~@竹儿", "竹儿"},
		{"fence in a quotation", "> ```\n> @竹儿\n", ""},

		{"quotation line (scenario 36)", "> @竹儿\n@Ann", "Ann"},
		{"indented quotation line", " \t　> @竹儿", ""},
		{"a sign within a line", "a > @竹儿", "竹儿"},
		{"quotation after Windows line ends", "@Ann\r\n> @竹儿\r\n", "Ann"},
		{"quoted message (scenario 36)", "<quoted_message id=\"1\">\n@竹儿\n</quoted_message>@Ann", "Ann"},
		{"quoted message in capitals", "<QUOTED_MESSAGE>@竹儿</Quoted_Message>", ""},
		{"nested quoted messages", "<quoted_message><quoted_message>a</quoted_message>@竹儿</quoted_message> @Ann", "Ann"},
		{"open quoted message", "<quoted_message>@竹儿", "竹儿"},
		{"another tag", "<quoted_messages>@竹儿</quoted_messages>", "竹儿"},
	}
	names := roster("瑶儿", "瑶儿助手", "竹儿", "Ann", "Ann Lee")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, found := range workspace.ParseMentions(tt.text, names) {
				got = append(got, string(found))
			}
			if joined := strings.Join(got, " "); joined != tt.want {
				t.Errorf("ParseMentions(%q) = %q, want %q", tt.text, joined, tt.want)
			}
		})
	}
}

// Ensure that a name is found in either Unicode form (section 5.2).
func TestMentionsIgnoreUnicodeForm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"@Am\u00e9lie", "@Ame\u0301lie", "@AM\u00c9LIE"} {
		if got := workspace.ParseMentions(text, roster("Amélie")); len(got) != 1 {
			t.Errorf("%q mentions %v", text, got)
		}
	}
}

// Ensure that text made to be slow to read takes time that grows with its
// length alone: eight times the text may take about eight times as long, but not
// sixty-four times. Only times that anybody would notice count.
func TestMentionsOfHostileText(t *testing.T) {
	t.Parallel()
	const noticeable = 100 * time.Millisecond
	for _, unit := range []string{"`", "`a`", "``a` ", "@", "@a", "<quoted_message>", "http://", "~~~", "> \n", "a@", "\n\n`", "\n\t", "a.a@a.a."} {
		short := fastest(strings.Repeat(unit, workspace.MaxContent/len(unit)/8))
		long := fastest(strings.Repeat(unit, workspace.MaxContent/len(unit)))
		if long > noticeable && long > 32*short {
			t.Errorf("%q repeated: %v, and eight times as often: %v", unit, short, long)
		}
	}
}

// fastest returns the shortest of three times that this thread worked on reading
// the text, whatever else the machine does meanwhile.
func fastest(text string) time.Duration {
	names := roster("Ann", "竹儿")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := time.Duration(math.MaxInt64)
	for range 3 {
		start := worked()
		workspace.ParseMentions(text+"\n\n@Ann", names)
		least = min(least, worked()-start)
	}
	return least
}

// worked returns for how long the processor has worked for this thread.
func worked() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		panic(err)
	}
	return time.Duration(at.Nano())
}

// FuzzParseMentions holds for any text: who is mentioned is in the roster, once;
// quoting the text or putting it into a fence mentions nobody; and a mention in
// a paragraph of its own before it is found first.
func FuzzParseMentions(f *testing.F) {
	for _, seed := range []string{"请@瑶儿继续 @all", "`@Ann` @竹儿", "> @Ann\n@Ann", "<quoted_message>@Ann</quoted_message>", "~~~\n@Ann", "a@b.cc @Ann_"} {
		f.Add(seed)
	}
	names := roster("瑶儿", "瑶儿助手", "竹儿", "Ann", "K")
	f.Fuzz(func(t *testing.T, text string) {
		found := workspace.ParseMentions(text, names)
		seen := make(map[workspace.AgentID]bool)
		for _, mentioned := range found {
			known := slices.ContainsFunc(names, func(e workspace.RosterEntry) bool { return e.ID == mentioned })
			if !known || seen[mentioned] {
				t.Fatalf("%q mentions %v", text, found)
			}
			seen[mentioned] = true
		}
		if diff := cmp.Diff(found, workspace.ParseMentions(text, names)); diff != "" {
			t.Fatalf("%q is read differently the second time:\n%s", text, diff)
		}
		if !strings.ContainsAny(text, "`~<") {
			quoted := "> " + strings.ReplaceAll(text, "\n", "\n> ")
			if got := workspace.ParseMentions(quoted, names); len(got) > 0 {
				t.Fatalf("quoted %q mentions %v", quoted, got)
			}
			fenced := "```\n" + text + "\n```"
			if got := workspace.ParseMentions(fenced, names); len(got) > 0 {
				t.Fatalf("fenced %q mentions %v", fenced, got)
			}
			if got := workspace.ParseMentions("@竹儿\n\n"+text, names); len(got) == 0 || got[0] != "竹儿" {
				t.Fatalf("a mention before %q is lost: %v", text, got)
			}
		}
	})
}

// Ensure that explicit ids come first, that each counts once, and that an id of
// a non-member is an error where a name is plain text (section 5.3, scenario 56).
func TestMentionsOfUserMessage(t *testing.T) {
	t.Parallel()
	agents := team(3)
	c := mustGroup(t, team(2))
	b := id[workspace.AgentID](2)
	got, err := workspace.Mentions(c, agents, []workspace.AgentID{b}, "@A @B @C")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]workspace.AgentID{b, id[workspace.AgentID](1)}, got); diff != "" {
		t.Errorf("mentions (-want +got):\n%s", diff)
	}
	_, err = workspace.Mentions(c, agents, []workspace.AgentID{id[workspace.AgentID](3)}, "")
	wantCode(t, err, workspace.CodeInvalidMentions)
}

// Ensure that mentions have no effect in a direct chat (section 5.4).
func TestMentionsInDirectChat(t *testing.T) {
	t.Parallel()
	a, direct, err := workspace.CreateAgent(newAgent(func(*workspace.NewAgent) {}), id[workspace.AgentID](1), "c", now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := workspace.Mentions(direct, map[workspace.AgentID]workspace.Agent{a.ID: a}, []workspace.AgentID{a.ID}, "@竹儿 @all")
	if err != nil || len(got) != 0 {
		t.Errorf("mentions %v, error %v", got, err)
	}
}

func BenchmarkParseMentions(b *testing.B) {
	names := roster("瑶儿", "瑶儿助手", "竹儿", "Ann")
	for _, size := range []int{100, 60_000} {
		text := strings.Repeat("请@瑶儿看 `code` 和 https://x.example/a，再说。\n", size/60+1)
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			for b.Loop() {
				workspace.ParseMentions(text, names)
			}
		})
	}
}
