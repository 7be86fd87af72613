package diagnosis

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/untrusted"
)

// Level says how bad a finding is.
type Level string

// The levels of findings.
const (
	// OK: as it should be.
	OK Level = "ok"
	// Note: nothing is wrong, or this user cannot tell.
	Note Level = "note"
	// Warning: relayd works, with less than it could, or not for long.
	Warning Level = "warning"
	// Failure: something does not work, or is open to whom it should not be.
	Failure Level = "failure"
)

// Finding is what one check has found.
type Finding struct {
	// Check names the check.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// What is the finding, Why what follows from it or what it comes from, and
	// Mend what to do, a command where that is possible. The last two may be empty.
	What string `json:"what"`
	Why  string `json:"why,omitzero"`
	Mend string `json:"mend,omitzero"`
}

func ok(format string, args ...any) Finding {
	return Finding{Level: OK, What: fmt.Sprintf(format, args...)}
}

func note(what, why, mend string) Finding {
	return Finding{Level: Note, What: what, Why: why, Mend: mend}
}

func warning(what, why, mend string) Finding {
	return Finding{Level: Warning, What: what, Why: why, Mend: mend}
}

func failure(what, why, mend string) Finding {
	return Finding{Level: Failure, What: what, Why: why, Mend: mend}
}

// orOK returns the findings, or that all is well where there are none.
func orOK(found []Finding, format string, args ...any) []Finding {
	if len(found) > 0 {
		return found
	}
	return []Finding{ok(format, args...)}
}

// Report is everything that was found.
type Report struct {
	Failures int       `json:"failures"`
	Warnings int       `json:"warnings"`
	Notes    int       `json:"notes"`
	Findings []Finding `json:"findings"`
}

func (r *Report) add(f Finding) {
	r.Findings = append(r.Findings, f)
	switch f.Level {
	case Failure:
		r.Failures++
	case Warning:
		r.Warnings++
	case Note:
		r.Notes++
	}
}

// Summary says on one line how it stands.
func (r Report) Summary() string {
	var parts []string
	for _, part := range []struct {
		count int
		name  string
	}{{r.Failures, "failure"}, {r.Warnings, "warning"}, {r.Notes, "note"}} {
		if part.count > 0 {
			parts = append(parts, counted(part.count, part.name))
		}
	}
	if len(parts) == 0 {
		return "all is well"
	}
	return strings.Join(parts, ", ")
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Print writes a finding for people: a line, and one below it with the mend. What
// it quotes of the host is made safe to look at.
func Print(w io.Writer, f Finding) {
	what := f.What
	if f.Why != "" {
		what += "; " + f.Why
	}
	fmt.Fprintf(w, "%-4s  %-*s  %s\n", label(f.Level), nameWidth(), f.Check, untrusted.Line(what))
	if f.Mend != "" {
		fmt.Fprintf(w, "%*s  mend: %s\n", 6+nameWidth(), "", untrusted.Line(f.Mend))
	}
}

// label is a level as it stands at the begin of a line.
func label(l Level) string {
	switch l {
	case Warning:
		return "warn"
	case Failure:
		return "FAIL"
	}
	return string(l)
}

// nameWidth is the length of the longest name of a check.
func nameWidth() int {
	width := 0
	for _, c := range checks() {
		width = max(width, len(c.name))
	}
	return width
}

// PrintJSON writes the report as one line of JSON.
func PrintJSON(w io.Writer, r Report) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if _, err := fmt.Fprintln(w, untrusted.JSON(string(data))); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// quoted returns a word as a shell reads it back.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
