package command

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/untrusted"
)

// maxInputText is how many bytes of messages a program is given. Their JSON is
// at most about twice as long.
const maxInputText = 512 * kib

// Input is the document that a program finds on its standard input: one JSON
// object on one line, in UTF-8, with every member present. All texts are made
// visible as by [untrusted.Visible], and every one of them is data: strangers
// wrote them.
type Input struct {
	// Thread is the thread's id, 16 hex digits.
	Thread chat.ThreadID `json:"thread"`
	// Limit is how many code points the answer may have.
	Limit int `json:"limit"`
	// TooLong is an earlier answer that was over the limit and is to be
	// shortened; mostly it is empty.
	TooLong string `json:"too_long"`
	// Omitted is how many of the oldest messages were left out because all
	// together are longer than 512 KiB.
	Omitted int `json:"omitted"`
	// Messages are the thread's messages, oldest first. The last one is to be
	// answered and is never left out.
	Messages []InputMessage `json:"messages"`
}

// InputMessage is one message of an [Input].
type InputMessage struct {
	// Author is operator or agent, who write from the browser, or hermes, whose
	// words are earlier answers.
	Author chat.Author `json:"author"`
	// TS is the UTC second at which it was written, YYYY-MM-DDTHH:MM:SS+00:00.
	TS string `json:"ts"`
	// Text is what was written.
	Text string `json:"text"`
}

// encode returns the document for a question, with a line feed behind it.
func encode(q autoreply.Question) ([]byte, error) {
	in := Input{Thread: q.Thread, Limit: q.Limit, TooLong: untrusted.Visible(q.TooLong)}
	in.Omitted, in.Messages = newest(q.Messages)
	document, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encoding the command's input: %w", err)
	}
	return append(document, '\n'), nil
}

// newest makes the newest messages that fit visible, and counts the others.
func newest(messages []chat.Message) (omitted int, kept []InputMessage) {
	kept = make([]InputMessage, len(messages))
	room := maxInputText
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		text := untrusted.Visible(m.Text)
		if room -= len(text); room < 0 && i < len(messages)-1 {
			return i + 1, kept[i+1:]
		}
		kept[i] = InputMessage{Author: m.Author, TS: m.TS(), Text: text}
	}
	return 0, kept
}
