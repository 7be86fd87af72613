package autoreplytest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// command is one line that the obedient model understands.
type command struct {
	verb string
	rest string
}

// number is the command's argument where that is one, at least 1.
func (c command) number() int {
	n, err := strconv.Atoi(strings.TrimSpace(c.rest))
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// parseCommands returns the commands in a text.
func parseCommands(text string) []command {
	var commands []command
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "CALL", "AND", "BIG", "PARALLEL", "REPEAT", "ENDLESS", "OBEY_RESULT", "SAY", "SAY_RESULT",
			"SAY_PROMPT", "SAY_LONG", "THINK", "RAW", "FINISH", "DECLINE", "STATUS", "WAIT":
			commands = append(commands, command{verb, rest})
		}
	}
	return commands
}

// obedience is the model at work on one request.
type obedience struct {
	request  Request
	gate     func(name string) *Gate
	commands []command // still to be carried out
	made     int       // replies with calls that the request shows
	parallel int
	repeat   int
	turn     Turn
	said     []string
}

// obey returns what the request's newest message tells the model to reply.
func obey(r Request, gate func(name string) *Gate) Turn {
	o := &obedience{request: r, gate: gate, commands: parseCommands(r.Newest()), parallel: 1, repeat: 1}
	for len(o.commands) > 0 {
		next := o.commands[0]
		o.commands = o.commands[1:]
		if next.verb == "CALL" || next.verb == "BIG" {
			if calls := o.call(next); calls != nil {
				return Turn{Calls: calls, Gate: o.turn.Gate}
			}
			continue
		}
		o.carryOut(next)
	}
	o.turn.Text = strings.Join(o.said, "\n")
	if len(o.said) == 0 {
		o.turn.Text = "done"
	}
	return o.turn
}

// call returns the calls to make now, or nil when this command is done with.
func (o *obedience) call(c command) []Call {
	group := []Call{parseCall(c)}
	for len(o.commands) > 0 && o.commands[0].verb == "AND" {
		group = append(group, parseCall(o.commands[0]))
		o.commands = o.commands[1:]
	}
	var calls []Call
	for range o.parallel {
		calls = append(calls, group...)
	}
	replies := o.repeat
	o.parallel, o.repeat = 1, 1
	seen := min(replies, len(o.request.Rounds)-o.made)
	o.made += seen
	if seen == replies || len(o.request.Tools) == 0 {
		return nil
	}
	return calls
}

func parseCall(c command) Call {
	name, arguments, _ := strings.Cut(c.rest, " ")
	if c.verb == "BIG" {
		n := command{rest: arguments}.number()
		arguments = `{"path":"` + strings.Repeat("a", n) + `"}`
	}
	return Call{Name: name, Arguments: arguments}
}

func (o *obedience) carryOut(c command) {
	const endless = 1 << 30
	switch c.verb {
	case "PARALLEL":
		o.parallel = c.number()
	case "REPEAT":
		o.repeat = c.number()
	case "ENDLESS":
		o.repeat = endless
	case "OBEY_RESULT":
		o.commands = append(o.found(), o.commands...)
	case "SAY":
		o.said = append(o.said, c.rest)
	case "SAY_RESULT":
		o.said = append(o.said, o.request.Results()...)
	case "SAY_PROMPT":
		o.said = append(o.said, o.request.Body)
	case "SAY_LONG":
		o.said = append(o.said, strings.Repeat("a", c.number()))
	case "THINK":
		o.turn.Reasoning = c.rest
	case "RAW":
		o.turn.Message = c.rest
	case "FINISH":
		o.turn.Finish = c.rest
	case "DECLINE":
		o.turn.Refusal = "I cannot help with that."
	case "STATUS":
		o.turn.Status = c.number()
	case "WAIT":
		o.turn.Gate = o.gate(c.rest)
	}
}

// found returns the commands in the results of the last calls made so far: in
// any string of the JSON that they are.
func (o *obedience) found() []command {
	if o.made == 0 {
		return nil
	}
	var commands []command
	for _, result := range o.request.Rounds[o.made-1] {
		for line := range strings.Lines(result) {
			var document any
			if json.Unmarshal([]byte(line), &document) == nil {
				commands = append(commands, commandsIn(document)...)
			}
		}
	}
	return commands
}

func commandsIn(document any) []command {
	var commands []command
	switch d := document.(type) {
	case string:
		return parseCommands(d)
	case []any:
		for _, item := range d {
			commands = append(commands, commandsIn(item)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(d)) {
			commands = append(commands, commandsIn(d[name])...)
		}
	}
	return commands
}

// statusBody is the body of a response with a status that the model was told.
func statusBody(status int) string {
	return fmt.Sprintf(`{"error":{"message":"as you said","type":"scripted_error","code":%d}}`, status)
}
