-- Events: appending to the table events, and reading it.

-- row: event
-- gives: sequence int, stream int, version int, kind int, recorded_at time, event_id blob,
--        correlation_id text, causation_id blob, published_before int, metadata text, checksum int,
--        payload blob

-- name: insert_event
-- takes: sequence int, stream int, version int, kind int, recorded_at time, event_id blob,
--        correlation_id text?, causation_id blob?, published_before int, metadata text?, checksum int,
--        payload blob
INSERT INTO events (sequence, stream, version, kind, recorded_at, event_id, correlation_id,
                    causation_id, published_before, metadata, checksum, payload)
VALUES (:sequence, :stream, :version, :kind, :recorded_at, :event_id, :correlation_id,
        :causation_id, :published_before, :metadata, :checksum, :payload);

-- name: last_sequence
-- gives: last int
SELECT coalesce(max(sequence), 0) AS last FROM events;

-- name: last_indexed_sequence
-- The last sequence in the index of streams and versions: reads the entire index.
-- gives: last int
SELECT coalesce(max(sequence), 0) AS last FROM events INDEXED BY sqlite_autoindex_events_1;

-- name: appended_versions
-- The versions that the append with the sequences from `first` to `last` gave to each stream.
-- takes: first int, last int
-- gives: name text, version int
SELECT s.name, e.version FROM events AS e JOIN streams AS s ON s.stream = e.stream
WHERE e.sequence BETWEEN :first AND :last;

-- name: read_stream
-- takes: name text, from int, to int, up_to int, limit int
-- gives: event
SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = :name)
  AND version BETWEEN :from AND :to AND sequence <= :up_to
ORDER BY version LIMIT :limit;

-- name: read_stream_backward
-- takes: name text, from int, to int, up_to int, limit int
-- gives: event
SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = :name)
  AND version BETWEEN :from AND :to AND sequence <= :up_to
ORDER BY version DESC LIMIT :limit;

-- name: read_all
-- takes: from int, to int, limit int
-- gives: event
SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE sequence BETWEEN :from AND :to
ORDER BY sequence LIMIT :limit;

-- name: read_all_backward
-- takes: from int, to int, limit int
-- gives: event
SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE sequence BETWEEN :from AND :to
ORDER BY sequence DESC LIMIT :limit;

-- name: read_all_filtered
-- Categories, types and streams are JSON arrays, or NULL for all.
-- takes: from int, to int, limit int, categories text?, types text?, since time, until time,
--        streams text?
-- gives: event
SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE sequence BETWEEN :from AND :to
  AND kind IN (SELECT k.kind FROM event_kinds AS k
               WHERE (:categories IS NULL
                      OR k.category IN (SELECT value FROM json_each(:categories)))
                 AND (:types IS NULL OR k.type IN (SELECT value FROM json_each(:types))))
  AND recorded_at BETWEEN :since AND :until
  AND (:streams IS NULL OR stream IN (SELECT s.stream FROM streams AS s
                                      WHERE s.name IN (SELECT value FROM json_each(:streams))))
ORDER BY sequence LIMIT :limit;

-- name: read_all_filtered_backward
-- As read_all_filtered.
-- takes: from int, to int, limit int, categories text?, types text?, since time, until time,
--        streams text?
-- gives: event
SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE sequence BETWEEN :from AND :to
  AND kind IN (SELECT k.kind FROM event_kinds AS k
               WHERE (:categories IS NULL
                      OR k.category IN (SELECT value FROM json_each(:categories)))
                 AND (:types IS NULL OR k.type IN (SELECT value FROM json_each(:types))))
  AND recorded_at BETWEEN :since AND :until
  AND (:streams IS NULL OR stream IN (SELECT s.stream FROM streams AS s
                                      WHERE s.name IN (SELECT value FROM json_each(:streams))))
ORDER BY sequence DESC LIMIT :limit;
