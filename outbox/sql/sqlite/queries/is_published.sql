SELECT EXISTS (SELECT 1 FROM events WHERE stream = ?1 AND version = ?2 AND sequence >= ?3)
