package tools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/tools"
	"github.com/newos4/relay/pkg/sandbox"
)

// files is a fake of what is looked at. It records how.
type files struct {
	looked []string
	err    error
	text   string
}

func (f *files) List(_ context.Context, dir string) (sandbox.Listing, error) {
	f.looked = append(f.looked, "list "+dir)
	return sandbox.Listing{Entries: []sandbox.Entry{{Path: "docs", Dir: true}}}, f.err
}

func (f *files) Read(_ context.Context, path string, first, last int) (sandbox.Excerpt, error) {
	f.looked = append(f.looked, fmt.Sprintf("read %s %d-%d", path, first, last))
	return sandbox.Excerpt{Path: path, FirstLine: 1, LastLine: 1, TotalLines: 1, Text: f.text}, f.err
}

func (f *files) Search(_ context.Context, q sandbox.Query) (sandbox.Matches, error) {
	f.looked = append(f.looked, fmt.Sprintf("search %+v", q))
	return sandbox.Matches{Matches: []sandbox.Match{{Path: "docs/a.md", Line: 3, Text: "found"}}, Files: 2}, f.err
}

// plenty is more than a test uses.
func plenty() tools.Limits { return tools.Limits{Calls: 100, Parallel: 8, Bytes: 1 << 20} }

// text returns arguments as the protocol has them: the text of JSON in a string.
func text(t testing.TB, arguments string) jsontext.Value {
	t.Helper()
	quoted, err := jsontext.AppendQuote(nil, arguments)
	if err != nil {
		t.Fatal(err)
	}
	return quoted
}

// one makes a single call.
func one(t testing.TB, run *tools.Run, name string, arguments jsontext.Value) tools.Result {
	t.Helper()
	results, err := run.Round(t.Context(), []tools.Call{{Name: name, Arguments: arguments}})
	if err != nil || len(results) != 1 {
		t.Fatalf("%d results of one call, %v", len(results), err)
	}
	return results[0]
}

// errorOf returns the error in a document, or "".
func errorOf(t testing.TB, document jsontext.Value) string {
	t.Helper()
	var told struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(document, &told); err != nil {
		t.Fatalf("not JSON: %v: %s", err, document)
	}
	return told.Error
}

// Ensures that the three tools look as they are told, whichever way a server
// writes the arguments, and repeat them in one form.
func TestRound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tool      string
		arguments jsontext.Value
		looked    string
		repeated  string
		document  string
	}{
		"list": {
			tools.ListFiles, text(t, `{"path":"docs"}`), "list docs",
			`{"path":"docs"}`, `{"entries":[{"path":"docs","dir":true}]}`,
		},
		"list nothing named": {
			tools.ListFiles, text(t, `{}`), "list ", `{}`, `{"entries":[{"path":"docs","dir":true}]}`,
		},
		"no arguments":   {tools.ListFiles, nil, "list ", `{}`, `{"entries":[{"path":"docs","dir":true}]}`},
		"null":           {tools.ListFiles, jsontext.Value("null"), "list ", `{}`, `{"entries":[{"path":"docs","dir":true}]}`},
		"empty text":     {tools.ListFiles, text(t, " "), "list ", `{}`, `{"entries":[{"path":"docs","dir":true}]}`},
		"as an object":   {tools.ListFiles, jsontext.Value(`{"path":"a"}`), "list a", `{"path":"a"}`, `{"entries":[{"path":"docs","dir":true}]}`},
		"encoded twice":  {tools.ListFiles, text(t, `"{\"path\":\"a\"}"`), "list a", `{"path":"a"}`, `{"entries":[{"path":"docs","dir":true}]}`},
		"null for empty": {tools.ListFiles, text(t, `{"path":null}`), "list ", `{}`, `{"entries":[{"path":"docs","dir":true}]}`},
		"read": {
			tools.ReadFile, text(t, ` {"last_line":9, "path":"docs/a.md", "first_line":2} `), "read docs/a.md 2-9",
			`{"path":"docs/a.md","first_line":2,"last_line":9}`,
			`{"path":"docs/a.md","first_line":1,"last_line":1,"total_lines":1,"text":"hello"}`,
		},
		"search": {
			tools.SearchFiles, text(t, `{"pattern":"a+","regexp":true,"path":"docs"}`),
			"search {Pattern:a+ Regexp:true Path:docs}",
			`{"pattern":"a+","regexp":true,"path":"docs"}`,
			`{"matches":[{"path":"docs/a.md","line":3,"text":"found"}],"files":2}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &files{text: "hello"}
			run := tools.NewRun(f, plenty())
			got := one(t, run, test.tool, test.arguments)
			want := tools.Result{
				Name: test.tool, Arguments: jsontext.Value(test.repeated), Document: jsontext.Value(test.document),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{test.looked}, f.looked); diff != "" {
				t.Errorf("looked (-want +got):\n%s", diff)
			}
			if uses := run.Uses(); len(uses) != 1 || uses[0].Outcome != "ok" {
				t.Errorf("uses = %+v", uses)
			}
		})
	}
}

// Ensures that a call which makes no sense looks at nothing, is told so in a
// fixed sentence, and can be repeated to any server
// (openai/openai-agents-js#887, open-webui/open-webui#21984).
func TestRound_BadCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tool      string
		arguments jsontext.Value
		want      string
	}{
		"truncated":        {tools.ReadFile, text(t, `{"path":"a`), "not valid JSON"},
		"two documents":    {tools.ReadFile, text(t, `{"path":"a"}{"path":"b"}`), "not valid JSON"},
		"null text":        {tools.ListFiles, text(t, `null`), "must be a JSON object"},
		"array":            {tools.ReadFile, text(t, `["a"]`), "must be a JSON object"},
		"bare array":       {tools.ReadFile, jsontext.Value(`["a"]`), "must be a JSON object"},
		"number":           {tools.ReadFile, jsontext.Value(`7`), "must be a JSON object"},
		"thrice encoded":   {tools.ListFiles, text(t, `"\"{}\""`), "must be a JSON object"},
		"words":            {tools.ReadFile, text(t, `the file a`), "not valid JSON"},
		"lone surrogate":   {tools.ReadFile, text(t, `{"path":"\ud800"}`), "not valid JSON"},
		"path is a number": {tools.ReadFile, text(t, `{"path":7}`), "path (a string)"},
		"line is text":     {tools.ReadFile, text(t, `{"path":"a","first_line":"1"}`), "whole numbers"},
		"line is a part":   {tools.ReadFile, text(t, `{"path":"a","first_line":1.5}`), "whole numbers"},
		"line is too much": {tools.ReadFile, text(t, `{"path":"a","first_line":99999999999999999999}`), "whole numbers"},
		"line is negative": {tools.ReadFile, text(t, `{"path":"a","last_line":-1}`), "counted from 1"},
		"unknown argument": {tools.ReadFile, text(t, `{"path":"a","mode":"w"}`), "nothing else"},
		"named twice":      {tools.ReadFile, text(t, `{"path":"a","path":"b"}`), "not valid JSON"},
		"other case":       {tools.ReadFile, text(t, `{"Path":"a"}`), "nothing else"},
		"no path":          {tools.ReadFile, text(t, `{}`), "path is missing"},
		"no pattern":       {tools.SearchFiles, text(t, `{"path":"a"}`), "pattern is missing"},
		"regexp is text":   {tools.SearchFiles, text(t, `{"pattern":"a","regexp":"true"}`), "true or false"},
		"huge":             {tools.ReadFile, text(t, `{"path":"`+strings.Repeat("a", 1<<20)+`"}`), "too long"},
		"deep":             {tools.ReadFile, text(t, strings.Repeat("[", 30000)), "not valid JSON"},
		"unknown tool":     {"write_file", text(t, `{"path":"a"}`), "no such tool"},
		"no tool":          {"", nil, "no such tool"},
		"tool of a kind":   {"Read_File", text(t, `{"path":"a"}`), "no such tool"},
		"tool with spaces": {"read_file\n{}", text(t, `{"path":"a"}`), "no such tool"},
		"long tool":        {strings.Repeat("x", 1<<20), nil, "no such tool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &files{}
			run := tools.NewRun(f, plenty())
			got := one(t, run, test.tool, test.arguments)
			if told := errorOf(t, got.Document); !strings.Contains(told, test.want) {
				t.Errorf("told %q, want %q", told, test.want)
			}
			if string(got.Arguments) != "{}" || len(got.Name) > 64 || strings.ContainsAny(got.Name, " \n") {
				t.Errorf("repeated as %s %s", got.Name, got.Arguments)
			}
			if len(f.looked) > 0 {
				t.Errorf("looked at %v", f.looked)
			}
			if use := run.Uses()[0]; use.Outcome == "ok" || len(use.Target) > 1000 {
				t.Errorf("use = %+v", use)
			}
		})
	}
}

// Ensures that the model is told one thing whatever keeps a file from it, and
// nothing of a fault of ours.
func TestRound_FileErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{sandbox.ErrNotReadable, "no such readable file"},
		{fmt.Errorf("opening /etc/shadow: %w", sandbox.ErrNotReadable), "no such readable file"},
		{sandbox.ErrTooLarge, "the file is too large to be read"},
		{sandbox.ErrBinary, "the file is not text"},
		{sandbox.ErrTimeout, "the request took too long"},
		{fmt.Errorf("%w: missing )", sandbox.ErrInvalid), "invalid request: missing )"},
		{sandbox.ErrChild, "the files cannot be looked at just now"},
		{errors.New("open /srv/secret: permission denied"), "the files cannot be looked at just now"},
		{context.Canceled, "the files cannot be looked at just now"},
	} {
		run := tools.NewRun(&files{err: test.err}, plenty())
		got := one(t, run, tools.ReadFile, text(t, `{"path":"a"}`))
		if told := errorOf(t, got.Document); told != test.want {
			t.Errorf("%v: told %q, want %q", test.err, told, test.want)
		}
		want := []autoreply.ToolUse{{Name: tools.ReadFile, Target: "a", Outcome: test.want}}
		if diff := cmp.Diff(want, run.Uses()); diff != "" {
			t.Errorf("%v: uses (-want +got):\n%s", test.err, diff)
		}
	}
	long := fmt.Errorf("%w: %s\x1b[2J", sandbox.ErrInvalid, strings.Repeat("(", 5000))
	got := one(t, tools.NewRun(&files{err: long}, plenty()), tools.ReadFile, text(t, `{"path":"a"}`))
	if told := errorOf(t, got.Document); len(told) > 1000 || strings.Contains(told, "\x1b") {
		t.Errorf("a long error is told as %q", told)
	}
}

// Ensures that a reader whose confinement does not hold is left alone from that
// moment on, and so is one that was closed.
func TestRound_Broken(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{sandbox.ErrNotConfined, sandbox.ErrClosed} {
		f := &files{err: fmt.Errorf("wrapped: %w", broken)}
		run := tools.NewRun(f, plenty())
		call := tools.Call{Name: tools.ListFiles}
		results, err := run.Round(t.Context(), []tools.Call{call, call})
		if !errors.Is(err, broken) || len(results) != 2 || len(f.looked) != 1 || !run.Spent() {
			t.Errorf("%v: %d results after %d looks, error %v", broken, len(results), len(f.looked), err)
		}
	}
}

// Ensures that of fifty calls at once only the allowed ones are made, and every
// one is answered.
func TestRound_Parallel(t *testing.T) {
	t.Parallel()
	f := &files{}
	run := tools.NewRun(f, plenty())
	calls := make([]tools.Call, 50)
	for i := range calls {
		calls[i] = tools.Call{Name: tools.ReadFile, Arguments: text(t, fmt.Sprintf(`{"path":"f%d"}`, i))}
	}
	results, err := run.Round(t.Context(), calls)
	if err != nil || len(results) != 50 || len(f.looked) != 8 {
		t.Fatalf("%d results, %d looks, %v; want 50 and 8", len(results), len(f.looked), err)
	}
	for i, result := range results {
		refused := strings.Contains(errorOf(t, result.Document), "too many calls at once")
		if refused != (i >= 8) {
			t.Errorf("call %d: refused is %v", i, refused)
		}
	}
	if run.Spent() {
		t.Error("one reply with too many calls took all tools")
	}
}

// Ensures that no call is made beyond the budget of calls, and that the run says
// when it is spent.
func TestRun_CallBudget(t *testing.T) {
	t.Parallel()
	f := &files{}
	run := tools.NewRun(f, tools.Limits{Calls: 3, Parallel: 8, Bytes: 1 << 20})
	for i := range 5 {
		if spent := run.Spent(); spent != (i >= 3) {
			t.Errorf("after %d calls Spent is %v", i, spent)
		}
		one(t, run, tools.ListFiles, nil)
	}
	if len(f.looked) != 3 {
		t.Errorf("%d looks, want 3", len(f.looked))
	}
}

// Ensures that no more bytes are shown than the budget has, that a result which
// does not fit is not shown in part, and that the run is spent when hardly
// anything is left.
func TestRun_ByteBudget(t *testing.T) {
	t.Parallel()
	f := &files{text: strings.Repeat("a", 1000)}
	run := tools.NewRun(f, tools.Limits{Calls: 100, Parallel: 8, Bytes: 2500})
	shown := 0
	for i := range 3 {
		got := one(t, run, tools.ReadFile, text(t, fmt.Sprintf(`{"path":"f%d"}`, i)))
		if told := errorOf(t, got.Document); (told != "") != (i == 2) {
			t.Errorf("read %d: told %q", i, told)
		}
		if i < 2 {
			shown += len(got.Document)
		}
	}
	if shown > 2500 || run.Spent() {
		t.Errorf("%d bytes shown, spent is %v", shown, run.Spent())
	}
	f.text = strings.Repeat("a", 200)
	one(t, run, tools.ReadFile, text(t, `{"path":"g"}`))
	if !run.Spent() {
		t.Error("not spent with hardly a byte left")
	}
}

// Ensures that calls without sense, and the same failing call over and over, end
// the tools after a few, while honest failures do not.
func TestRun_Strikes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments func(i int) string
		calls     int // that are made before the run is spent; 0 for no end
	}{
		"broken":       {func(int) string { return `{` }, 3},
		"same failure": {func(int) string { return `{"path":"a"}` }, 4},
		"other paths":  {func(i int) string { return fmt.Sprintf(`{"path":"%d"}`, i) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := tools.NewRun(&files{err: sandbox.ErrNotReadable}, plenty())
			made := 0
			for ; made < 20 && !run.Spent(); made++ {
				one(t, run, tools.ReadFile, text(t, test.arguments(made)))
			}
			if want := test.calls; made != want && (want != 0 || made != 20) {
				t.Errorf("%d calls were made, want %d", made, want)
			}
		})
	}
}

// Ensures that the list of tools is what it always was: three that look, with
// schemas that name every argument and allow no other.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	var names []string
	for _, d := range tools.Definitions() {
		names = append(names, d.Name)
		var schema struct {
			Type       string         `json:"type"`
			Properties jsontext.Value `json:"properties"`
			Required   []string       `json:"required"`
			Additional *bool          `json:"additionalProperties"`
		}
		if err := json.Unmarshal(d.Parameters, &schema, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if schema.Type != "object" || schema.Additional == nil || *schema.Additional || d.Description == "" {
			t.Errorf("%s has the schema %s", d.Name, d.Parameters)
		}
	}
	if diff := cmp.Diff([]string{"list_files", "read_file", "search_files"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// Ensures that whatever a call holds, it is answered by one bounded JSON object
// on one line, and repeated as one that every server can read.
func FuzzRound(f *testing.F) {
	f.Add("read_file", []byte(`"{\"path\":\"a\",\"first_line\":1}"`))
	f.Add("search_files", []byte(`{"pattern":"("}`))
	f.Add("list_files", []byte(`"\"{}\""`))
	f.Add("\xff", []byte("\xff"))
	f.Fuzz(func(t *testing.T, name string, arguments []byte) {
		run := tools.NewRun(&files{text: "x"}, plenty())
		got := one(t, run, name, arguments)
		for _, document := range []jsontext.Value{got.Document, got.Arguments} {
			if !document.IsValid() || document.Kind() != '{' || strings.Contains(string(document), "\n") {
				t.Errorf("%q: not one JSON object on a line", document)
			}
		}
		if len(got.Document) > 300+len(arguments) {
			t.Errorf("%d bytes are told", len(got.Document))
		}
		if got.Name != name && got.Name != "unknown_tool" {
			t.Errorf("%q is repeated as %q", name, got.Name)
		}
	})
}
