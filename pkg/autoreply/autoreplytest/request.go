package autoreplytest

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marker returns what makes a thread the session of that name, when it stands
// in the text of any of its messages. A name is letters, digits and hyphens.
func Marker(session string) string { return "[session:" + session + "]" }

// Request is a chat completion that was asked for.
type Request struct {
	// Header are the request's header fields.
	Header http.Header
	// Body is the request's body, as it came.
	Body string
	// Session is the name in the marker of the newest message that has one.
	Session string
	// System and User are the texts of the first message of each role.
	System, User string
	// Thread is the messages of the thread that the model was shown.
	Thread []Message
	// Tools are the names of the tools that were offered.
	Tools []string
	// Rounds are the contents of all tool messages, by the replies whose calls
	// they answer.
	Rounds [][]string

	wire wireRequest
	// fields are the body's members.
	fields map[string]jsontext.Value
}

// Message is a message of the thread, as the model is shown it.
type Message struct {
	Author string `json:"author"`
	Text   string `json:"text"`
}

// Results are the contents of all tool messages.
func (r Request) Results() []string {
	var all []string
	for _, round := range r.Rounds {
		all = append(all, round...)
	}
	return all
}

// Newest is the text of the thread's last message.
func (r Request) Newest() string {
	if len(r.Thread) == 0 {
		return ""
	}
	return r.Thread[len(r.Thread)-1].Text
}

type wireRequest struct {
	Model    string        `json:"model"`
	Messages []wireMessage `json:"messages"`
	Tools    []wireTool    `json:"tools"`
	Stream   bool          `json:"stream"`
}

type wireMessage struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
	Calls   []wireCall     `json:"tool_calls"`
	CallID  string         `json:"tool_call_id"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string         `json:"name"`
		Parameters jsontext.Value `json:"parameters"`
	} `json:"function"`
}

// text is the message's content, "" unless it is a string.
func (m wireMessage) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) != nil {
		return ""
	}
	return text
}

// parseRequest reads a body. Its error is the decoder's.
func parseRequest(header http.Header, body []byte) (Request, error) {
	r := Request{Header: header, Body: string(body)}
	if err := errors.Join(json.Unmarshal(body, &r.wire), json.Unmarshal(body, &r.fields)); err != nil {
		return r, err
	}
	for _, m := range r.wire.Messages {
		switch {
		case m.Role == "system" && r.System == "":
			r.System = m.text()
		case m.Role == "user":
			r.readUser(m.text())
		case len(m.Calls) > 0:
			r.Rounds = append(r.Rounds, nil)
		case m.Role == "tool" && len(r.Rounds) > 0:
			last := &r.Rounds[len(r.Rounds)-1]
			*last = append(*last, m.text())
		}
	}
	for _, tool := range r.wire.Tools {
		r.Tools = append(r.Tools, tool.Function.Name)
	}
	return r, nil
}

// readUser finds the thread's messages in a text: the lines that are JSON
// objects of author and text.
func (r *Request) readUser(text string) {
	if r.User == "" {
		r.User = text
	}
	marker := regexp.MustCompile(`\[session:([0-9A-Za-z-]+)\]`)
	for line := range strings.Lines(text) {
		var m Message
		err := json.Unmarshal([]byte(line), &m, json.RejectUnknownMembers(true))
		if err != nil || m.Author == "" {
			continue
		}
		r.Thread = append(r.Thread, m)
		if found := marker.FindStringSubmatch(m.Text); found != nil {
			r.Session = found[1]
		}
	}
}
