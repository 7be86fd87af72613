package workspace

import (
	"regexp"
	"strings"
	"unicode"
)

// Neutral words that stand in a preview for what is no plain text.
const (
	wordCode  = "[代码]"
	wordImage = "[图片]"
	wordLink  = "[链接]"
	wordPath  = "[路径]"
	wordFile  = "[文件]"
	wordTool  = "[工具调用]"
)

// previewSource is how many bytes of a text a preview looks at: far more than it
// shows, so that markup is not cut in its middle.
const previewSource = 16 * MaxPreview * 4

var (
	mdFence   = regexp.MustCompile("(?s)(?:```|~~~).*?(?:```|~~~|$)")
	mdImage   = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	mdLink    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	mdURL     = regexp.MustCompile(`(?i)\b(?:https?|ftp|file|data)://?[^\s\p{Han}，。；：！？、（）【】《》]+`)
	mdPath    = regexp.MustCompile(`(^|[\s"'(（：:，。=])(?:~|[A-Za-z]:)?(?:[/\\][\w.@+\-\p{Han}]+){2,}[/\\]?`)
	mdLine    = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}[ \t]+|>[ \t]*|[-*+][ \t]+|\d+[.)][ \t]+|[-*_]{3,}[ \t]*$)`)
	mdStrong  = regexp.MustCompile("\\*\\*|__|~~|`+")
	mdItalics = regexp.MustCompile(`\*([^*\s][^*]*)\*`)
)

// Preview returns one line of plain text, of at most [MaxPreview] code points,
// that stands for the message in a list (section 2.3). Markup is removed, and
// code, links, paths and pictures become neutral words. A message without text
// is named for what it carries.
func Preview(m Message) string {
	if text := plainLine(m.Content); text != "" {
		return text
	}
	switch {
	case len(m.Attachments) > 0 && m.Attachments[0].Kind() == KindImage:
		return wordImage
	case len(m.Attachments) > 0:
		return wordFile
	case len(m.Tools) > 0:
		return wordTool
	}
	return ""
}

func plainLine(text string) string {
	if len(text) > previewSource {
		text = strings.ToValidUTF8(text[:previewSource], "")
	}
	text = mdFence.ReplaceAllLiteralString(text, " "+wordCode+" ")
	text = mdImage.ReplaceAllLiteralString(text, wordImage)
	text = mdLink.ReplaceAllString(text, "$1")
	text = mdURL.ReplaceAllLiteralString(text, wordLink)
	text = mdPath.ReplaceAllString(text, "${1}"+wordPath)
	text = mdLine.ReplaceAllLiteralString(text, "")
	text = mdStrong.ReplaceAllLiteralString(text, "")
	text = mdItalics.ReplaceAllString(text, "$1")
	return firstRunes(oneLine(text), MaxPreview)
}

// oneLine joins what white space and control characters part with one blank.
func oneLine(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || invisible(r) && r != '\u200d'
	})
	return strings.Join(parts, " ")
}

// firstRunes returns at most the first n code points of s.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return strings.TrimRightFunc(s[:i], unicode.IsSpace)
		}
		n--
	}
	return s
}
