-- +goose Up
-- Nodes, secrets and voices (sections 2.13, 2.15 and 9.2). What is sealed is
-- bound to its owner, kind and id.
CREATE TABLE node (
	owner      TEXT    NOT NULL,
	id         TEXT    NOT NULL,
	name       TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
	url        TEXT    NOT NULL CHECK (length(url) <= 2048),
	created_at INTEGER NOT NULL,
	PRIMARY KEY (owner, id)
) STRICT;

CREATE TABLE secret (
	owner  TEXT NOT NULL,
	kind   TEXT NOT NULL,
	id     TEXT NOT NULL,
	sealed BLOB NOT NULL,
	PRIMARY KEY (owner, kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE selected_voice (
	owner    TEXT NOT NULL PRIMARY KEY,
	voice_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Snapshots of native sessions (sections 2.16 and 3.10). observed_at is the
-- client's clock in its own unit, updated_at counts seconds.
CREATE TABLE session_context (
	owner       TEXT NOT NULL,
	profile     TEXT NOT NULL,
	session_id  TEXT NOT NULL,
	observed_at REAL NOT NULL CHECK (observed_at >= 0),
	updated_at  REAL NOT NULL,
	data        TEXT NOT NULL,
	PRIMARY KEY (owner, profile, session_id)
) STRICT, WITHOUT ROWID;
