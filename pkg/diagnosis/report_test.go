package diagnosis

import (
	"errors"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/config"
)

// Ensures that findings are aligned, one a line with the mend below, and that
// nothing they quote can act on a terminal or begin a line of its own.
func TestPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, f := range []Finding{
		{Check: "user", Level: OK, What: "checked"},
		{Check: "space", Level: Note, What: "a", Why: "b"},
		{Check: "listen", Level: Warning, What: "a\nok", Mend: "do \x1b[2J"},
		{Check: "configuration", Level: Failure, What: "a", Why: "b", Mend: "c"},
	} {
		Print(&out, f)
	}
	const want = `ok    user           checked
note  space          a; b
warn  listen         a⟦U+000A⟧ok
                     mend: do ⟦U+001B⟧[2J
FAIL  configuration  a; b
                     mend: c
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Ensures the form of the report in JSON, which scripts rely on.
func TestPrintJSON(t *testing.T) {
	t.Parallel()
	var r Report
	r.add(Finding{Check: "user", Level: OK, What: "checked"})
	r.add(Finding{Check: "listen", Level: Failure, What: "taken \u202e", Why: "b", Mend: "c"})
	r.add(Finding{Check: "watch", Level: Warning, What: "w"})
	r.add(Finding{Check: "disk", Level: Note, What: "n"})
	var out strings.Builder
	if err := PrintJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	const want = `{"failures":1,"warnings":1,"notes":1,"findings":[` +
		`{"check":"user","level":"ok","what":"checked"},` +
		`{"check":"listen","level":"failure","what":"taken \u202e","why":"b","mend":"c"},` +
		`{"check":"watch","level":"warning","what":"w"},{"check":"disk","level":"note","what":"n"}]}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	if got := r.Summary(); got != "1 failure, 1 warning, 1 note" {
		t.Errorf("summary = %q", got)
	}
}

// Ensures that a configuration that cannot be loaded has a finding for each
// problem, and the mend once.
func TestUnusable(t *testing.T) {
	t.Parallel()
	r := Unusable(&config.Error{Problems: []string{"a: bad", "b: bad"}}, "read", func(Finding) {})
	if r.Failures != 2 || r.Findings[0].What != "a: bad" || r.Findings[0].Mend != "" || r.Findings[1].Mend != "read" {
		t.Errorf("report = %+v", r)
	}
	if r := Unusable(errors.New("configuration: odd"), "", func(Finding) {}); r.Failures != 1 || r.Findings[0].What != "odd" {
		t.Errorf("report = %+v", r)
	}
}

// Ensures that a path in a command is one word for a shell.
func TestQuoted(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"/var/lib": "/var/lib", "": "''", "/a b": "'/a b'", "it's; rm": `'it'\''s; rm'`, "-x": "-x"} {
		if got := quoted(word); got != want {
			t.Errorf("quoted(%q) = %s, want %s", word, got, want)
		}
	}
}
