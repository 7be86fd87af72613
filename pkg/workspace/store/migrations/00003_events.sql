-- +goose Up
-- The log of section 4. AUTOINCREMENT never gives a sequence twice, not even
-- after its row was deleted.
CREATE TABLE event (
	seq             INTEGER PRIMARY KEY AUTOINCREMENT,
	owner           TEXT    NOT NULL,
	type            TEXT    NOT NULL,
	conversation_id TEXT    NOT NULL,
	entity_id       TEXT    NOT NULL,
	created_at      INTEGER NOT NULL,
	-- The name of the portrait that stands in the data by its name, or empty.
	avatar          TEXT    NOT NULL,
	data            TEXT    NOT NULL,
	UNIQUE (owner, seq)
) STRICT;

-- Only these two types are ever pruned (section 4.4).
CREATE INDEX event_entity ON event (owner, type, entity_id, created_at)
	WHERE type IN ('message.changed', 'conversation.changed');

CREATE INDEX event_avatar ON event (owner, avatar) WHERE avatar <> '';
