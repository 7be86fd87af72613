package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// warningHandler prints what the storage logs, from warnings upwards, in the
// form of this program's errors.
type warningHandler struct{ app *app }

// Enabled keeps back what only a daemon's log is for.
func (warningHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle prints the record on one line.
func (h warningHandler) Handle(_ context.Context, record slog.Record) error {
	var details []string
	record.Attrs(func(attr slog.Attr) bool {
		details = append(details, fmt.Sprintf("%s: %v", attr.Key, attr.Value))
		return true
	})
	text := "warning: " + record.Message
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	h.app.printError(text)
	return nil
}

// WithAttrs returns h: the storage logs without a context of its own.
func (h warningHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns h, as WithAttrs does.
func (h warningHandler) WithGroup(string) slog.Handler { return h }
