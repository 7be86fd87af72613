-- +goose Up
-- The library (sections 2.12, 3.7 and 9.5).
CREATE TABLE file (
	item_id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner           TEXT    NOT NULL,
	id              TEXT    NOT NULL,
	name            TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 240),
	-- The folded name, for searches.
	name_key        TEXT    NOT NULL,
	mime_type       TEXT    NOT NULL,
	kind            TEXT    NOT NULL CHECK (kind IN ('image', 'video', 'text', 'file')),
	size            INTEGER NOT NULL CHECK (size >= 0),
	sender          TEXT    NOT NULL CHECK (sender IN ('user', 'agent')),
	source_path     TEXT    NOT NULL,
	profile         TEXT    NOT NULL,
	-- The first message that the file was linked to, and its chat, or empty.
	conversation_id TEXT    NOT NULL,
	message_id      TEXT    NOT NULL,
	-- Where the bytes are: a path below the owner's folder.
	path            TEXT    NOT NULL,
	digest          TEXT    NOT NULL,
	created_at      INTEGER NOT NULL,
	UNIQUE (owner, id)
) STRICT;

CREATE INDEX file_list ON file (owner, created_at DESC, id);
CREATE INDEX file_path ON file (owner, path);

CREATE TABLE message_file (
	owner      TEXT    NOT NULL,
	message_id TEXT    NOT NULL,
	ordinal    INTEGER NOT NULL CHECK (ordinal >= 0),
	file_id    TEXT    NOT NULL,
	PRIMARY KEY (owner, message_id, ordinal),
	UNIQUE (owner, message_id, file_id),
	FOREIGN KEY (owner, message_id) REFERENCES message (owner, id),
	FOREIGN KEY (owner, file_id) REFERENCES file (owner, id)
) STRICT, WITHOUT ROWID;

-- What each owner's library holds, so that quotas and statistics need no count.
CREATE TABLE file_usage (
	owner TEXT    NOT NULL PRIMARY KEY,
	files INTEGER NOT NULL,
	bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER file_added AFTER INSERT ON file BEGIN
	INSERT INTO file_usage (owner, files, bytes) VALUES (new.owner, 1, new.size)
	ON CONFLICT (owner) DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER file_removed AFTER DELETE ON file BEGIN
	UPDATE file_usage SET files = files - 1, bytes = bytes - old.size WHERE owner = old.owner;
END;
-- +goose StatementEnd

CREATE INDEX message_file_of ON message_file (owner, file_id);
