CREATE TABLE IF NOT EXISTS file_copies (
	file_id VARBINARY(128) NOT NULL,
	account VARBINARY(64) NOT NULL,
	copy_id VARBINARY(255) NOT NULL,
	expires_at_s BIGINT NOT NULL,
	PRIMARY KEY (file_id, account),
	KEY file_copies_expiry (expires_at_s)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
