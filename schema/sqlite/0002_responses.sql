CREATE TABLE IF NOT EXISTS responses (
	id TEXT PRIMARY KEY,
	user_id TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	provider TEXT NOT NULL,
	created_at_s INTEGER NOT NULL,
	expires_at_s INTEGER,
	input_bytes INTEGER NOT NULL,
	response_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS responses_expiry ON responses (expires_at_s) WHERE expires_at_s IS NOT NULL;

CREATE TABLE IF NOT EXISTS response_chunks (
	response_id TEXT NOT NULL,
	part INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	bytes BLOB NOT NULL,
	PRIMARY KEY (response_id, part, seq)
) STRICT;

CREATE TABLE IF NOT EXISTS response_items (
	item_id TEXT NOT NULL,
	response_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	PRIMARY KEY (item_id, response_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS response_items_response ON response_items (response_id);
