package tools

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/sandbox"
)

// maxArguments is the most bytes that the arguments of a call may have as they
// came. The longest path and pattern fit in, even where every character is
// escaped.
const maxArguments = 64 << 10

// mistake is what is wrong with a call, in fixed words.
type mistake string

func (m mistake) Error() string { return string(m) }

const (
	errTooLong   mistake = "the arguments are too long"
	errSyntax    mistake = "the arguments are not valid JSON"
	errNotObject mistake = "the arguments must be a JSON object"
	errUnknown   mistake = "there is no such tool; there are list_files, read_file and search_files"
	errNoPath    mistake = "path is missing"
	errNoPattern mistake = "pattern is missing"
	errLine      mistake = "lines are counted from 1"

	errListFiles   mistake = "the arguments must be path (a string) and nothing else"
	errReadFile    mistake = "the arguments must be path (a string), first_line and last_line (whole numbers) and nothing else"
	errSearchFiles mistake = "the arguments must be pattern and path (strings), regexp (true or false) and nothing else"
)

// look is a call that can be carried out.
type look interface {
	// check returns what is wrong with arguments of the right types.
	check() error
	// target is what is looked at, for the operator.
	target() string
	// do looks. What it returns is encoded as JSON.
	do(ctx context.Context, files Files) (any, error)
}

type listFiles struct {
	Path string `json:"path,omitzero"`
}

type readFile struct {
	Path  string `json:"path"`
	First int    `json:"first_line,omitzero"`
	Last  int    `json:"last_line,omitzero"`
}

type searchFiles struct {
	Pattern string `json:"pattern"`
	Regexp  bool   `json:"regexp,omitzero"`
	Path    string `json:"path,omitzero"`
}

func (l listFiles) check() error   { return nil }
func (l listFiles) target() string { return l.Path }
func (l listFiles) do(ctx context.Context, files Files) (any, error) {
	return files.List(ctx, l.Path)
}

func (r readFile) check() error {
	if r.Path == "" {
		return errNoPath
	}
	if r.First < 0 || r.Last < 0 {
		return errLine
	}
	return nil
}
func (r readFile) target() string { return r.Path }
func (r readFile) do(ctx context.Context, files Files) (any, error) {
	return files.Read(ctx, r.Path, r.First, r.Last)
}

func (s searchFiles) check() error {
	if s.Pattern == "" {
		return errNoPattern
	}
	return nil
}
func (s searchFiles) target() string { return s.Pattern }
func (s searchFiles) do(ctx context.Context, files Files) (any, error) {
	return files.Search(ctx, sandbox.Query(s))
}

// parse returns what a call asks for, or a [mistake].
func parse(call Call) (look, error) {
	switch call.Name {
	case ListFiles:
		return decode[listFiles](call.Arguments, errListFiles)
	case ReadFile:
		return decode[readFile](call.Arguments, errReadFile)
	case SearchFiles:
		return decode[searchFiles](call.Arguments, errSearchFiles)
	}
	return nil, errUnknown
}

// decode takes known members of the right types and nothing else; usage says
// which those are.
func decode[T look](raw jsontext.Value, usage mistake) (look, error) {
	object, err := unwrap(raw)
	if err != nil {
		return nil, err
	}
	if !object.IsValid() {
		return nil, errSyntax
	}
	var l T
	if err := json.Unmarshal(object, &l, json.RejectUnknownMembers(true)); err != nil {
		return nil, usage
	}
	return l, l.check()
}

// unwrap returns the object inside arguments as they come: the text of an
// object in a string as the protocol has it, that text encoded once more, or
// the object itself. No arguments at all are an empty object.
func unwrap(raw jsontext.Value) (jsontext.Value, error) {
	const encodings = 2
	if len(raw) > maxArguments {
		return nil, errTooLong
	}
	if len(raw) == 0 || raw.Kind() == 'n' {
		return jsontext.Value("{}"), nil
	}
	for range encodings {
		if raw.Kind() != '"' {
			break
		}
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, errSyntax
		}
		if strings.TrimSpace(string(text)) == "" {
			return jsontext.Value("{}"), nil
		}
		raw = text
	}
	switch {
	case raw.Kind() == '{':
		return raw, nil
	case raw.IsValid():
		return nil, errNotObject
	default:
		return nil, errSyntax
	}
}
