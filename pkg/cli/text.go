package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/chat"
)

// textSource is where the text of a reply is.
type textSource struct {
	argument string // the text, unless it is in a file
	file     string // a path, or "-" for standard input
}

const stdinName = "-"

// source returns where the text is. The arguments and flags were checked.
func source(cmd *cobra.Command, o replyOptions, args []string) textSource {
	if len(args) == 1 {
		return textSource{file: o.file}
	}
	// Behind "--" a dash is text like any other.
	dash := cmd.ArgsLenAtDash()
	isText := dash >= 0 && dash < len(args)
	if args[1] == stdinName && !isText {
		return textSource{file: stdinName}
	}
	return textSource{argument: args[1]}
}

// text returns the text, whole and fit to become a message.
func (s *session) text(from textSource) (string, error) {
	text := from.argument
	if from.file != "" {
		var err error
		if text, err = s.readText(from.file); err != nil {
			return "", err
		}
	}
	if err := chat.CheckText(text, s.config.Limits.Text); err != nil {
		return "", err
	}
	return text, nil
}

func (s *session) readText(name string) (string, error) {
	if name == stdinName {
		return s.readAll("standard input", s.env.Stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return "", &failure{code: exitFailed, err: fmt.Errorf("reading the text: %w", err), hint: fileHint(name, err)}
	}
	defer func() { _ = file.Close() }()
	return s.readAll(name, file)
}

// readAll returns what r holds without one line feed at its end. It reads no
// more than a text within the limit can take.
func (s *session) readAll(name string, r io.Reader) (string, error) {
	limit := s.config.Limits.Text
	most := int64(limit)*utf8.UTFMax + int64(len("\n"))
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return "", fmt.Errorf("reading the text from %s: %w", name, err)
	}
	if int64(len(data)) > most {
		return "", chat.Errorf(chat.CodeTooLong, "the text in %s has more than %d bytes and so exceeds the limit of %d code points", name, most, limit)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}
