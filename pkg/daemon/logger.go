package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	slogjournal "github.com/systemd/slog-journal"

	"github.com/newos4/relay/pkg/config"
)

// journalSocket is where systemd's journal takes structured entries.
const journalSocket = "/run/systemd/journal/socket"

// newLogger returns the log that the configuration asks for. Its level follows
// level, which a reload may change.
func newLogger(w io.Writer, format string, level slog.Leveler) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: level}
	switch format {
	case config.LogJSON:
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case config.LogJournal:
		handler, err := newJournalHandler(journalSocket, level)
		if err != nil {
			return nil, err
		}
		return slog.New(handler), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// journalHandler hands each attribute to the journal as a field of its own, and
// shows it in the message too, which is all that journalctl prints by default.
type journalHandler struct {
	slog.Handler
	given []slog.Attr // by WithAttrs
}

// newJournalHandler fails where there is no journal at the socket: the library,
// which knows no other place for it, would write into the void.
func newJournalHandler(socket string, level slog.Leveler) (slog.Handler, error) {
	if _, err := os.Stat(socket); err != nil {
		return nil, fmt.Errorf("log.format is %s, and there is no journal: %w", config.LogJournal, err)
	}
	handler, err := slogjournal.NewHandler(&slogjournal.Options{Level: level, ReplaceAttr: journalField})
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	return journalHandler{Handler: handler}, nil
}

// journalField names the field of the journal that an attribute becomes, apart
// from the fields of others.
func journalField(_ []string, a slog.Attr) slog.Attr {
	a.Key = "RELAY_" + strings.ToUpper(a.Key)
	return a
}

// Handle writes one entry.
func (h journalHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Message = h.line(ctx, r)
	return h.Handler.Handle(ctx, r)
}

// line is the record as the text log would show it, without what the journal
// notes itself.
func (h journalHandler) line(ctx context.Context, r slog.Record) string {
	var attributes bytes.Buffer
	text := slog.NewTextHandler(&attributes, &slog.HandlerOptions{Level: slog.LevelDebug - 1, ReplaceAttr: withoutBuiltIns})
	// Writing to memory does not fail.
	_ = text.WithAttrs(h.given).Handle(ctx, r)
	return strings.TrimSpace(r.Message + " " + attributes.String())
}

func withoutBuiltIns(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// WithAttrs returns a handler that adds the attributes to each entry.
func (h journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return journalHandler{h.Handler.WithAttrs(attrs), append(h.given[:len(h.given):len(h.given)], attrs...)}
}
