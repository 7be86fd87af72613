package passage

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/newos4/relay/pkg/chat"
)

// maxTerms is how many different words of a question are looked for. Those of
// a longer one that come later add little.
const maxTerms = 48

// Question returns the text to search for when a thread is to be answered: what
// was written since the last answer, the newest first, because words that come
// first count when there are too many.
func Question(messages []chat.Message) string {
	var b strings.Builder
	for i := len(messages) - 1; i >= 0 && messages[i].Author != chat.Hermes; i-- {
		b.WriteString(messages[i].Text + "\n")
	}
	return b.String()
}

// term is a word, or a pair of characters, that is looked for.
type term struct {
	text string
	// pair says that text is two neighbours of a script without word breaks, so
	// that it may well straddle two words and mean nothing.
	pair bool
	// single says that text is one such character by itself.
	single bool
}

// expression is the term in the syntax of FTS5: a quoted string, in which
// nothing but a quotation mark has a meaning, and a term holds none.
func (t term) expression() string {
	quoted := `"` + t.text + `"`
	if t.single {
		return quoted + "*" // the first of a pair
	}
	return quoted
}

// expressionOf matches what any of the terms does.
func expressionOf(terms []term) string {
	expressions := make([]string, len(terms))
	for i, t := range terms {
		expressions[i] = t.expression()
	}
	return strings.Join(expressions, " OR ")
}

// termsOf returns the different terms of a question, without those that every
// question has.
func termsOf(question string) []term {
	var terms []term
	question = withoutChineseStopWords(strings.ToLower(norm.NFKC.String(question)))
	for _, run := range runsOf(question) {
		for _, t := range run.terms() {
			if slices.Contains(terms, t) {
				continue
			}
			if terms = append(terms, t); len(terms) == maxTerms {
				return terms
			}
		}
	}
	return terms
}

// indexed returns text as it is indexed: as the tokenizer of FTS5 takes it, with
// spaces between pairs of characters where words have none. The last character
// of such a run also stands by itself, so that each begins a token.
func indexed(text string) string {
	var b strings.Builder
	for _, run := range runsOf(norm.NFKC.String(text)) {
		if !run.dense {
			b.WriteString(run.text + " ")
			continue
		}
		for _, pair := range pairsOf(run.text) {
			b.WriteString(pair + " ")
		}
		_, size := utf8.DecodeLastRuneInString(run.text)
		b.WriteString(run.text[len(run.text)-size:] + " ")
	}
	return b.String()
}

// run is a word, or what stands together in a script without word breaks.
type run struct {
	text  string
	dense bool
}

// runsOf cuts text at everything but letters, digits and marks.
func runsOf(text string) []run {
	var runs []run
	start := -1
	var dense bool
	end := func(at int) {
		if start >= 0 {
			runs = append(runs, run{text[start:at], dense})
		}
		start = -1
	}
	for i, r := range text {
		if !isWordRune(r) {
			end(i)
			continue
		}
		if isDense(r) != dense && !unicode.IsMark(r) {
			end(i)
		}
		if start < 0 {
			start, dense = i, isDense(r)
		}
	}
	end(len(text))
	return runs
}

// terms returns what is looked for of a run.
func (r run) terms() []term {
	switch {
	case r.dense && utf8.RuneCountInString(r.text) == 1:
		return []term{{text: r.text, single: true}}
	case r.dense:
		var terms []term
		for _, pair := range pairsOf(r.text) {
			terms = append(terms, term{text: pair, pair: true})
		}
		return terms
	case utf8.RuneCountInString(r.text) == 1 || isEnglishStopWord(r.text):
		return nil
	}
	return []term{{text: r.text}}
}

// pairsOf returns every two neighbouring characters.
func pairsOf(text string) []string {
	var pairs []string
	previous := -1
	for i, r := range text {
		if previous >= 0 {
			pairs = append(pairs, text[previous:i+utf8.RuneLen(r)])
		}
		previous = i
	}
	return pairs
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// isDense reports whether r belongs to a script that is matched by pairs.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー'
}
