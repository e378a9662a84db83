INSERT OR IGNORE INTO outbox_partitions (partition) VALUES (?1)
