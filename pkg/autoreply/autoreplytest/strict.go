package autoreplytest

import (
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// check returns what a strict server has against the request, or nil.
func (r Request) check() error {
	for name := range r.fields {
		switch name {
		case "model", "messages", "tools", "stream", "max_tokens", "max_completion_tokens":
		default:
			return fmt.Errorf("the field %s is not known everywhere", name)
		}
	}
	switch {
	case r.Header.Get("Origin") != "":
		return fmt.Errorf("there is an Origin")
	case r.Header.Get("Content-Type") != "application/json":
		return fmt.Errorf("the content type is %q", r.Header.Get("Content-Type"))
	case r.wire.Model == "":
		return fmt.Errorf("there is no model")
	case r.wire.Stream:
		return fmt.Errorf("a stream is asked for")
	case r.has("tools") && len(r.wire.Tools) == 0:
		return fmt.Errorf("the list of tools is empty")
	case len(r.wire.Messages) < 2 || r.wire.Messages[0].Role != "system" || r.wire.Messages[1].Role != "user":
		return fmt.Errorf("the messages do not begin with system and user")
	}
	return checkMessages(r.wire.Messages)
}

// has reports whether the body has a member of that name.
func (r Request) has(name string) bool { return r.fields[name] != nil }

// checkMessages makes sure that each call is answered once, in order and right
// away, under an id that no other has.
func checkMessages(messages []wireMessage) error {
	var open []wireCall
	seen := make(map[string]bool)
	for i, m := range messages {
		if len(open) > 0 {
			if m.Role != "tool" || m.CallID != open[0].ID {
				return fmt.Errorf("message %d does not answer call %s", i, open[0].ID)
			}
			open = open[1:]
		} else if m.Role == "tool" {
			return fmt.Errorf("message %d answers no call", i)
		}
		if m.Content.Kind() != '"' && (len(m.Calls) == 0 || m.Content.Kind() != 'n') {
			return fmt.Errorf("message %d has content of the wrong type", i)
		}
		for _, c := range m.Calls {
			if err := c.check(seen); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		open = append(open, m.Calls...)
	}
	if len(open) > 0 {
		return fmt.Errorf("call %s is not answered", open[0].ID)
	}
	return nil
}

func (c wireCall) check(seen map[string]bool) error {
	if c.ID == "" || seen[c.ID] {
		return fmt.Errorf("the id %q is missing or not the only one", c.ID)
	}
	seen[c.ID] = true
	if c.Type != "function" {
		return fmt.Errorf("call %s has type %q", c.ID, c.Type)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(c.Function.Name) {
		return fmt.Errorf("call %s has the name %q", c.ID, c.Function.Name)
	}
	arguments := jsontext.Value(c.Function.Arguments)
	if !arguments.IsValid() || arguments.Kind() != '{' {
		return fmt.Errorf("call %s has arguments that are no JSON object", c.ID)
	}
	return nil
}
