package prompt

import (
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/untrusted"
)

// tagBytes is how many random bytes are in a tag.
const tagBytes = 16

// Frame marks where data begins and ends, with a tag that nobody who writes
// data can foresee. One is drawn for each run.
type Frame struct {
	id string
	// tagLike finds what begins like a tag of any frame.
	tagLike *regexp.Regexp
}

// NewFrame draws a frame: 128 bits from random.
func NewFrame(random io.Reader) (Frame, error) {
	var id [tagBytes]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return Frame{}, fmt.Errorf("drawing a tag for a prompt: %w", err)
	}
	return Frame{id: hex.EncodeToString(id[:]), tagLike: regexp.MustCompile(`(?i)<(/?data)`)}, nil
}

// open and closing are the two lines that data stands between.
func (f Frame) open() string    { return "<data-" + f.id + ">" }
func (f Frame) closing() string { return "</data-" + f.id + ">" }

// Wrap returns documents between the tags, one a line, beginning and ending
// with a tag. Each is expected to be valid JSON of valid UTF-8; it keeps its
// meaning, while what does not show, and each < that could begin a tag, is
// written as an escape. Whatever else is given, no line of it is a tag.
func (f Frame) Wrap(documents ...jsontext.Value) string {
	var b strings.Builder
	b.WriteString(f.open())
	b.WriteByte('\n')
	for _, document := range documents {
		b.WriteString(f.line(document))
		b.WriteByte('\n')
	}
	b.WriteString(f.closing())
	return b.String()
}

func (f Frame) line(document jsontext.Value) string {
	return f.tagLike.ReplaceAllString(untrusted.JSON(string(document)), `\u003c$1`)
}

// encode returns v as JSON on one line.
func encode(v any) (jsontext.Value, error) {
	document, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding data for a prompt: %w", err)
	}
	return document, nil
}
