CREATE TABLE IF NOT EXISTS file_copies (
	file_id TEXT NOT NULL,
	account TEXT NOT NULL,
	copy_id TEXT NOT NULL,
	expires_at_s INTEGER NOT NULL,
	PRIMARY KEY (file_id, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS file_copies_expiry ON file_copies (expires_at_s);
