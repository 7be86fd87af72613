package store

import (
	"context"

	"github.com/newos4/relay/pkg/workspace"
)

// pruneChunk is how many events one transaction of a pruning looks at, so that
// writers wait for milliseconds only.
const pruneChunk = 2000

// Prune deletes, for all owners, the events that are superseded and old enough
// (section 4.4), and portraits that nothing shows any more. It returns how many
// events went.
//
// Each event is looked at once, when it has become old: one that is superseded
// later goes when its successor is appended. So the cost is that of the events
// since the last call, however long the log is; the first call after a start
// looks at all.
func (s *Store) Prune(ctx context.Context) (int, error) {
	s.pruning.Lock()
	defer s.pruning.Unlock()
	removed := 0
	for {
		n, more, err := s.pruneSome(ctx)
		removed += n
		if err != nil || !more {
			return removed, err
		}
	}
}

func (s *Store) pruneSome(ctx context.Context) (removed int, more bool, err error) {
	from := s.prunedTo
	err = s.maintain(ctx, "pruning events", func(t *tx) error {
		cutoff := t.now - workspace.SupersededAge
		to, err := one(t.view, scalar[int64], `SELECT coalesce(max(seq), 0)
			FROM (SELECT seq, created_at FROM event WHERE seq > ? ORDER BY seq LIMIT ?) WHERE created_at < ?`,
			from, pruneChunk, cutoff)
		if err != nil {
			return err
		}
		if to == 0 {
			return t.dropPortraits()
		}
		n, err := t.exec(`DELETE FROM event WHERE seq > ? AND seq <= ? AND created_at < ?
			AND type IN ('message.changed', 'conversation.changed')
			AND EXISTS (SELECT 1 FROM event AS newer WHERE newer.owner = event.owner
				AND newer.type = event.type AND newer.entity_id = event.entity_id
				AND newer.seq > event.seq AND newer.type IN ('message.changed', 'conversation.changed'))`,
			from, to, cutoff)
		removed, more, from = int(n), true, to
		return err
	})
	if err == nil {
		s.prunedTo = from
	}
	return removed, more, err
}

// dropPortraits deletes the portraits that no agent, chat or event names.
func (t *tx) dropPortraits() error {
	_, err := t.exec(`DELETE FROM portrait WHERE
		NOT EXISTS (SELECT 1 FROM agent WHERE agent.owner = portrait.owner AND agent.avatar = portrait.name) AND
		NOT EXISTS (SELECT 1 FROM conversation AS c WHERE c.owner = portrait.owner AND c.avatar = portrait.name) AND
		NOT EXISTS (SELECT 1 FROM event WHERE event.owner = portrait.owner AND event.avatar = portrait.name AND event.avatar <> '')`)
	return err
}
