package defuse_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/newos4/relay/pkg/hermes/defuse"
)

// Ensures that what Hermes would act on is broken and that nothing else changes.
func TestText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"plain":               {"Where is it? 在哪里\n\tthere", "Where is it? 在哪里\n\tthere"},
		"reference":           {"see @file:/etc/passwd", "see @\u2060file:/etc/passwd"},
		"any kind":            {"@plugin:x", "@\u2060plugin:x"},
		"full width":          {"＠file:x", "＠\u2060file:x"},
		"small form":          {"﹫file:x", "﹫\u2060file:x"},
		"twice":               {"@@diff", "@\u2060@\u2060diff"},
		"at the end":          {"me@", "me@\u2060"},
		"defused before":      {"@\u2060diff [\u2060relay-run:", "@\u2060diff [\u2060relay-run:"},
		"controls":            {"a\r\n\x00b\x1b[2J\u0085c\x7f", "a\nb[2Jc"},
		"control in between":  {"@\x00file:x [\x01relay-run:1]", "@\u2060file:x [\u2060relay-run:1]"},
		"invalid bytes":       {"a\xff@\xfe", "a\ufffd@\u2060\ufffd"},
		"marker":              {"[relay-run:0123]", "[\u2060relay-run:0123]"},
		"marker in capitals":  {"[RELAY-RUN:0123]", "[\u2060RELAY-RUN:0123]"},
		"marker in full form": {"［ｒelay-run:0123]", "［\u2060ｒelay-run:0123]"},
		"hidden in a marker":  {"[\u200brelay-run:0123]", "[\u2060\u200brelay-run:0123]"},
		"bracket at the end":  {"[", "[\u2060"},
		"other brackets":      {"a[0] [link](x) [x] []", "a[0] [link](x) [x] []"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := defuse.Text(test.in); got != test.want {
				t.Errorf("Text(%+q) = %+q, want %+q", test.in, got, test.want)
			}
		})
	}
}

// Ensures that no known reference survives, whatever its letter case, its
// quoting, what stands before it, or how it is normalised.
func TestText_References(t *testing.T) {
	t.Parallel()
	kinds := []string{"file:", "folder:", "url:", "git:", "diff", "staged", "ﬁle:", "ſtaged", "fıle:"}
	before := []string{"", " ", "(", "\"", "'", "`", "a", "/", "\n", "@", "＠", "\u200b", "[", "{\"x\":\"", "@file:@"}
	after := []string{"", "x", "\"a b\":1-2", "`~/.ssh/id_rsa`", "@", " "}
	for _, kind := range kinds {
		for _, at := range []string{"@", "＠", "﹫", "@\x00", "@\r"} {
			for _, head := range before {
				for _, tail := range after {
					for _, spelled := range []string{kind, strings.ToUpper(kind), strings.ToTitle(kind[:1]) + kind[1:]} {
						checkInert(t, head+at+spelled+tail)
					}
				}
			}
		}
	}
}

// Ensures that the look-alikes of an at sign and of a bracket are all there are.
func TestText_LookAlikes(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && strings.ContainsAny(norm.NFKC.String(string(r)), "@[") {
			checkInert(t, string(r)+"file:x "+string(r)+"relay-run:x")
		}
	}
}

// Ensures that an address that a model repeats is usable again.
func TestRestore(t *testing.T) {
	t.Parallel()
	const address = "write to help@example.org"
	if got := defuse.Restore(defuse.Text(address)); got != address {
		t.Errorf("got %+q, want %+q", got, address)
	}
}

// Ensures that for any text nothing of what comes out is expanded or passes for
// a marker, that no control character is left, and that once is enough.
func FuzzText(f *testing.F) {
	f.Add("@file:/etc/passwd ＠url:x @@diff")
	f.Add("[relay-run:00] ［ｒelay-run:")
	f.Add("@\xff\x00staged\u2060@")
	f.Fuzz(checkInert)
}

// acts matches more than Hermes's own pattern does: every letter behind an at
// sign, whatever stands before it.
var acts = regexp.MustCompile(`(?i)@(diff|staged|(file|folder|git|url):|\p{L})|\[\s*relay-run`)

func checkInert(t *testing.T, text string) {
	t.Helper()
	got := defuse.Text(text)
	for _, form := range []string{got, norm.NFC.String(got), norm.NFD.String(got), norm.NFKC.String(got), norm.NFKD.String(got)} {
		if found := acts.FindString(form); found != "" {
			t.Errorf("Text(%+q) = %+q, which still holds %+q", text, got, found)
		}
	}
	for _, r := range got {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			t.Errorf("Text(%+q) = %+q keeps %U", text, got, r)
		}
	}
	if !utf8.ValidString(got) {
		t.Errorf("Text(%+q) = %+q is not UTF-8", text, got)
	}
	if again := defuse.Text(got); again != got {
		t.Errorf("Text(%+q) = %+q, and from that %+q", text, got, again)
	}
}
