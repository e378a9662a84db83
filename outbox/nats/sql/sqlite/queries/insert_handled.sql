INSERT INTO inbox_handled (consumer, event_id, handled_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING
