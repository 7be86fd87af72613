package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/untrusted"
)

// Ensures that lines are broken by the cells that a terminal draws, between what
// belongs together, and not at all where there is no terminal.
func TestFold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		line    string
		columns int
		want    string
	}{
		"no terminal":         {"  | abcdefgh", 0, "  | abcdefgh"},
		"narrow enough":       {"  | abcdef", 10, "  | abcdef"},
		"too wide":            {"  | abcdefghijklm", 10, "  | abcdef\n  | ghijkl\n  | m"},
		"east asian wide":     {"  | 你好世界", 10, "  | 你好世\n  | 界"},
		"fullwidth latin":     {"  | ａｂｃｄ", 10, "  | ａｂｃ\n  | ｄ"},
		"half a cell is left": {"  | a你好世", 10, "  | a你好\n  | 世"},
		"combining marks":     {"  | e\u0301\u0302bcdef\u0301g", 10, "  | e\u0301\u0302bcdef\u0301\n  | g"},
		"emoji":               {"  | 😀😀😀😀", 10, "  | 😀😀😀\n  | 😀"},
		"text emoji":          {"  | ❤❤❤❤", 10, "  | ❤❤❤\n  | ❤"},
		"keycap":              {"  | abcde1\ufe0f\u20e3", 10, "  | abcde\n  | 1\ufe0f\u20e3"},
		"skin tone":           {"  | abc👍🏽", 10, "  | abc\n  | 👍🏽"},
		"flags":               {"  | 🇩🇪🇫🇷", 10, "  | 🇩🇪\n  | 🇫🇷"},
		"newly wide":          {"  | \u4dc0\u4dc0\u4dc0\u4dc0", 10, "  | \u4dc0\u4dc0\u4dc0\n  | \u4dc0"},
		"three-em dashes":     {"  | ⸻⸻", 10, "  | ⸻\n  | ⸻"},
		"family fits":         {"  | abcd👨‍👩‍👧", 10, "  | abcd\n  | 👨‍👩‍👧"},
		"family does not":     {"  | 👨‍👩‍👧‍👦", 10, "  | 👨‍👩‍👧‍\n  | 👦"},
		"tab":                 {"  | \ta\tb", 18, "  |     a       b"},
		"tab at the end":      {"  | abcdef\tb", 12, "  | abcdef  \n  | b"},
		"narrower than marks": {"  | ab", 3, "  |\n  |  \n  | a\n  | b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fold(test.line, textPrefix, test.columns); got != test.want {
				t.Errorf("fold(%q, %d) = %q, want %q", test.line, test.columns, got, test.want)
			}
		})
	}
}

// Ensures that whatever is folded, each line has the mark, none is wider than the
// terminal, and nothing is lost.
func FuzzFold(f *testing.F) {
	f.Add("hello, world 你好 👨‍👩‍👧‍👦 \u0301\u0301\t|", 12)
	f.Add("🇩🇪🇫🇷❤️1️⃣\u1100\u1161\u11a8", 9)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		const widest = len(textPrefix) + 4
		columns = widest + (columns&0xff+0xff)%0xff
		line := strings.ReplaceAll(untrusted.Line(text), "\t", " ")
		folded := fold(textPrefix+line, textPrefix, columns)
		var joined strings.Builder
		for part := range strings.SplitSeq(folded, "\n") {
			rest, ok := strings.CutPrefix(part, textPrefix)
			if !ok {
				t.Errorf("%q in %d columns has the line %q", text, columns, part)
			}
			if cells := uniseg.StringWidth(part); cells > columns {
				t.Errorf("%q in %d columns has %q of %d cells", text, columns, part, cells)
			}
			joined.WriteString(rest)
		}
		if joined.String() != line {
			t.Errorf("%q in %d columns becomes %q", line, columns, joined.String())
		}
	})
}

// Ensures that the width is that of the terminal as it is now, a usual one if the
// terminal does not say, and that other writers have none.
func TestTerminalColumns(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if a, b := terminalColumns(new(bytes.Buffer)), terminalColumns(file); a != 0 || b != 0 {
		t.Errorf("a buffer has %d columns, a file %d, want none", a, b)
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	for _, test := range []struct{ columns, want int }{{0, 80}, {132, 132}, {40, 40}} {
		size := &unix.Winsize{Row: 24, Col: uint16(test.columns)}
		if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, size); err != nil {
			t.Fatal(err)
		}
		if got := terminalColumns(terminal); got != test.want {
			t.Errorf("with %d columns it has %d, want %d", test.columns, got, test.want)
		}
	}
}
