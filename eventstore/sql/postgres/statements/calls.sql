-- Calls of Stela's functions that take lists of rows: appends, each in one round trip, and matches
-- of queries. The migrations explain their parameters and results.

-- row: kind
-- takes: category text, type text, version int4, publishes bool

-- row: group_event
-- `append` and `kind` count from 1, `ordinal` from 0 in its append; `previous` is the version of
-- the last published one before, among those of the append; or 0.
-- takes: append int4, ordinal int4, previous int4, kind int4, id uuid, correlation text?,
--        checksum int, payload blob

-- row: member
-- takes: appends int4, append_id text?, id_checksum int, causation uuid?, metadata text?

-- row: stream_append
-- takes: member int4, stream int4, expected int, events int4, published int4

-- row: own_context
-- takes: is_own bool, causation uuid?, metadata text?

-- row: event_tags
-- takes: event int4, tags text, checksum int

-- row: tag_hash
-- takes: event int4, tag int

-- row: condition
-- takes: after int?, epoch int?, items int4

-- row: item
-- An item of a query; its words are separated by spaces.
-- takes: types text?, tags text?, hash int

-- name: append_group
-- doing: the append
-- takes: order_lock int?, group uuid?, epoch uuid, run uuid, now time, streams text[],
--        kinds kind[], members member[], appends stream_append[], events group_event[],
--        keys int[], contexts own_context[], tags event_tags[], hashes tag_hash[],
--        conditions condition[], items item[]
-- gives: is_stale bool, before int, after int, outcomes int[], firsts int[], lasts int[],
--        id_checksums int[], conflicts int[], actual int[], versions int[], published int[],
--        kind_numbers int[]
SELECT is_stale, before, after, outcomes, firsts, lasts, id_checksums, conflicts, actual, versions,
       published, kind_numbers
FROM stela.append_group(:order_lock, :group, :epoch, :run, :now, :streams, :kinds, :members,
                        :appends, :events, :keys, :contexts, :tags, :hashes, :conditions, :items);

-- row: plain_append
-- takes: expected int, events int4, published int4, causation uuid?, metadata text?

-- name: append_group_plain
-- doing: the append
-- takes: order_lock int, group uuid, epoch uuid, run uuid, now time, streams text[], kinds kind[],
--        appends plain_append[], events group_event[], keys int[], bell int
-- gives: is_stale bool, before int, after int, bases int[], versions int[], published int[],
--        kind_numbers int[], is_awaited bool
SELECT is_stale, before, after, bases, versions, published, kind_numbers, is_awaited
FROM stela.append_group_plain(:order_lock, :group, :epoch, :run, :now, :streams, :kinds, :appends,
                              :events, :keys, :bell);

-- name: append_one
-- doing: the append
-- takes: order_lock int, group uuid, epoch uuid, run uuid, now time, stream text, category text,
--        type text, version int, publishes int, expected int, causation uuid?, metadata text?,
--        id uuid, correlation text?, checksum int, payload blob, key int?, tags text?,
--        tags_checksum int?, hashes int[], condition_after int?, condition_epoch int?,
--        items item[], bell int
-- gives: is_stale bool, before int, after int, bases int[], versions int[], published int[],
--        kind_numbers int[], is_awaited bool, broken_item int?, broken_at int
SELECT is_stale, before, after, bases, versions, published, kind_numbers, is_awaited, broken_item,
       broken_at
FROM stela.append_one(:order_lock, :group, :epoch, :run, :now, :stream, :category, :type, :version,
                      :publishes, :expected, :causation, :metadata, :id, :correlation, :checksum,
                      :payload, :key, :tags, :tags_checksum, :hashes, :condition_after,
                      :condition_epoch, :items, :bell);

-- name: guard_keys
-- Fails if a key that seals the events is forgotten.
-- takes: order_lock int, keys blob[], newest_key int
SELECT stela.guard_keys(:order_lock, :keys, :newest_key);

-- row: place
-- gives: sequence int

-- name: places
-- The sequences of events that match a query.
-- doing: finding events by a query
-- takes: items item[], after int, to int, limit int
-- gives: place
SELECT DISTINCT m.s AS sequence FROM unnest(:items) AS i(types, tags, hash),
       LATERAL stela.matching(i.types, i.tags, i.hash, :after, :to, false, :limit) AS m(s)
ORDER BY m.s LIMIT :limit;

-- name: places_backward
-- doing: finding events by a query
-- takes: items item[], after int, to int, limit int
-- gives: place
SELECT DISTINCT m.s AS sequence FROM unnest(:items) AS i(types, tags, hash),
       LATERAL stela.matching(i.types, i.tags, i.hash, :after, :to, true, :limit) AS m(s)
ORDER BY m.s DESC LIMIT :limit;
