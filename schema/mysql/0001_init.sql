CREATE TABLE IF NOT EXISTS config_generation (
	id TINYINT NOT NULL PRIMARY KEY,
	generation BIGINT NOT NULL,
	keys_generation BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO config_generation (id, generation, keys_generation) VALUES (1, 1, 1);

CREATE TABLE IF NOT EXISTS workspaces (
	id VARBINARY(64) NOT NULL PRIMARY KEY,
	name VARCHAR(255) NOT NULL,
	created_at_s BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO workspaces (id, name, created_at_s)
	VALUES ('00000000-0000-4000-8000-000000000001', 'Default', UNIX_TIMESTAMP());

CREATE TABLE IF NOT EXISTS users (
	id VARBINARY(255) NOT NULL PRIMARY KEY,
	alias VARCHAR(255) NULL,
	blocked TINYINT NOT NULL DEFAULT 0,
	created_at_s BIGINT NOT NULL,
	changed_gen BIGINT NOT NULL,
	KEY users_changed (changed_gen)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO users (id, alias, blocked, created_at_s, changed_gen)
	VALUES ('default', NULL, 0, UNIX_TIMESTAMP(), 1);

CREATE TABLE IF NOT EXISTS api_keys (
	id VARBINARY(64) NOT NULL PRIMARY KEY,
	key_hash VARBINARY(64) NOT NULL,
	key_prefix VARBINARY(32) NOT NULL,
	key_name VARCHAR(255) NULL,
	user_id VARBINARY(255) NOT NULL,
	workspace_id VARBINARY(64) NOT NULL,
	is_active TINYINT NOT NULL DEFAULT 1,
	created_at_s BIGINT NOT NULL,
	expires_at_s BIGINT NULL,
	last_used_at_s BIGINT NULL,
	allowed_models MEDIUMTEXT NULL,
	metadata MEDIUMTEXT NULL,
	changed_gen BIGINT NOT NULL,
	UNIQUE KEY api_keys_hash (key_hash),
	KEY api_keys_changed (changed_gen, id),
	KEY api_keys_listed (created_at_s, id),
	KEY api_keys_workspace (workspace_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS key_tombstones (
	key_hash VARBINARY(64) NOT NULL PRIMARY KEY,
	changed_gen BIGINT NOT NULL,
	deleted_at_s BIGINT NOT NULL,
	KEY key_tombstones_changed (changed_gen)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS code_execution_policies (
	workspace_id VARBINARY(64) NOT NULL PRIMARY KEY,
	enabled TINYINT NOT NULL,
	executor VARBINARY(16) NULL,
	default_purpose_hint TEXT NULL,
	max_iterations INT NULL,
	exec_timeout_s INT NULL,
	image VARCHAR(512) NULL,
	tools TEXT NULL,
	created_at_s BIGINT NOT NULL,
	updated_at_s BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS runtime_settings (
	setting_key VARBINARY(128) NOT NULL PRIMARY KEY,
	setting_value TEXT NOT NULL,
	updated_at_s BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS files (
	id VARBINARY(128) NOT NULL PRIMARY KEY,
	user_id VARBINARY(255) NOT NULL,
	workspace_id VARBINARY(64) NOT NULL,
	filename VARCHAR(512) NOT NULL,
	mime_type VARCHAR(255) NOT NULL,
	bytes BIGINT NOT NULL,
	purpose VARBINARY(255) NOT NULL,
	sha256 VARBINARY(64) NULL,
	storage_ref VARBINARY(255) NULL,
	provider VARBINARY(128) NULL,
	provider_instance VARBINARY(128) NULL,
	provider_container_id VARBINARY(255) NULL,
	metadata MEDIUMTEXT NULL,
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NULL,
	deleted_at_ms BIGINT NULL,
	reap_at_ms BIGINT NULL,
	KEY files_listed (user_id, workspace_id, created_at_ms, id),
	KEY files_listed_user (user_id, created_at_ms, id),
	KEY files_reaped (reap_at_ms, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS usage_logs (
	seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	request_id VARBINARY(128) NOT NULL,
	ts_ms BIGINT NOT NULL,
	user_id VARBINARY(255) NOT NULL,
	key_id VARBINARY(128) NULL,
	workspace_id VARBINARY(128) NOT NULL,
	endpoint VARBINARY(128) NOT NULL,
	provider VARBINARY(128) NOT NULL,
	model VARBINARY(255) NOT NULL,
	status VARBINARY(128) NOT NULL,
	status_code INT NOT NULL,
	prompt_tokens BIGINT NOT NULL,
	completion_tokens BIGINT NOT NULL,
	cache_read_tokens BIGINT NOT NULL,
	cache_write_tokens BIGINT NOT NULL,
	reasoning_tokens BIGINT NOT NULL,
	cost_microusd BIGINT NOT NULL,
	latency_ms BIGINT NOT NULL,
	end_user VARCHAR(255) NULL,
	tools TEXT NULL,
	error TEXT NULL,
	UNIQUE KEY usage_logs_request (request_id),
	KEY usage_logs_ts (ts_ms),
	KEY usage_logs_user (user_id, ts_ms)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tool_results (
	user_id VARBINARY(255) NOT NULL,
	workspace_id VARBINARY(64) NOT NULL,
	call_id VARBINARY(255) NOT NULL,
	result MEDIUMTEXT NOT NULL,
	expires_at_s BIGINT NOT NULL,
	PRIMARY KEY (user_id, workspace_id, call_id),
	KEY tool_results_expiry (expires_at_s)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
