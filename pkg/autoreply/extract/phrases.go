package extract

import (
	"strings"
	"unicode"
)

// phrases are the sentences of an answer in one language. They promise nothing: an
// answered thread awaits nobody any more, so perhaps no person ever looks at it.
type phrases struct {
	found   string
	nothing string
}

// phrasesFor returns the phrases in the language of a question: Chinese if it is
// written in it, else English. A Chinese question names things in Latin letters,
// an English one seldom in Chinese characters, so those count for more.
func phrasesFor(question string) phrases {
	characters := 0
	for _, r := range question {
		if unicode.Is(unicode.Hiragana, r) || unicode.Is(unicode.Katakana, r) {
			return english()
		}
		if unicode.Is(unicode.Han, r) {
			characters++
		}
	}
	words := len(strings.FieldsFunc(question, func(r rune) bool { return !unicode.Is(unicode.Latin, r) }))
	if characters > 0 && 3*characters >= words {
		return chinese()
	}
	return english()
}

func english() phrases {
	return phrases{
		found:   "This is an automatic reply. The following is quoted from the documentation:",
		nothing: "This is an automatic reply: nothing in the documentation was found that answers this.",
	}
}

func chinese() phrases {
	return phrases{
		found:   "这是自动回复。以下内容摘自文档：",
		nothing: "这是自动回复：文档中没有找到相关内容。",
	}
}
