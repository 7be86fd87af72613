package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
)

// maxFrame bounds a frame's body in bytes. It holds the largest result, each of
// whose bytes may take two in JSON, and the paths of the largest setup.
const maxFrame = 4 * mib

// errMalformed does not say what is wrong, for that would be the words of
// someone who is not trusted, on their way into a log.
var errMalformed = errors.New("a frame does not hold what it should")

// writeFrame writes v as JSON behind its length in four bytes, in one write.
func writeFrame(w io.Writer, v any) error {
	frame := make([]byte, 4, 4*kib)
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("frame of %d bytes is over the limit of %d", len(body), maxFrame)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	if _, err := w.Write(append(frame, body...)); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// readFrame reads what writeFrame wrote. It refuses anything else: a length
// over the limit before it reads on, invalid UTF-8, duplicate or unknown
// members. At the end of the stream it returns [io.EOF].
func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return fmt.Errorf("read frame: %w", err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return fmt.Errorf("frame of %d bytes is over the limit of %d", size, maxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("read frame: %w", err)
	}
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true)); err != nil {
		return errMalformed
	}
	return nil
}
