-- How many events are to be published, and how many are in each state.
SELECT (SELECT count(*) FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
        WHERE k.publishes = 1
          AND e.sequence >= (SELECT min(first_sequence) FROM outbox_generations)),
       (SELECT count(*) FROM outbox_messages),
       (SELECT count(*) FROM outbox_redeliveries WHERE kind = 'retry'),
       (SELECT count(*) FROM outbox_parked),
       (SELECT coalesce(sum(discarded), 0) FROM outbox_partitions),
       (SELECT coalesce(sum(published), 0) FROM outbox_partitions)
