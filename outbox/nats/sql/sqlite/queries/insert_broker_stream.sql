INSERT INTO inbox_broker_streams (consumer, broker_stream) VALUES (?1, ?2) ON CONFLICT DO NOTHING
