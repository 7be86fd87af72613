package workspace

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Bounds of the extract of a group's transcript, in code points (section 6.13).
const (
	// MaxExtract bounds the whole extract.
	MaxExtract = 30_000
	// MaxExtractEntries is how many messages it has.
	MaxExtractEntries = 50
	// maxEntryText is the length from which a text is shown by its two ends, each
	// half as long.
	maxEntryText = 24_000
	// maxEntryReasoning bounds the reasoning that is shown of a message.
	maxEntryReasoning = 2000
	// maxEntryTools is how many tools are named.
	maxEntryTools = 16
)

// Transcript is the part of a group's history that a member has not been given
// yet: the newest [MaxExtractEntries] messages, ascending, and how many older
// ones there are. Which messages belong to it is for the store to choose.
type Transcript struct {
	Messages []Message
	Older    int
}

// Extract returns the transcript as text: the newest messages first until the
// bounds are reached, the rest as one line that counts them (section 6.13).
func Extract(t Transcript) string {
	entries := []string{}
	size, left := 0, t.Older
	for i := len(t.Messages) - 1; i >= 0; i-- {
		entry := renderEntry(t.Messages[i])
		n := utf8.RuneCountInString(entry) + 2
		if len(entries) == MaxExtractEntries || size+n > MaxExtract {
			left += i + 1
			if len(entries) == 0 {
				entries = append(entries, lastOf(entry, MaxExtract))
				left--
			}
			break
		}
		size += n
		entries = append(entries, entry)
	}
	if left > 0 {
		entries = append(entries, fmt.Sprintf("（更早的 %d 条消息未列出，不要假定自己读过它们。）", left))
	}
	slices.Reverse(entries)
	return strings.Join(entries, "\n\n")
}

// entryStates are what is said of a message's state.
var entryStates = map[MessageStatus]string{
	MessageComplete:    "已完成",
	MessageFailed:      "失败",
	MessageInterrupted: "已中断",
}

// renderEntry returns one message of an extract.
func renderEntry(m Message) string {
	lines := []string{fmt.Sprintf("[%s · %s]", speakerOf(m), entryStates[m.Status])}
	if text := shorten(m.Content); text != "" {
		lines = append(lines, text)
	}
	if m.Reasoning != "" {
		lines = append(lines, "思考："+firstOf(m.Reasoning, maxEntryReasoning))
	}
	if tools := toolNames(m.Tools); len(tools) > 0 {
		lines = append(lines, "工具："+strings.Join(tools, "、"))
	}
	if m.Error != "" {
		lines = append(lines, "错误："+m.Error)
	}
	for _, f := range m.Attachments {
		line := "附件：" + f.Name + " (" + f.MIMEType + ")"
		if f.SourcePath != "" {
			line += " " + f.SourcePath
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func speakerOf(m Message) string {
	switch m.Role {
	case RoleUser:
		return "用户"
	case RoleSystem:
		return "系统"
	}
	return m.AgentName
}

// shorten returns a long text by its two ends, with a mark between them.
func shorten(text string) string {
	if utf8.RuneCountInString(text) <= maxEntryText {
		return text
	}
	omitted := utf8.RuneCountInString(text) - maxEntryText
	return firstOf(text, maxEntryText/2) + fmt.Sprintf("\n……（中间省略 %d 字）……\n", omitted) + lastOf(text, maxEntryText/2)
}

// toolNames returns the names of the tools that a message used, each once and
// made of harmless characters only.
func toolNames(tools []Tool) []string {
	names := []string{}
	for _, tool := range tools {
		var known struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(tool, &known) == nil {
			names = append(names, harmless(known.Name))
		}
	}
	names = keep(unique(names), func(name string) bool { return name != "" })
	return names[:min(len(names), maxEntryTools)]
}

// harmless returns those characters of a tool's name that a name may have.
func harmless(name string) string {
	return firstOf(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("_-.:", r):
			return r
		}
		return -1
	}, name), MaxName)
}

// firstOf returns the first n code points of a text, and lastOf the last.
func firstOf(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

func lastOf(text string, n int) string {
	skip := utf8.RuneCountInString(text) - n
	if skip <= 0 {
		return text
	}
	return text[len(firstOf(text, skip)):]
}
