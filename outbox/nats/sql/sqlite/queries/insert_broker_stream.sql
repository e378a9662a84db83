INSERT INTO inbox_broker_streams (consumer, broker_stream) VALUES (?1, ?2)
ON CONFLICT DO UPDATE SET gone_since = NULL WHERE gone_since IS NOT NULL
