package chat

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Author says who wrote a message.
type Author string

// The contract's three authors. A browser may write as the first two (its
// "kind"); only the host writes as Hermes.
const (
	Operator Author = "operator"
	Agent    Author = "agent"
	Hermes   Author = "hermes"
)

// ParseKind returns the author that a browser's "kind" stands for. Anything
// but operator and agent, hermes above all, is refused with [CodeBadRequest].
func ParseKind(kind string) (Author, error) {
	switch Author(kind) {
	case Operator, Agent:
		return Author(kind), nil
	}
	return "", Errorf(CodeBadRequest, "kind must be %q or %q", Operator, Agent)
}

// valid reports whether a is one of the three authors.
func (a Author) valid() bool { return a == Operator || a == Agent || a == Hermes }

// Message is one entry of a thread.
type Message struct {
	// ID is unique inside the thread: MSG-YYYYMMDD-HHMMSS-xxxxxx in the second
	// of Epoch, with six random hex digits.
	ID string
	// Epoch is in milliseconds since 1970 UTC and strictly increases inside a
	// thread; it is what cursors are made of.
	Epoch int64
	// Author wrote the message.
	Author Author
	// Text is what was sent, byte for byte.
	Text string
}

// TS returns the UTC second of the message's epoch as YYYY-MM-DDTHH:MM:SS+00:00.
// It is for people; a cursor is never made of it.
func (m Message) TS() string { return formatTS(m.Epoch) }

func formatTS(epoch int64) string {
	return time.UnixMilli(epoch).UTC().Format("2006-01-02T15:04:05+00:00")
}

// maxEpoch is the last millisecond of the year 9999, beyond which ts and id
// have no four-digit year.
const maxEpoch = 253402300799999

// NewID returns a message id for epoch (milliseconds) with six hex digits read
// from random.
func NewID(epoch int64, random io.Reader) (string, error) {
	var suffix [3]byte
	if _, err := io.ReadFull(random, suffix[:]); err != nil {
		return "", fmt.Errorf("reading random bytes for a message id: %w", err)
	}
	return time.UnixMilli(epoch).UTC().Format("MSG-20060102-150405-") + hex.EncodeToString(suffix[:]), nil
}

// CheckText returns an error when text may not become a message: not UTF-8,
// nothing but white space ([CodeBadRequest]), or longer than limit code points
// ([CodeTooLong]). Text is refused, never cut or changed (section 3).
func CheckText(text string, limit int) error {
	if !utf8.ValidString(text) {
		return Errorf(CodeBadRequest, "text is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(text); n > limit {
		return Errorf(CodeTooLong, "text has %d code points, %d more than the limit of %d", n, n-limit, limit)
	}
	if strings.TrimSpace(text) == "" {
		return Errorf(CodeBadRequest, "text is empty or only white space")
	}
	return nil
}

// appendMessage appends m as the JSON object of a poll answer (section 5). The
// same bytes stand in the thread's file, so a message is encoded once in its
// life.
func appendMessage(dst []byte, m Message) ([]byte, error) {
	dst = append(dst, `{"id":`...)
	dst, err := jsontext.AppendQuote(dst, m.ID)
	if err != nil {
		return nil, fmt.Errorf("encoding a message id: %w", err)
	}
	dst = fmt.Appendf(dst, `,"epoch":%d,"ts":"%s","author":"%s","text":`, m.Epoch, m.TS(), m.Author)
	dst, err = jsontext.AppendQuote(dst, m.Text)
	if err != nil {
		return nil, fmt.Errorf("encoding a message text: %w", err)
	}
	return append(dst, '}'), nil
}
