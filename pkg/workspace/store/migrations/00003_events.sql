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
	-- The portrait that stands in the data, when it is kept beside it.
	avatar          BLOB,
	data            TEXT    NOT NULL,
	UNIQUE (owner, seq)
) STRICT;

-- Only these two types are ever pruned (section 4.4).
CREATE INDEX event_entity ON event (owner, type, entity_id, created_at)
	WHERE type IN ('message.changed', 'conversation.changed');

-- Large portraits of events, each once, by their SHA-256: without this each
-- message in a chat with a portrait would store the portrait again.
CREATE TABLE event_avatar (
	owner  TEXT NOT NULL,
	digest BLOB NOT NULL CHECK (length(digest) = 32),
	value  TEXT NOT NULL,
	PRIMARY KEY (owner, digest)
) STRICT;
