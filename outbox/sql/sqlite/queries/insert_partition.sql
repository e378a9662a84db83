INSERT INTO outbox_partitions (partition) VALUES (?1)
ON CONFLICT (partition) DO UPDATE SET retired_at = NULL
