package workspace_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that sequences grow by one, that a hidden row takes one too but shows
// nothing, and that it moves to the end when it becomes visible (section 2.6).
func TestAppendAndReveal(t *testing.T) {
	t.Parallel()
	c := mustGroup(t, team(2))
	c, user := c.Append(workspace.Message{Role: workspace.RoleUser, Content: "你好", CreatedAt: 7})
	c, hidden := c.Append(workspace.Message{Role: workspace.RoleAssistant, Content: "秘密", Hidden: true, CreatedAt: 8})
	if user.Seq != 1 || hidden.Seq != 2 || c.LastSeq != 2 || c.Preview != "你好" || *c.LastMessageAt != 7 {
		t.Fatalf("user %d, hidden %d, conversation %+v", user.Seq, hidden.Seq, c)
	}
	c, other := c.Append(workspace.Message{Role: workspace.RoleAssistant, Status: workspace.MessageStreaming, CreatedAt: 9})
	if c.Preview != "你好" {
		t.Errorf("an empty row became the preview: %q", c.Preview)
	}
	c, revealed := c.Reveal(hidden)
	if revealed.Seq != other.Seq+1 || bool(revealed.Hidden) || c.LastSeq != 4 || c.Preview != "秘密" || *c.LastMessageAt != 8 {
		t.Errorf("revealed %+v, conversation %+v", revealed, c)
	}
	again, same := c.Reveal(revealed)
	if same.Seq != revealed.Seq || again.LastSeq != c.LastSeq {
		t.Errorf("a visible row was revealed again: %+v", same)
	}
}

// Ensure that the read marker never goes back and never passes the end (section
// 3.4, scenario 24).
func TestMarkRead(t *testing.T) {
	t.Parallel()
	c := workspace.Conversation{LastSeq: 6}
	for _, step := range []struct {
		seq, want int64
		changed   bool
	}{{5, 5, true}, {3, 5, false}, {5, 5, false}, {99, 6, true}, {0, 6, false}} {
		var changed bool
		c, changed = c.MarkRead(step.seq)
		if c.ReadSeq != step.want || changed != step.changed {
			t.Errorf("read %d: marker %d, changed %v", step.seq, c.ReadSeq, changed)
		}
	}
	for _, in := range []workspace.ReadMarker{{}, {Seq: workspace.Some[int64](-1)}, {Seq: workspace.Null[int64]()}} {
		_, err := workspace.CheckReadMarker(in)
		wantCode(t, err, workspace.CodeInvalidRequest)
	}
}

// Ensure that visible, final messages of others count as unread, and that a
// user's own message is read when all before it was (section 11 item 7).
func TestUnread(t *testing.T) {
	t.Parallel()
	messages := []workspace.Message{
		{Seq: 1, Role: workspace.RoleAssistant, Status: workspace.MessageComplete},
		{Seq: 2, Role: workspace.RoleUser, Status: workspace.MessageComplete},
		{Seq: 3, Role: workspace.RoleAssistant, Status: workspace.MessageStreaming},
		{Seq: 4, Role: workspace.RoleAssistant, Status: workspace.MessageComplete, Hidden: true},
		{Seq: 5, Role: workspace.RoleAssistant, Status: workspace.MessageFailed},
		{Seq: 6, Role: workspace.RoleSystem, Status: workspace.MessageComplete},
	}
	for readSeq, want := range map[int64]int{0: 3, 1: 2, 4: 2, 5: 1, 6: 0} {
		if got := workspace.Unread(messages, readSeq); got != want {
			t.Errorf("read up to %d: %d unread, want %d", readSeq, got, want)
		}
	}
	own := workspace.Message{Role: workspace.RoleUser, Content: "x"}
	read, _ := workspace.Conversation{LastSeq: 6, ReadSeq: 6}.Append(own)
	unread, _ := workspace.Conversation{LastSeq: 6, ReadSeq: 5}.Append(own)
	if read.ReadSeq != 7 || unread.ReadSeq != 5 {
		t.Errorf("markers %d and %d after an own message", read.ReadSeq, unread.ReadSeq)
	}
}

// Ensure that a preview is one line of plain text (section 2.3).
func TestPreview(t *testing.T) {
	t.Parallel()
	image := []workspace.File{{MIMEType: "image/png"}}
	for _, tt := range []struct {
		message workspace.Message
		want    string
	}{
		{workspace.Message{Content: "# 标题\n\n- **重点** 和 `代码`\n> 引用"}, "标题 重点 和 代码 引用"},
		{workspace.Message{Content: "见 https://x.example/a?b=c，谢谢"}, "见 [链接]，谢谢"},
		{workspace.Message{Content: "[文档](https://x.example/secret) ![图](/a/b.png)"}, "文档 [图片]"},
		{workspace.Message{Content: "写到 /home/me/out.txt 了"}, "写到 [路径] 了"},
		{workspace.Message{Content: `写到 C:\Users\me\out.txt 了`}, "写到 [路径] 了"},
		{workspace.Message{Content: "结果：~/a/b.md"}, "结果：[路径]"},
		{workspace.Message{Content: "前\n```go\nfunc main() {}\n```\n后"}, "前 [代码] 后"},
		{workspace.Message{Content: "```\nopen"}, "[代码]"},
		{workspace.Message{Content: "a\x00b\x1b[31mc\u202ed"}, "a b [31mc d"},
		{workspace.Message{Content: "3/4 和 and/or"}, "3/4 和 and/or"},
		{workspace.Message{Content: "2 * 3 * 4"}, "2 * 3 * 4"},
		{workspace.Message{Content: strings.Repeat("字", 200)}, strings.Repeat("字", 160)},
		{workspace.Message{Attachments: image}, "[图片]"},
		{workspace.Message{Content: " ", Attachments: []workspace.File{{MIMEType: "text/plain"}}}, "[文件]"},
		{workspace.Message{Tools: []workspace.Tool{[]byte("{}")}}, "[工具调用]"},
		{workspace.Message{}, ""},
	} {
		if got := workspace.Preview(tt.message); got != tt.want {
			t.Errorf("Preview(%.40q) = %q, want %q", tt.message.Content, got, tt.want)
		}
	}
}

// FuzzPreview holds for any text: a preview is valid, short, and of one line
// without control characters and web addresses.
func FuzzPreview(f *testing.F) {
	f.Add("# a\n```\nb")
	f.Add("见 https://x.example，**b** \x00 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := workspace.Preview(workspace.Message{Content: text})
		if utf8.ValidString(text) && !utf8.ValidString(got) || utf8.RuneCountInString(got) > workspace.MaxPreview {
			t.Fatalf("Preview(%q) = %q", text, got)
		}
		if strings.ContainsFunc(got, unicode.IsControl) || strings.ContainsAny(got, "\u2028\u2029\u202e") {
			t.Fatalf("Preview(%q) = %q", text, got)
		}
		if got != strings.TrimSpace(got) {
			t.Fatalf("Preview(%q) = %q", text, got)
		}
	})
}
