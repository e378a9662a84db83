SELECT sequence FROM events WHERE sequence BETWEEN ?1 AND ?2 AND event_id = ?3
