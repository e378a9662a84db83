INSERT INTO outbox_settings (one, fence, leasing) VALUES (1, ?1, ?2)
