-- The outcomes of groups whose commit was in doubt, and of repeated appends.

-- name: enter_group
-- takes: group uuid
-- gives: before int, epoch uuid, run uuid
SELECT before, epoch, run FROM stela.enter_group(:group);

-- name: settle_group
-- takes: group uuid
-- gives: is_void bool, first int, last int
SELECT is_void, first, last FROM stela.settle_group(:group);

-- name: appended_streams
-- The streams of an append that took these sequences, and what it appended to each.
-- doing: finding a repeated append
-- takes: first int, last int
-- gives: name text, events int, version int
SELECT s.name, count(*) AS events, max(e.version) AS version
FROM stela.events AS e JOIN stela.streams AS s ON s.stream = e.stream
WHERE e.sequence BETWEEN :first AND :last GROUP BY s.name;

-- name: appended_events
-- doing: finding an append
-- takes: first int, last int
-- gives: event_id uuid, sequence int, version int
SELECT event_id, sequence, version FROM stela.events WHERE sequence BETWEEN :first AND :last;

-- name: transaction_number
-- gives: number text
SELECT pg_current_xact_id()::text AS number;

-- name: transaction_number_if_any
-- gives: number text
SELECT pg_current_xact_id_if_assigned()::text AS number;

-- name: transaction_status
-- takes: number text
-- gives: status text
SELECT pg_xact_status(:number::xid8) AS status;
