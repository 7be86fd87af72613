-- +goose Up
-- The entities of section 2. Every key begins with the owner, so that a query
-- without one cannot use it. What is large stands last in its row: SQLite reads
-- a row from its front.

-- Large portraits, each once, by "sha256:" and the digest in hex. Other tables
-- hold that name in place of the portrait: each message changes the row of its
-- chat and appends an event with the whole chat, and neither is to write the
-- portrait again.
CREATE TABLE portrait (
	owner TEXT NOT NULL,
	name  TEXT NOT NULL CHECK (name GLOB 'sha256:*'),
	value TEXT NOT NULL CHECK (length(value) <= 2800000),
	PRIMARY KEY (owner, name)
) STRICT;

CREATE TABLE agent (
	owner        TEXT    NOT NULL,
	id           TEXT    NOT NULL,
	name         TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
	name_key     TEXT    NOT NULL,
	node_id      TEXT    NOT NULL,
	profile      TEXT    NOT NULL CHECK (length(profile) BETWEEN 1 AND 256),
	archived     INTEGER NOT NULL CHECK (archived IN (0, 1)),
	revision     INTEGER NOT NULL CHECK (revision >= 1),
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	-- The portrait, or its name in portrait.
	avatar       TEXT    NOT NULL CHECK (length(avatar) <= 256),
	instructions TEXT    NOT NULL CHECK (length(instructions) <= 24000),
	PRIMARY KEY (owner, id),
	UNIQUE (owner, name_key)
) STRICT;

CREATE TABLE conversation (
	owner                TEXT    NOT NULL,
	id                   TEXT    NOT NULL,
	kind                 TEXT    NOT NULL CHECK (kind IN ('direct', 'group')),
	-- The one agent of a direct chat; a group has none.
	agent_id             TEXT,
	name                 TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
	member_ids           TEXT    NOT NULL CHECK (json_array_length(member_ids) BETWEEN 1 AND 8),
	administrator_id     TEXT    NOT NULL,
	mode                 TEXT    NOT NULL CHECK (mode IN ('host', 'free')),
	auto_reply_ids       TEXT    NOT NULL CHECK (json_array_length(auto_reply_ids) <= 8),
	max_reply_rounds     INTEGER NOT NULL CHECK (max_reply_rounds = -1 OR max_reply_rounds BETWEEN 1 AND 100),
	archived             INTEGER NOT NULL CHECK (archived IN (0, 1)),
	pinned               INTEGER NOT NULL CHECK (pinned IN (0, 1)),
	read_seq             INTEGER NOT NULL CHECK (read_seq BETWEEN 0 AND last_seq),
	last_seq             INTEGER NOT NULL,
	unread_count         INTEGER NOT NULL CHECK (unread_count >= 0),
	last_message_at      INTEGER,
	preview              TEXT    NOT NULL,
	active_run_id        TEXT    NOT NULL,
	active_agent_id      TEXT    NOT NULL,
	active_run_status    TEXT    NOT NULL,
	active_agent_states  TEXT    NOT NULL,
	queued_message_count INTEGER NOT NULL CHECK (queued_message_count >= 0),
	created_at           INTEGER NOT NULL,
	updated_at           INTEGER NOT NULL,
	avatar               TEXT    NOT NULL CHECK (length(avatar) <= 256),
	member_roles         TEXT    NOT NULL,
	instructions         TEXT    NOT NULL CHECK (length(instructions) <= 24000),
	PRIMARY KEY (owner, id),
	UNIQUE (owner, agent_id),
	FOREIGN KEY (owner, agent_id) REFERENCES agent (owner, id),
	FOREIGN KEY (owner, administrator_id) REFERENCES agent (owner, id),
	CHECK ((kind = 'direct') = (agent_id IS NOT NULL))
) STRICT;

-- The order of the list (section 3.2).
CREATE INDEX conversation_list ON conversation (owner, pinned DESC, coalesce(last_message_at, created_at) DESC, id);

CREATE TABLE message (
	owner           TEXT    NOT NULL,
	id              TEXT    NOT NULL,
	conversation_id TEXT    NOT NULL,
	seq             INTEGER NOT NULL CHECK (seq >= 1),
	role            TEXT    NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
	agent_id        TEXT    NOT NULL,
	agent_name      TEXT    NOT NULL,
	run_id          TEXT    NOT NULL,
	task_id         TEXT    NOT NULL,
	hidden          INTEGER NOT NULL CHECK (hidden IN (0, 1)),
	status          TEXT    NOT NULL CHECK (status IN ('queued', 'streaming', 'complete', 'failed', 'interrupted', 'uncertain')),
	error           TEXT    NOT NULL,
	created_at      INTEGER NOT NULL,
	content         TEXT    NOT NULL,
	reasoning       TEXT    NOT NULL,
	attachments     TEXT    NOT NULL,
	tools           TEXT    NOT NULL,
	PRIMARY KEY (owner, id),
	UNIQUE (owner, conversation_id, seq),
	FOREIGN KEY (owner, conversation_id) REFERENCES conversation (owner, id)
) STRICT;

-- History, and what may be unread, without a look at hidden rows (section 2.6).
CREATE INDEX message_visible ON message (owner, conversation_id, seq) WHERE hidden = 0;
CREATE INDEX message_hidden ON message (owner, conversation_id, id) WHERE hidden = 1;
CREATE INDEX message_unread ON message (owner, conversation_id, seq)
	WHERE hidden = 0 AND role <> 'user' AND status IN ('complete', 'failed', 'interrupted');

CREATE TABLE run (
	owner           TEXT    NOT NULL,
	id              TEXT    NOT NULL,
	conversation_id TEXT    NOT NULL,
	message_id      TEXT    NOT NULL,
	-- The sequence of the user message, which orders the runs of a chat.
	message_seq     INTEGER NOT NULL,
	mention_ids     TEXT    NOT NULL,
	active_agent_id TEXT    NOT NULL,
	status          TEXT    NOT NULL CHECK (status IN ('queued', 'running', 'waiting', 'uncertain', 'complete', 'failed', 'interrupted')),
	round           INTEGER NOT NULL CHECK (round >= 0),
	error           TEXT    NOT NULL,
	stop_requested  INTEGER NOT NULL CHECK (stop_requested IN (0, 1)),
	-- The one notice that the limit of rounds was reached, or empty (section 6.7).
	limit_notice_id TEXT    NOT NULL DEFAULT '',
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	PRIMARY KEY (owner, id),
	UNIQUE (owner, message_id),
	FOREIGN KEY (owner, conversation_id) REFERENCES conversation (owner, id),
	FOREIGN KEY (owner, message_id) REFERENCES message (owner, id)
) STRICT;

CREATE INDEX run_live ON run (owner, conversation_id, message_seq)
	WHERE status NOT IN ('complete', 'failed', 'interrupted');

CREATE TABLE task (
	owner               TEXT    NOT NULL,
	id                  TEXT    NOT NULL,
	run_id              TEXT    NOT NULL,
	conversation_id     TEXT    NOT NULL,
	agent_id            TEXT    NOT NULL,
	message_id          TEXT    NOT NULL,
	trigger_seq         INTEGER NOT NULL,
	depth               INTEGER NOT NULL CHECK (depth >= 0),
	batch_id            TEXT    NOT NULL,
	review_of           TEXT,
	reply_mode          TEXT    NOT NULL CHECK (reply_mode IN ('mentioned', 'automatic')),
	required_reply      INTEGER NOT NULL CHECK (required_reply IN (0, 1)),
	status              TEXT    NOT NULL CHECK (status IN ('queued', 'running', 'waiting', 'uncertain', 'complete', 'failed', 'interrupted')),
	current_message_id  TEXT    NOT NULL,
	submitted           INTEGER NOT NULL CHECK (submitted IN (0, 1)),
	cancel_requested    INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
	planned             INTEGER NOT NULL CHECK (planned IN (0, 1)),
	silent              INTEGER NOT NULL CHECK (silent IN (0, 1)),
	had_interaction     INTEGER NOT NULL CHECK (had_interaction IN (0, 1)),
	error               TEXT    NOT NULL,
	context_through_seq INTEGER NOT NULL,
	attempt             INTEGER NOT NULL CHECK (attempt >= 0),
	created_at          INTEGER NOT NULL,
	-- The snapshot of the group at the start of the task, or empty.
	launch              TEXT    NOT NULL,
	PRIMARY KEY (owner, id),
	UNIQUE (owner, run_id, review_of),
	FOREIGN KEY (owner, run_id) REFERENCES run (owner, id)
) STRICT;

CREATE INDEX task_run ON task (owner, run_id, created_at, id);
CREATE INDEX task_occupied ON task (owner, conversation_id)
	WHERE status IN ('running', 'waiting', 'uncertain');
-- What the scheduler looks at, of all owners.
CREATE INDEX task_open ON task (created_at, id)
	WHERE status NOT IN ('complete', 'failed', 'interrupted') OR planned = 0;

CREATE TABLE interaction (
	owner               TEXT    NOT NULL,
	id                  TEXT    NOT NULL,
	conversation_id     TEXT    NOT NULL,
	run_id              TEXT    NOT NULL,
	task_id             TEXT    NOT NULL,
	agent_id            TEXT    NOT NULL,
	kind                TEXT    NOT NULL CHECK (kind IN ('approval', 'clarification')),
	resolved            INTEGER NOT NULL CHECK (resolved IN (0, 1)),
	response_state      TEXT    NOT NULL CHECK (response_state IN ('', 'sending', 'sent', 'uncertain')),
	upstream_request_id TEXT    NOT NULL,
	created_at          INTEGER NOT NULL,
	message             TEXT    NOT NULL,
	choices             TEXT    NOT NULL,
	answer              TEXT    NOT NULL,
	PRIMARY KEY (owner, id),
	UNIQUE (owner, task_id, upstream_request_id),
	FOREIGN KEY (owner, task_id) REFERENCES task (owner, id)
) STRICT;

CREATE INDEX interaction_open ON interaction (owner, conversation_id, created_at, id) WHERE resolved = 0;

CREATE TABLE binding (
	owner           TEXT    NOT NULL,
	conversation_id TEXT    NOT NULL,
	agent_id        TEXT    NOT NULL,
	node_id         TEXT    NOT NULL,
	profile         TEXT    NOT NULL,
	stored_id       TEXT    NOT NULL,
	runtime_id      TEXT    NOT NULL,
	aliases         TEXT    NOT NULL,
	run_id          TEXT    NOT NULL,
	task_id         TEXT    NOT NULL,
	message_id      TEXT    NOT NULL,
	context_seq     INTEGER NOT NULL CHECK (context_seq >= 0),
	PRIMARY KEY (owner, conversation_id, agent_id),
	FOREIGN KEY (owner, conversation_id) REFERENCES conversation (owner, id)
) STRICT;

-- Every id that a binding has or had, for the guard of section 9.3, which asks
-- without an owner.
CREATE TABLE binding_session (
	owner           TEXT NOT NULL,
	conversation_id TEXT NOT NULL,
	agent_id        TEXT NOT NULL,
	session_id      TEXT NOT NULL,
	PRIMARY KEY (owner, conversation_id, agent_id, session_id),
	FOREIGN KEY (owner, conversation_id, agent_id) REFERENCES binding (owner, conversation_id, agent_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX binding_session_id ON binding_session (session_id);

-- What a request id stood for (section 3.3).
CREATE TABLE command (
	owner       TEXT NOT NULL,
	request_id  TEXT NOT NULL,
	run_id      TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	PRIMARY KEY (owner, request_id),
	FOREIGN KEY (owner, run_id) REFERENCES run (owner, id)
) STRICT, WITHOUT ROWID;

-- Usage of the context of workspace conversations, as JSON (section 2.16).
CREATE TABLE context_usage (
	owner           TEXT NOT NULL,
	conversation_id TEXT NOT NULL,
	data            TEXT NOT NULL,
	PRIMARY KEY (owner, conversation_id),
	FOREIGN KEY (owner, conversation_id) REFERENCES conversation (owner, id)
) STRICT, WITHOUT ROWID;
