CREATE TABLE IF NOT EXISTS config_generation (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	generation INTEGER NOT NULL,
	keys_generation INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO config_generation (id, generation, keys_generation) VALUES (1, 1, 1);

CREATE TABLE IF NOT EXISTS workspaces (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	created_at_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO workspaces (id, name, created_at_s)
	VALUES ('00000000-0000-4000-8000-000000000001', 'Default', CAST(strftime('%s', 'now') AS INTEGER));

CREATE TABLE IF NOT EXISTS users (
	id TEXT PRIMARY KEY,
	alias TEXT,
	blocked INTEGER NOT NULL DEFAULT 0,
	created_at_s INTEGER NOT NULL,
	changed_gen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS users_changed ON users (changed_gen);
INSERT OR IGNORE INTO users (id, alias, blocked, created_at_s, changed_gen)
	VALUES ('default', NULL, 0, CAST(strftime('%s', 'now') AS INTEGER), 1);

CREATE TABLE IF NOT EXISTS api_keys (
	id TEXT PRIMARY KEY,
	key_hash TEXT NOT NULL UNIQUE,
	key_prefix TEXT NOT NULL,
	key_name TEXT,
	user_id TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	is_active INTEGER NOT NULL DEFAULT 1,
	created_at_s INTEGER NOT NULL,
	expires_at_s INTEGER,
	last_used_at_s INTEGER,
	allowed_models TEXT,
	metadata TEXT,
	changed_gen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS api_keys_changed ON api_keys (changed_gen, id);
CREATE INDEX IF NOT EXISTS api_keys_listed ON api_keys (created_at_s, id);
CREATE INDEX IF NOT EXISTS api_keys_workspace ON api_keys (workspace_id);

CREATE TABLE IF NOT EXISTS key_tombstones (
	key_hash TEXT PRIMARY KEY,
	changed_gen INTEGER NOT NULL,
	deleted_at_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS key_tombstones_changed ON key_tombstones (changed_gen);

CREATE TABLE IF NOT EXISTS code_execution_policies (
	workspace_id TEXT PRIMARY KEY,
	enabled INTEGER NOT NULL,
	executor TEXT,
	default_purpose_hint TEXT,
	max_iterations INTEGER,
	exec_timeout_s INTEGER,
	image TEXT,
	tools TEXT,
	created_at_s INTEGER NOT NULL,
	updated_at_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS runtime_settings (
	setting_key TEXT PRIMARY KEY,
	setting_value TEXT NOT NULL,
	updated_at_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS files (
	id TEXT PRIMARY KEY,
	user_id TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	filename TEXT NOT NULL,
	mime_type TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	purpose TEXT NOT NULL,
	sha256 TEXT,
	storage_ref TEXT,
	provider TEXT,
	provider_instance TEXT,
	provider_container_id TEXT,
	metadata TEXT,
	created_at_ms INTEGER NOT NULL,
	expires_at_ms INTEGER,
	deleted_at_ms INTEGER,
	reap_at_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_listed ON files (user_id, workspace_id, created_at_ms, id);
CREATE INDEX IF NOT EXISTS files_listed_user ON files (user_id, created_at_ms, id);
CREATE INDEX IF NOT EXISTS files_reaped ON files (reap_at_ms, id) WHERE reap_at_ms IS NOT NULL;

CREATE TABLE IF NOT EXISTS usage_logs (
	seq INTEGER PRIMARY KEY,
	request_id TEXT NOT NULL UNIQUE,
	ts_ms INTEGER NOT NULL,
	user_id TEXT NOT NULL,
	key_id TEXT,
	workspace_id TEXT NOT NULL,
	endpoint TEXT NOT NULL,
	provider TEXT NOT NULL,
	model TEXT NOT NULL,
	status TEXT NOT NULL,
	status_code INTEGER NOT NULL,
	prompt_tokens INTEGER NOT NULL,
	completion_tokens INTEGER NOT NULL,
	cache_read_tokens INTEGER NOT NULL,
	cache_write_tokens INTEGER NOT NULL,
	reasoning_tokens INTEGER NOT NULL,
	cost_microusd INTEGER NOT NULL,
	latency_ms INTEGER NOT NULL,
	end_user TEXT,
	tools TEXT,
	error TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS usage_logs_ts ON usage_logs (ts_ms);
CREATE INDEX IF NOT EXISTS usage_logs_user ON usage_logs (user_id, ts_ms);

CREATE TABLE IF NOT EXISTS tool_results (
	user_id TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	call_id TEXT NOT NULL,
	result TEXT NOT NULL,
	expires_at_s INTEGER NOT NULL,
	PRIMARY KEY (user_id, workspace_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tool_results_expiry ON tool_results (expires_at_s);
