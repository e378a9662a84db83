-- What of the outbox moves with a store, as JSON: a flag is 0 or 1, or true or false. The partitions
-- come last: triggers count in their rows what the other tables get.

-- table: outbox_generations

-- table: outbox_messages

-- table: outbox_parked

-- table: outbox_discarded

-- table: outbox_redeliveries

-- table: outbox_batches

-- table: outbox_actions

-- table: outbox_partitions
-- stays: owner, lease_until, lease_ttl

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
