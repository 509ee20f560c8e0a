CREATE TABLE IF NOT EXISTS responses (
	id VARBINARY(128) NOT NULL PRIMARY KEY,
	user_id VARBINARY(255) NOT NULL,
	workspace_id VARBINARY(64) NOT NULL,
	provider VARBINARY(255) NOT NULL,
	created_at_s BIGINT NOT NULL,
	expires_at_s BIGINT NULL,
	input_bytes BIGINT NOT NULL,
	response_bytes BIGINT NOT NULL,
	KEY responses_expiry (expires_at_s)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS response_chunks (
	response_id VARBINARY(128) NOT NULL,
	part INT NOT NULL,
	seq INT NOT NULL,
	bytes MEDIUMBLOB NOT NULL,
	PRIMARY KEY (response_id, part, seq)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS response_items (
	item_id VARBINARY(128) NOT NULL,
	response_id VARBINARY(128) NOT NULL,
	user_id VARBINARY(255) NOT NULL,
	workspace_id VARBINARY(64) NOT NULL,
	PRIMARY KEY (item_id, response_id),
	KEY response_items_response (response_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
