-- The rows of the outbox that move with a store, as JSON: a flag is 0 or 1, or true or false, and a
-- stream is a name. Pages come after the keys `a`, `b` and `c`; tables with fewer keys have 0 in
-- the first ones.

-- row: saved
-- gives: a int, b int, c int, line text

-- name: save_settings
-- gives: line text
SELECT json_object('fence', s.fence, 'leasing', s.leasing, 'partitioner', p.detail) AS line
FROM outbox_settings AS s JOIN stela_participants AS p ON p.name = 'outbox' WHERE s.one = 1;
-- engine: postgres
SELECT json_build_object('fence', s.fence, 'leasing', s.leasing, 'partitioner', p.detail)::text
       AS line
FROM outbox_settings AS s JOIN stela_participants AS p ON p.name = 'outbox' WHERE s.one = 1;

-- name: owned_partition
-- A partition that a worker owns; on a server, by the server's clock.
-- takes: now time
-- gives: partition int, owner text
SELECT partition, owner FROM outbox_partitions
WHERE owner IS NOT NULL AND lease_until > :now ORDER BY partition LIMIT 1;
-- engine: postgres
SELECT partition, owner FROM outbox_partitions
WHERE owner IS NOT NULL AND :now IS NOT NULL
  AND lease_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
ORDER BY partition LIMIT 1;

-- name: last_redelivery
-- The last number that was assigned.
-- gives: number int
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox_redeliveries'), 0) AS number;
-- engine: postgres
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS number
FROM outbox_redeliveries_redelivery_seq;

-- name: keep_redelivery
-- takes: number int
INSERT INTO outbox_redeliveries (redelivery, partition, generation, sequence, stream, kind,
                                 requested_at)
VALUES (:number, -1, 0, 0, 0, 'retry', 0);
-- engine: postgres
SELECT setval('outbox_redeliveries_redelivery_seq', :number);

-- name: forget_kept_redelivery
DELETE FROM outbox_redeliveries WHERE partition = -1;

-- name: keep_actions
-- Gives the next action its own number.
UPDATE outbox_actions SET action = action WHERE action < 0;
-- engine: postgres
SELECT setval('outbox_actions_action_seq', max(action)) FROM outbox_actions HAVING count(*) > 0;

-- name: register_outbox
-- takes: detail text, at time, checksum int
INSERT INTO stela_participants (name, detail, registered_at, checksum)
VALUES ('outbox', :detail, :at, :checksum);
-- engine: postgres
INSERT INTO stela_participants (name, detail, registered_at)
SELECT 'outbox', :detail, :at WHERE :checksum = :checksum;

-- name: change_epoch
-- Makes others read the participants again.
UPDATE stela_participants SET detail = detail WHERE name = 'outbox';
-- engine: postgres
UPDATE stela_configuration SET epoch = gen_random_uuid();

-- name: save_generations
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT 0 AS a, 0 AS b, t.generation AS c,
       json_object('generation', t.generation, 'first_sequence', t.first_sequence,
                   'partition_count', t.partition_count) AS line
FROM outbox_generations AS t
WHERE t.generation > :c AND :a = :a AND :b = :b
ORDER BY t.generation LIMIT :limit;
-- engine: postgres
SELECT 0::bigint AS a, 0::bigint AS b, t.generation AS c, to_jsonb(t)::text AS line
FROM outbox_generations AS t
WHERE t.generation > :c AND :a = :a AND :b = :b
ORDER BY t.generation LIMIT :limit;

-- name: load_generations
-- takes: rows text
INSERT INTO outbox_generations (generation, first_sequence, partition_count)
SELECT value ->> 'generation', value ->> 'first_sequence', value ->> 'partition_count'
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_generations
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_generations, j.line) AS r;

-- name: save_messages
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT 0 AS a, t.partition AS b, t.sequence AS c,
       json_object('partition', t.partition, 'sequence', t.sequence, 'stream', s.name,
                   'attempts', t.attempts, 'next_attempt_at', t.next_attempt_at,
                   'last_error', t.last_error) AS line
FROM outbox_messages AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE (t.partition, t.sequence) > (:b, :c) AND :a = :a
ORDER BY t.partition, t.sequence LIMIT :limit;
-- engine: postgres
SELECT 0::bigint AS a, t.partition AS b, t.sequence AS c,
       (to_jsonb(t) || jsonb_build_object('stream', s.name))::text AS line
FROM outbox_messages AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE (t.partition, t.sequence) > (:b, :c) AND :a = :a
ORDER BY t.partition, t.sequence LIMIT :limit;

-- name: load_messages
-- takes: rows text
INSERT INTO outbox_messages (partition, sequence, stream, attempts, next_attempt_at,
                             last_error)
SELECT value ->> 'partition', value ->> 'sequence',
       (SELECT s.stream FROM streams AS s WHERE s.name = value ->> 'stream'),
       value ->> 'attempts', value ->> 'next_attempt_at',
       value ->> 'last_error'
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_messages
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_messages,
  j.line || jsonb_build_object('stream',
  (SELECT s.stream FROM streams AS s WHERE s.name = j.line ->> 'stream'))) AS r;

-- name: save_parked
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT 0 AS a, 0 AS b, t.sequence AS c,
       json_object('stream', s.name, 'sequence', t.sequence, 'partition', t.partition,
                   'parked_at', t.parked_at, 'attempts', t.attempts, 'reason', t.reason,
                   'error', t.error, 'was_lost', t.was_lost, 'failure', t.failure,
                   'failure_class', t.failure_class) AS line
FROM outbox_parked AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE t.sequence > :c AND :a = :a AND :b = :b
ORDER BY t.sequence LIMIT :limit;
-- engine: postgres
SELECT 0::bigint AS a, 0::bigint AS b, t.sequence AS c,
       (to_jsonb(t) || jsonb_build_object('stream', s.name))::text AS line
FROM outbox_parked AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE t.sequence > :c AND :a = :a AND :b = :b
ORDER BY t.sequence LIMIT :limit;

-- name: load_parked
-- takes: rows text
INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error,
                           was_lost, failure, failure_class)
SELECT (SELECT s.stream FROM streams AS s WHERE s.name = value ->> 'stream'),
       value ->> 'sequence', value ->> 'partition', value ->> 'parked_at',
       value ->> 'attempts', value ->> 'reason', value ->> 'error', value ->> 'was_lost',
       value ->> 'failure', value ->> 'failure_class'
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_parked
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_parked,
  j.line || jsonb_build_object('stream',
  (SELECT s.stream FROM streams AS s WHERE s.name = j.line ->> 'stream'))) AS r;

-- name: save_discarded
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT 0 AS a, 0 AS b, t.sequence AS c,
       json_object('sequence', t.sequence, 'stream', s.name, 'partition', t.partition,
                   'discarded_at', t.discarded_at, 'reason', t.reason, 'error', t.error,
                   'attempts', t.attempts, 'failure_class', t.failure_class) AS line
FROM outbox_discarded AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE t.sequence > :c AND :a = :a AND :b = :b
ORDER BY t.sequence LIMIT :limit;
-- engine: postgres
SELECT 0::bigint AS a, 0::bigint AS b, t.sequence AS c,
       (to_jsonb(t) || jsonb_build_object('stream', s.name))::text AS line
FROM outbox_discarded AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE t.sequence > :c AND :a = :a AND :b = :b
ORDER BY t.sequence LIMIT :limit;

-- name: load_discarded
-- takes: rows text
INSERT INTO outbox_discarded (sequence, stream, partition, discarded_at, reason, error, attempts,
                              failure_class)
SELECT value ->> 'sequence',
       (SELECT s.stream FROM streams AS s WHERE s.name = value ->> 'stream'),
       value ->> 'partition', value ->> 'discarded_at', value ->> 'reason',
       value ->> 'error', coalesce(value ->> 'attempts', 0), value ->> 'failure_class'
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_discarded
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_discarded,
  '{"attempts": 0}' || j.line || jsonb_build_object('stream',
  (SELECT s.stream FROM streams AS s WHERE s.name = j.line ->> 'stream'))) AS r;

-- name: save_redeliveries
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT 0 AS a, 0 AS b, t.redelivery AS c,
       json_object('redelivery', t.redelivery, 'partition', t.partition,
                   'generation', t.generation, 'sequence', t.sequence, 'stream', s.name,
                   'kind', t.kind, 'requested_at', t.requested_at, 'attempts', t.attempts,
                   'last_error', t.last_error, 'was_lost', t.was_lost) AS line
FROM outbox_redeliveries AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE t.redelivery > :c AND :a = :a AND :b = :b
ORDER BY t.redelivery LIMIT :limit;
-- engine: postgres
SELECT 0::bigint AS a, 0::bigint AS b, t.redelivery AS c,
       (to_jsonb(t) || jsonb_build_object('stream', s.name))::text AS line
FROM outbox_redeliveries AS t LEFT JOIN streams AS s ON s.stream = t.stream
WHERE t.redelivery > :c AND :a = :a AND :b = :b
ORDER BY t.redelivery LIMIT :limit;

-- name: load_redeliveries
-- takes: rows text
INSERT INTO outbox_redeliveries (redelivery, partition, generation, sequence, stream, kind,
                                 requested_at, attempts, last_error, was_lost)
SELECT value ->> 'redelivery', value ->> 'partition', value ->> 'generation',
       value ->> 'sequence',
       (SELECT s.stream FROM streams AS s WHERE s.name = value ->> 'stream'),
       value ->> 'kind', value ->> 'requested_at', value ->> 'attempts',
       value ->> 'last_error', value ->> 'was_lost'
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_redeliveries OVERRIDING SYSTEM VALUE
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_redeliveries,
  j.line || jsonb_build_object('stream',
  (SELECT s.stream FROM streams AS s WHERE s.name = j.line ->> 'stream'))) AS r;

-- name: save_batches
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT t.partition AS a, t.last_sequence AS b, t.redelivery AS c,
       json_object('partition', t.partition, 'last_sequence', t.last_sequence,
                   'redelivery', t.redelivery, 'first_sequence', t.first_sequence,
                   'count', t.count, 'published_at', t.published_at,
                   'first_broker', t.first_broker, 'last_broker', t.last_broker) AS line
FROM outbox_batches AS t
WHERE (t.partition, t.last_sequence, t.redelivery) > (:a, :b, :c)
ORDER BY t.partition, t.last_sequence, t.redelivery LIMIT :limit;
-- engine: postgres
SELECT t.partition AS a, t.last_sequence AS b, t.redelivery AS c, to_jsonb(t)::text AS line
FROM outbox_batches AS t
WHERE (t.partition, t.last_sequence, t.redelivery) > (:a, :b, :c)
ORDER BY t.partition, t.last_sequence, t.redelivery LIMIT :limit;

-- name: load_batches
-- takes: rows text
INSERT INTO outbox_batches (partition, last_sequence, redelivery, first_sequence, count,
                            published_at, first_broker, last_broker)
SELECT value ->> 'partition', value ->> 'last_sequence', value ->> 'redelivery',
       value ->> 'first_sequence', value ->> 'count', value ->> 'published_at',
       value ->> 'first_broker', value ->> 'last_broker'
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_batches
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_batches, j.line) AS r;

-- name: save_actions
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT 0 AS a, 0 AS b, t.action AS c,
       json_object('action', t.action, 'at', t.at, 'who', t.who, 'what', t.what,
                   'detail', t.detail, 'item_of', t.item_of, 'selection', t.selection,
                   'planned', t.planned, 'done', t.done, 'changed', t.changed,
                   'state', t.state) AS line
FROM outbox_actions AS t
WHERE t.action > :c AND :a = :a AND :b = :b
ORDER BY t.action LIMIT :limit;
-- engine: postgres
SELECT 0::bigint AS a, 0::bigint AS b, t.action AS c, to_jsonb(t)::text AS line
FROM outbox_actions AS t
WHERE t.action > :c AND :a = :a AND :b = :b
ORDER BY t.action LIMIT :limit;

-- name: load_actions
-- takes: rows text
INSERT INTO outbox_actions (action, at, who, what, detail, item_of, selection, planned, done,
                            changed, state)
SELECT value ->> 'action', value ->> 'at', value ->> 'who', value ->> 'what',
       value ->> 'detail', coalesce(value ->> 'item_of', 0),
       coalesce(value ->> 'selection', ''), value ->> 'planned', value ->> 'done',
       value ->> 'changed', coalesce(value ->> 'state', 'done')
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_actions OVERRIDING SYSTEM VALUE
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_actions,
  '{"item_of": 0, "selection": "", "state": "done"}' || j.line) AS r;

-- name: save_partitions
-- takes: a int, b int, c int, limit int
-- gives: saved
SELECT 0 AS a, 0 AS b, t.partition AS c,
       json_object('partition', t.partition, 'owner', t.owner, 'epoch', t.epoch,
                   'lease_until', t.lease_until, 'published_through', t.published_through,
                   'broker_sequence', t.broker_sequence, 'broker_id', t.broker_id,
                   'flight_through', t.flight_through, 'flight_count', t.flight_count,
                   'removed', t.removed, 'published', t.published,
                   'redeliveries', t.redeliveries, 'parked', t.parked,
                   'discarded', t.discarded, 'attempts', t.attempts,
                   'next_attempt_at', t.next_attempt_at, 'last_error', t.last_error,
                   'stopped', t.stopped, 'stopped_detail', t.stopped_detail,
                   'retired_at', t.retired_at, 'adopted', t.adopted,
                   'moved_at', t.moved_at, 'stopped_at', t.stopped_at,
                   'backing_since', t.backing_since, 'failures', t.failures,
                   'takeovers', t.takeovers, 'uncompared_since', t.uncompared_since,
                   'broker_first', t.broker_first, 'failure_class', t.failure_class) AS line
FROM outbox_partitions AS t
WHERE t.partition > :c AND :a = :a AND :b = :b
ORDER BY t.partition LIMIT :limit;
-- engine: postgres
SELECT 0::bigint AS a, 0::bigint AS b, t.partition AS c, to_jsonb(t)::text AS line
FROM outbox_partitions AS t
WHERE t.partition > :c AND :a = :a AND :b = :b
ORDER BY t.partition LIMIT :limit;

-- name: load_partitions
-- takes: rows text
INSERT INTO outbox_partitions (partition, owner, epoch, lease_until, published_through,
                               broker_sequence, broker_id, flight_through, flight_count,
                               removed, published, redeliveries, parked, discarded, attempts,
                               next_attempt_at, last_error, stopped, stopped_detail, retired_at,
                               adopted, moved_at, stopped_at, backing_since,
                               failures, takeovers, uncompared_since, broker_first,
                               failure_class)
SELECT value ->> 'partition', NULL, value ->> 'epoch', 0, value ->> 'published_through',
       value ->> 'broker_sequence', value ->> 'broker_id', value ->> 'flight_through',
       value ->> 'flight_count', value ->> 'removed', value ->> 'published',
       value ->> 'redeliveries', value ->> 'parked',
       value ->> 'discarded', value ->> 'attempts', value ->> 'next_attempt_at',
       value ->> 'last_error', value ->> 'stopped', value ->> 'stopped_detail',
       value ->> 'retired_at', value ->> 'adopted', value ->> 'moved_at', value ->> 'stopped_at',
       value ->> 'backing_since',
       coalesce(value ->> 'failures', 0), coalesce(value ->> 'takeovers', 0),
       value ->> 'uncompared_since', coalesce(value ->> 'broker_first', 1),
       value ->> 'failure_class'
FROM json_each(:rows);
-- engine: postgres
INSERT INTO outbox_partitions
SELECT r.* FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::outbox_partitions,
  '{"failures": 0, "takeovers": 0, "broker_first": 1}' || j.line || '{"owner": null, "lease_until": 0, "lease_ttl": 0,
              "drained_through": 0}') AS r;
