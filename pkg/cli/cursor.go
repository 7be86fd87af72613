package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/newos4/relay/pkg/chat"
)

// A cursor file holds one cursor: decimal epoch milliseconds and a line feed.

// readCursor returns the cursor in the file, 0 when there is no file. What is
// no cursor is an error: to begin again from 0 would hand out old messages as
// new ones.
func readCursor(path string) (int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the cursor: %w", err)
	}
	defer func() { _ = file.Close() }()
	const enough = 64
	data, err := io.ReadAll(io.LimitReader(file, enough))
	if err != nil {
		return 0, fmt.Errorf("reading the cursor: %w", err)
	}
	text := strings.TrimSpace(string(data))
	cursor, err := chat.ParseSince(text)
	if err != nil {
		return 0, &failure{
			code: exitFailed,
			err:  fmt.Errorf("the cursor file %s holds %q, which is no cursor", path, text),
			hint: "write the epoch, in milliseconds, of the last message that was handled, or remove the file to begin with the newest messages",
		}
	}
	return cursor, nil
}

// writeCursor replaces the file by one with the cursor, in one step.
func writeCursor(path string, cursor int64) error {
	const ownerOnly = 0o600
	data := strconv.AppendInt(nil, cursor, 10)
	// Beside the file, for elsewhere others could meet its temporary copy.
	beside := renameio.WithTempDir(filepath.Dir(path))
	if err := renameio.WriteFile(path, append(data, '\n'), ownerOnly, beside); err != nil {
		return fmt.Errorf("writing the cursor: %w", err)
	}
	return nil
}
