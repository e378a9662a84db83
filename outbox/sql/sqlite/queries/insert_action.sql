INSERT INTO outbox_actions (at, who, what, detail) VALUES (?1, ?2, ?3, ?4)
