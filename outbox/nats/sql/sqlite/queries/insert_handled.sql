INSERT INTO inbox_handled (consumer, event_id, handled_at, knows_held) VALUES (?1, ?2, ?3, 1)
ON CONFLICT DO NOTHING
