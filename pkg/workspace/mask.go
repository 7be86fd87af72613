package workspace

import (
	"regexp"
	"strings"
	"unicode"
)

// maskUnspoken returns text with everything that does not count as spoken
// replaced by one blank each: quoted messages, code, URLs, mail addresses and
// quotation lines, in the order of section 5.3.
func maskUnspoken(text string) string {
	text = maskQuotedMessages(text)
	text = maskFences(text)
	text = maskInlineCode(text)
	text = maskURLs(text)
	text = mailAddress.ReplaceAllLiteralString(text, " ")
	return maskQuotations(text)
}

var (
	quotedTag   = regexp.MustCompile(`(?i)<(/?)quoted_message(?:\s[^>]*)?>`)
	mailAddress = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	webAddress  = regexp.MustCompile(`(?i)https?://`)
	blankLine   = regexp.MustCompile(`\n[ \t\r]*\n`)
)

type span struct{ from, to int }

// maskSpans replaces each of the spans, which are in order, by one blank. A
// span that begins within an earlier one is part of it.
func maskSpans(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	end := 0
	for _, s := range spans {
		if s.from < end {
			continue
		}
		b.WriteString(text[end:s.from])
		b.WriteByte(' ')
		end = s.to
	}
	b.WriteString(text[end:])
	return b.String()
}

// maskQuotedMessages masks from each opening tag to its own closing tag; tags
// nest. A tag without a partner is plain text.
func maskQuotedMessages(text string) string {
	var (
		open   []int
		closed = make(map[int]int)
		starts []int
	)
	for _, at := range quotedTag.FindAllStringSubmatchIndex(text, -1) {
		isClosing := at[3] > at[2]
		switch {
		case !isClosing && strings.HasSuffix(text[at[0]:at[1]], "/>"):
		case !isClosing:
			open = append(open, at[0])
			starts = append(starts, at[0])
		case len(open) > 0:
			closed[open[len(open)-1]] = at[1]
			open = open[:len(open)-1]
		}
	}
	var spans []span
	for _, from := range starts {
		if to, ok := closed[from]; ok {
			spans = append(spans, span{from, to})
		}
	}
	return maskSpans(text, spans)
}

// maskFences masks code between fences of three or more back-ticks or tildes;
// the closing fence is at least as long. An open fence reaches the end of the
// text. Tildes open a fence at the start of a line only: elsewhere people use
// them as punctuation.
func maskFences(text string) string {
	var spans []span
	for at := 0; at < len(text); {
		c := text[at]
		n := runLength(text, at)
		opens := n >= 3 && (c == '`' || c == '~' && atLineStart(text, at))
		if !opens {
			at += n
			continue
		}
		end := closingRun(text, at+n, c, func(length int) bool { return length >= n })
		if end < 0 {
			end = len(text)
		}
		spans = append(spans, span{at, end})
		at = end
	}
	return maskSpans(text, spans)
}

// maskInlineCode masks code between runs of back-ticks of the same length
// within a paragraph. An open run is plain text.
func maskInlineCode(text string) string {
	var spans []span
	from := 0
	for _, gap := range blankLine.FindAllStringIndex(text, -1) {
		spans = append(spans, inlineCode(text, from, gap[0])...)
		from = gap[1]
	}
	spans = append(spans, inlineCode(text, from, len(text))...)
	return maskSpans(text, spans)
}

// inlineCode returns where code stands in the paragraph between the two places.
func inlineCode(text string, from, to int) []span {
	var spans []span
	for at := from; at < to; {
		n := runLength(text[:to], at)
		if text[at] != '`' {
			at += n
			continue
		}
		end := closingRun(text[:to], at+n, '`', func(length int) bool { return length == n })
		if end < 0 {
			at += n
			continue
		}
		spans = append(spans, span{at, end})
		at = end
	}
	return spans
}

// runLength returns how often the byte at the given place repeats from there.
func runLength(text string, at int) int {
	n := 1
	for at+n < len(text) && text[at+n] == text[at] {
		n++
	}
	return n
}

// closingRun returns the end of the first run of c from the given place on
// whose length fits, or -1.
func closingRun(text string, at int, c byte, fits func(length int) bool) int {
	for at < len(text) {
		next := strings.IndexByte(text[at:], c)
		if next < 0 {
			return -1
		}
		at += next
		n := runLength(text, at)
		if fits(n) {
			return at + n
		}
		at += n
	}
	return -1
}

// atLineStart reports whether only blanks and quotation marks stand before the
// given place in its line.
func atLineStart(text string, at int) bool {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return strings.Trim(line, " \t>") == ""
}

// maskURLs masks web addresses, which end at white space or at a full-width
// punctuation mark.
func maskURLs(text string) string {
	var spans []span
	for at := 0; at < len(text); {
		found := webAddress.FindStringIndex(text[at:])
		if found == nil {
			break
		}
		end := len(text)
		if stop := strings.IndexFunc(text[at+found[1]:], endsURL); stop >= 0 {
			end = at + found[1] + stop
		}
		spans = append(spans, span{at + found[0], end})
		at = end
	}
	return maskSpans(text, spans)
}

func endsURL(r rune) bool {
	return unicode.IsSpace(r) || r > unicode.MaxLatin1 && unicode.IsPunct(r)
}

// maskQuotations masks every line whose first visible character is ">".
func maskQuotations(text string) string {
	if !strings.Contains(text, ">") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeftFunc(line, invisible), ">") {
			lines[i] = " "
		}
	}
	return strings.Join(lines, "\n")
}

func invisible(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
