-- +goose Up
-- Local accounts and their sign-ins (sections 1.3 and 1.6). Times are
-- milliseconds since the Unix epoch, as everywhere but in session_context.
CREATE TABLE account (
	id                   TEXT    NOT NULL PRIMARY KEY,
	username             TEXT    NOT NULL,
	username_key         TEXT    NOT NULL UNIQUE,
	role                 TEXT    NOT NULL CHECK (role IN ('admin', 'user')),
	enabled              INTEGER NOT NULL CHECK (enabled IN (0, 1)),
	must_change_password INTEGER NOT NULL CHECK (must_change_password IN (0, 1)),
	digest               TEXT    NOT NULL,
	auth_version         INTEGER NOT NULL,
	created_at           INTEGER NOT NULL,
	updated_at           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
	owner        TEXT    NOT NULL REFERENCES account (id) ON DELETE CASCADE,
	hash         BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
	auth_version INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	PRIMARY KEY (owner, hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_end ON session (expires_at);
