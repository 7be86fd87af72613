package untrusted_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/newos4/relay/pkg/untrusted"
)

// Ensures that what can act on a terminal or hide from an eye is spelled out,
// and that ordinary writing in any script is left alone.
func TestVisible(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"plain":               {"hello, world", "hello, world"},
		"lines and tabs":      {"a\n\tb", "a\n\tb"},
		"carriage return":     {"safe\rOK", "safe⟦U+000D⟧OK"},
		"escape":              {"\x1b[2J", "⟦U+001B⟧[2J"},
		"osc 52":              {"\x1b]52;c;ZXZpbA==\x07", "⟦U+001B⟧]52;c;ZXZpbA==⟦U+0007⟧"},
		"c1 csi":              {"\u009b2J", "⟦U+009B⟧2J"},
		"delete":              {"a\x7f", "a⟦U+007F⟧"},
		"bidi override":       {"\u202egnp.exe", "⟦U+202E⟧gnp.exe"},
		"bidi isolate":        {"\u2066x\u2069", "⟦U+2066⟧x⟦U+2069⟧"},
		"tag characters":      {"hi\U000E0072\U000E006D", "hi⟦U+E0072⟧⟦U+E006D⟧"},
		"zero width":          {"a\u200bb\ufeffc", "a⟦U+200B⟧b⟦U+FEFF⟧c"},
		"joiner in ASCII":     {"a\u200db", "a⟦U+200D⟧b"},
		"line separator":      {"a\u2028b", "a⟦U+2028⟧b"},
		"no-break space":      {"a\u00a0b", "a⟦U+00A0⟧b"},
		"hangul filler":       {"a\u3164b", "a⟦U+3164⟧b"},
		"selector binary":     {"a\ufe00\ufe01\U000e0100", "a⟦U+FE00⟧⟦U+FE01⟧⟦U+E0100⟧"},
		"private use":         {"\ue000", "⟦U+E000⟧"},
		"invalid byte":        {"a\xffb", "a⟦0xFF⟧b"},
		"replacement":         {"a\ufffdb", "a\ufffdb"},
		"family":              {"👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"},
		"rainbow":             {"🏳️‍🌈", "🏳️‍🌈"},
		"heart":               {"❤️", "❤️"},
		"keycap":              {"1️⃣", "1️⃣"},
		"skin tone":           {"👍🏽", "👍🏽"},
		"chinese":             {"你好，世界。", "你好，世界。"},
		"persian with joiner": {"می\u200cخواهم", "می\u200cخواهم"},
		"double joiner":       {"é\u200d\u200dé", "é⟦U+200D⟧⟦U+200D⟧é"},
		"combining":           {"e\u0301", "e\u0301"},
		"stacked": {
			"e\u0301\u0302\u0303\u0304\u0305\u20ddx\u0301", "e\u0301\u0302\u0303\u0304⟦U+0305⟧⟦U+20DD⟧x\u0301",
		},
		"stacked behind joiners": {
			"é\u0301\u200d\u0301\u200d\u0301\ufe0f\u0301", "é\u0301\u200d\u0301\u200d\u0301\ufe0f⟦U+0301⟧",
		},
		"hebrew, pointed": {"שָּׁ֖", "שָּׁ֖"},
		"thai":            {"ที่นี่", "ที่นี่"},
		"tamil":           {"ஸ்ரீ", "ஸ்ரீ"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := untrusted.Visible(test.in); got != test.want {
				t.Errorf("Visible(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

// Ensures that a line is one line whatever it holds, and never wider than asked.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"one":            "one",
		"\n\n two\nmore": "two…",
		"0123456789abc":  "012345678…",
		"a\tb":           "a⟦U+0009⟧b",
		"界界界界界界界界界界":     "界界界界界界界界界界",
	} {
		if got := untrusted.FirstLine(in, 10); got != want {
			t.Errorf("FirstLine(%q) = %q, want %q", in, got, want)
		}
		if n := len([]rune(untrusted.FirstLine(in, 10))); n > 10 {
			t.Errorf("FirstLine(%q) has %d code points, want at most 10", in, n)
		}
	}
}

// Ensures that a JSON document shows all it holds, is otherwise left as it was,
// and means the same (boxdot/gurk-rs#384, aaif-goose/goose#3920).
func TestJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"text":"plain 👨‍👩‍👧‍👦 你好"}`: `{"text":"plain 👨‍👩‍👧‍👦 你好"}`,
		"[\"\u009b2J\x7f\"]": `["\u009b2J\u007f"]`,
		"[\"\u202e\u2028\"]": `["\u202e\u2028"]`,
		"[\"hi\U000E0072\"]": `["hi\udb40\udc72"]`,
	} {
		got := untrusted.JSON(in)
		if got != want {
			t.Errorf("JSON(%q) = %q, want %q", in, got, want)
		}
		var before, after any
		if err := errors.Join(json.Unmarshal([]byte(in), &before), json.Unmarshal([]byte(got), &after)); err != nil {
			t.Errorf("JSON(%q): %v", in, err)
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("JSON(%q) means %v, want %v", in, after, before)
		}
	}
}

// Ensures that no input leaves a character that a terminal would act on, nor a
// heap of marks, and that what was made visible stays as it is.
func FuzzVisible(f *testing.F) {
	f.Add("e\u0301\u0302\u0303\u0304\u0305\u200d\ufe0f\u0306")
	f.Add("\x1b[31mred\u202e\U000e0041")
	f.Add("👨‍👩‍👧‍👦\xf0\x28")
	f.Fuzz(func(t *testing.T, text string) {
		shown := untrusted.Visible(text)
		if again := untrusted.Visible(shown); again != shown {
			t.Errorf("Visible(%q) is made into %q", shown, again)
		}
		stacked := 0
		for _, r := range shown {
			if !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
				stacked = 0
			} else if stacked++; stacked > 9 { // marks and a joiner or selector behind each
				t.Errorf("Visible(%q) keeps a heap of marks", text)
			}
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) && r != '\u200c' {
				t.Errorf("Visible(%q) keeps %U", text, r)
			}
		}
		if strings.ContainsAny(untrusted.Line(text), "\n\t") {
			t.Errorf("Line(%q) has more than one line", text)
		}
	})
}
