SELECT 1 FROM kind_blocks WHERE kind = ?1 AND block = ?2
