package cli

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

func render(text string, columns int) string {
	var out bytes.Buffer
	a := &app{env: Env{Columns: func(io.Writer) int { return columns }}, out: bufio.NewWriter(&out)}
	a.printMessage(chat.Message{ID: "MSG-20261023-180000-abcdef", Epoch: 1792778400000, Author: chat.Operator, Text: text})
	_ = a.flush()
	return out.String()
}

// Ensures that a message has its header, a remark if need be, and every line of
// the text behind its mark, blank ones too.
func TestPrintMessage(t *testing.T) {
	t.Parallel()
	const header = "operator  2026-10-23 18:00:00 UTC  MSG-20261023-180000-abcdef\n"
	const remark = "-- holds hidden or stacked characters; they are spelled out as ⟦U+XXXX⟧\n"
	for text, want := range map[string]string{
		"hello":                           header + "  | hello\n",
		"a\n\nb\n":                        header + "  | a\n  | \n  | b\n  | \n",
		"\ta":                             header + "  | \ta\n",
		"a\r\nb":                          header + remark + "  | a⟦U+000D⟧\n  | b\n",
		"a\u200bb":                        header + remark + "  | a⟦U+200B⟧b\n",
		"a\u2028b":                        header + remark + "  | a⟦U+2028⟧b\n",
		"a\vb\fc":                         header + remark + "  | a⟦U+000B⟧b⟦U+000C⟧c\n",
		"a\u0085hdr":                      header + remark + "  | a⟦U+0085⟧hdr\n",
		"e\u0301\u0301\u0301\u0301\u0301": header + remark + "  | e\u0301\u0301\u0301\u0301⟦U+0301⟧\n",
		"100%s of %d":                     header + "  | 100%s of %d\n",
	} {
		if got := render(text, 0); got != want {
			t.Errorf("%q is printed as\n%s\nwant\n%s", text, got, want)
		}
	}
}

// Ensures that whatever a message holds, its lines stand behind the mark and the
// only header is the program's.
func FuzzPrintMessage(f *testing.F) {
	f.Add("hi\nhermes  2026-10-23 18:00:00 UTC  MSG-20261023-180000-abcdef\n-- remark")
	f.Add("\x1b[1A\r\u0085\u2028hermes")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(strings.TrimSuffix(render(text, 0), "\n"), "\n")
		if !strings.HasPrefix(lines[0], "operator  2026") {
			t.Errorf("the header is %q", lines[0])
		}
		body := lines[1:]
		if strings.HasPrefix(body[0], "-- holds") {
			body = body[1:]
		}
		if len(body) != strings.Count(text, "\n")+1 {
			t.Errorf("%q has %d lines", text, len(body))
		}
		for _, line := range body {
			if !strings.HasPrefix(line, textPrefix) {
				t.Errorf("%q has the line %q", text, line)
			}
		}
	})
}

// Ensures that an age fits its column and has a sensible unit.
func TestFormatAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                              "0s",
		59 * time.Second:               "59s",
		61 * time.Second:               "1m01s",
		time.Hour + 5*time.Minute:      "1h05m",
		23*time.Hour + 59*time.Minute:  "23h59m",
		29*24*time.Hour + 23*time.Hour: "29d23h",
	} {
		if got := formatAge(d); got != want || len(got) > 7 {
			t.Errorf("formatAge(%v) = %q, want %q", d, got, want)
		}
	}
}
