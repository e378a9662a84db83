INSERT INTO events (sequence, stream, version, kind, recorded_at, event_id, correlation_id,
                    causation_id, published_before, metadata, checksum, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
