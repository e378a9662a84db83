SELECT block FROM kind_blocks WHERE kind = ?1 AND block <= ?2 ORDER BY block DESC LIMIT ?3
