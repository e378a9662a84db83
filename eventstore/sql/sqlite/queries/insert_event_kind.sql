INSERT INTO event_kinds (kind, category, type, version, publishes) VALUES (?1, ?2, ?3, ?4, ?5)
