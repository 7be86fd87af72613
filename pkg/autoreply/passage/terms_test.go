package passage

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Ensures that a question becomes the words that matter, and pairs where words
// have no spaces.
func TestTermsOf(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"How do I set server.listen?":    `"set" OR "server" OR "listen"`,
		"the THE The token token":        `"token"`,
		"it's a 404, isn't it":           `"404"`,
		"如何修改端口":                         `"修改" OR "改端" OR "端口"`,
		"我的token在哪里？":                    `"token" OR "在"*`,
		"端":                              `"端"*`,
		"ＡＢ１２":                           `"ab12"`,
		"\"x\" OR body:* NEAR(y, 2) -^z": `"body" OR "near"`,
		"サーバー":                           `"サー" OR "ーバ" OR "バー"`,
		"what is it":                     ``,
	} {
		if diff := cmp.Diff(want, expressionOf(termsOf(question))); diff != "" {
			t.Errorf("%q: %s", question, diff)
		}
	}
}

// Ensures that text is indexed so that its terms are tokens of their own.
func TestIndexed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Set server.listen.": "Set server listen ",
		"修改端口。":              "修改 改端 端口 口 ",
		"用chat命令":            "用 chat 命令 令 ",
	} {
		if diff := cmp.Diff(want, indexed(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// Ensures that whatever the question, the expression is a bounded number of
// quoted strings that hold letters, digits and marks alone.
func FuzzTermsOf(f *testing.F) {
	f.Add(`a"b OR c* NEAR(d) {e}: ^f`)
	f.Add("监听端口 \xff\x00 é ß ① Ⅷ")
	f.Fuzz(func(t *testing.T, question string) {
		terms := termsOf(question)
		if len(terms) > maxTerms {
			t.Errorf("%d terms", len(terms))
		}
		for _, term := range terms {
			isOther := func(r rune) bool { return !isWordRune(r) }
			if term.text == "" || !utf8.ValidString(term.text) || strings.ContainsFunc(term.text, isOther) {
				t.Errorf("%+q has the term %+q", question, term.text)
			}
		}
		if got, want := strings.Count(expressionOf(terms), `"`), 2*len(terms); got != want {
			t.Errorf("%+q has %d quotation marks, want %d", question, got, want)
		}
	})
}
