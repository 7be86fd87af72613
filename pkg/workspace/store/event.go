package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/workspace"
)

// maxEventBytes bounds the data of one page of events, in bytes. A page has at
// least one event; the client asks on from where it ends.
const maxEventBytes = 8 << 20

// changed appends the event that tells of a change. Call it after the rows are
// written, once for each entity.
func (t *tx) changed(c workspace.Change) error {
	data, err := encode(c.Data)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	if err := t.dropOld(c); err != nil {
		return err
	}
	t.last, err = t.insert(`INSERT INTO event (owner, type, conversation_id, entity_id, created_at, avatar, data)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, t.owner, c.Type, c.ConversationID, c.EntityID, t.now, nameOfPortrait(c.Data), data)
	return err
}

// dropOld removes those earlier events of the entity that are old enough. It is
// half of pruning: see [Store.Prune].
func (t *tx) dropOld(c workspace.Change) error {
	if !c.Type.Prunable() {
		return nil
	}
	_, err := t.exec(`DELETE FROM event WHERE owner = ? AND type = ? AND entity_id = ? AND created_at < ?
		AND type IN ('message.changed', 'conversation.changed')`,
		t.owner, c.Type, c.EntityID, t.now-workspace.SupersededAge)
	return err
}

// nameOfPortrait returns the name that stands in the data for a portrait.
func nameOfPortrait(data any) string {
	portrait := ""
	switch entity := data.(type) {
	case workspace.Agent:
		portrait = entity.Avatar
	case workspace.Conversation:
		portrait = entity.Avatar
	}
	if !strings.HasPrefix(portrait, portraitName) {
		return ""
	}
	return portrait
}

// EventPage is a piece of an owner's log.
type EventPage struct {
	Events []workspace.Event
	// Cursor is from where to read on (section 4.1).
	Cursor int64
}

// Events returns the owner's events after the given sequence, ascending, at most
// limit of them, which is brought within 1 and 250, and not more than 8 MiB
// (section 4.1). After a sequence that was
// never given, as a client has it when an older database was restored, there is
// nothing, and the cursor is the newest of the whole log (section 4.4).
func (s *Store) Events(ctx context.Context, owner workspace.OwnerID, after int64, limit int) (EventPage, error) {
	if s.wakes.nothingAfter(owner, after) {
		return EventPage{Events: []workspace.Event{}, Cursor: after}, nil
	}
	return s.storedEvents(ctx, owner, after, limit)
}

func (s *Store) storedEvents(ctx context.Context, owner workspace.OwnerID, after int64, limit int) (EventPage, error) {
	limit = min(max(limit, 1), workspace.EventPage)
	page := EventPage{Cursor: after}
	check := s.wakes.begin()
	err := s.read(ctx, "reading events", func(v view) (err error) {
		if page.Events, err = eventsAfter(v, owner, after, limit); err != nil {
			return err
		}
		if n := len(page.Events); n > 0 {
			page.Cursor = page.Events[n-1].Seq
			return nil
		}
		newest, err := one(v, scalar[int64], `SELECT coalesce(max(seq), 0) FROM event`)
		page.Cursor = min(after, newest)
		return err
	})
	if err == nil && len(page.Events) == 0 && page.Cursor == after {
		s.wakes.remember(owner, after, check)
	}
	return page, err
}

func eventsAfter(v view, owner workspace.OwnerID, after int64, limit int) ([]workspace.Event, error) {
	events := []workspace.Event{}
	size := 0
	err := each(v, func(r row) error {
		if size > maxEventBytes {
			return nil
		}
		e, err := scanEvent(v, owner, r)
		if size += len(e.Data); err != nil || size > maxEventBytes && len(events) > 0 {
			return err
		}
		events = append(events, e)
		return nil
	}, `SELECT seq, type, conversation_id, avatar, data FROM event WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?`,
		owner, after, limit)
	return events, err
}

func scanEvent(v view, owner workspace.OwnerID, r row) (workspace.Event, error) {
	var e workspace.Event
	var name string
	var data []byte
	if err := r.Scan(&e.Seq, (*string)(&e.Type), (*string)(&e.ConversationID), &name, &data); err != nil {
		return e, err
	}
	e.Data = jsontext.Value(data)
	if name == "" {
		return e, nil
	}
	portrait, err := v.expand(owner, name)
	// The name stands in the data once, since nothing else begins like it, and
	// a long portrait is base64, which JSON does not escape.
	e.Data = jsontext.Value(strings.Replace(string(data), `"avatar":"`+name, `"avatar":"`+portrait, 1))
	return e, err
}

// WaitEvents is Events, but when there is nothing it waits for up to the given
// time until there is (section 4.4). It costs nothing while it waits. Events
// that another process appends are seen when the time is over.
func (s *Store) WaitEvents(ctx context.Context, owner workspace.OwnerID, after int64, limit int, wait time.Duration) (EventPage, error) {
	next := s.wakes.next(owner) // before reading, so that nothing falls between
	page, err := s.Events(ctx, owner, after, limit)
	if err != nil || len(page.Events) > 0 || page.Cursor != after || wait <= 0 {
		return page, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-next:
	case <-timer.C:
	case <-ctx.Done():
		return page, ctx.Err()
	}
	return s.storedEvents(ctx, owner, after, limit)
}

// Changed returns a channel that is closed when the next event of the owner is
// committed by this process. Take it before reading what it is to tell of.
func (s *Store) Changed(owner workspace.OwnerID) <-chan struct{} { return s.wakes.next(owner) }
