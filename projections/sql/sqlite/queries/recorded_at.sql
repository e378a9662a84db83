SELECT recorded_at FROM events WHERE sequence = ?1
