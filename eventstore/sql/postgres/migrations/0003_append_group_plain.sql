-- What append_group does, for the appends that come nearly always: each member of the group has one
-- append, to a stream of its own, without an append id, a condition, tags, or contexts of its events'
-- own. Its session has the planner's settings that append_group sets for itself, and its commit isn't
-- flushed.
CREATE FUNCTION stela.append_group_plain(
  order_lock bigint, the_group uuid, for_epoch uuid, for_run uuid, now bigint,
  stream_names text[],
  kind_categories text[], kind_types text[], kind_versions integer[], kind_publishes boolean[],
  append_expected bigint[], append_events integer[], append_published integer[],
  append_causations uuid[], append_metadata text[],
  event_appends integer[], event_ordinals integer[], event_previous integer[],
  event_indexes integer[], event_ids uuid[], event_correlations text[], event_checksums bigint[],
  event_payloads bytea[], event_keys bigint[], bell bigint,
  -- The epoch or the run is another one: nothing was written.
  OUT is_stale boolean,
  -- The last sequence before and after.
  OUT before bigint, OUT after bigint,
  -- For each append: the sequence before its first event, or -1 if it is in conflict; what its stream
  -- was at before, and the last version that was to be published.
  OUT bases bigint[], OUT versions bigint[], OUT published bigint[],
  OUT kind_numbers integer[],
  -- A follower sleeps, and holds the bell.
  OUT is_awaited boolean)
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  numbers bigint[];
  next_stream bigint;
  first_new bigint;
  ignored text;
BEGIN
  -- Assignments, which are evaluated without a statement. Each statement after them sees what was
  -- committed before the lock was given.
  ignored := pg_advisory_xact_lock(order_lock);
  ignored := set_config('synchronous_commit', 'off', true);
  SELECT NOT EXISTS (SELECT FROM stela_configuration AS c, stela_runs AS r
                     WHERE c.one AND c.epoch = for_epoch
                       AND r.one AND r.run = for_run AND r.transaction = r.xmin),
         (SELECT coalesce(max(e.sequence), 0) FROM events AS e),
         (SELECT array_agg(q.kind)
          FROM (SELECT k.kind
                FROM unnest(kind_categories, kind_types, kind_versions, kind_publishes)
                       WITH ORDINALITY AS n(category, type, version, publishes, at)
                     LEFT JOIN event_kinds AS k
                       ON k.category = n.category AND k.type = n.type
                          AND k.version = n.version AND k.publishes = n.publishes
                ORDER BY n.at) AS q),
         array_agg(h.stream), array_agg(h.version), array_agg(h.published)
  INTO is_stale, before, kind_numbers, numbers, versions, published
  FROM (SELECT t.stream, coalesce(e.version, 0) AS version,
               coalesce(CASE WHEN k.publishes THEN e.version ELSE e.published_before END, 0)
                 AS published
        FROM unnest(stream_names) WITH ORDINALITY AS n(name, at)
             LEFT JOIN streams AS t ON t.name = n.name
             LEFT JOIN LATERAL (SELECT e.version, e.published_before, e.kind FROM events AS e
                                WHERE e.stream = t.stream ORDER BY e.version DESC LIMIT 1) AS e
               ON true
             LEFT JOIN event_kinds AS k ON k.kind = e.kind
        ORDER BY n.at) AS h;
  after := before;
  IF is_stale THEN RETURN; END IF;

  FOR a IN 1 .. cardinality(append_events) LOOP
    IF append_expected[a] >= 0 AND append_expected[a] <> versions[a] THEN
      bases[a] := -1;
    ELSE
      bases[a] := after;
      after := after + append_events[a];
    END IF;
  END LOOP;
  IF after = before THEN RETURN; END IF;

  IF array_position(numbers, NULL) IS NOT NULL THEN
    next_stream := (SELECT coalesce(max(t.stream), 0) + 1 FROM streams AS t);
    first_new := next_stream;
    FOR a IN 1 .. cardinality(append_events) LOOP
      IF numbers[a] IS NULL AND bases[a] >= 0 AND append_events[a] > 0 THEN
        numbers[a] := next_stream;
        next_stream := next_stream + 1;
      END IF;
    END LOOP;
    INSERT INTO streams (stream, name)
    SELECT n.stream, n.name FROM unnest(numbers, stream_names) AS n(stream, name)
    WHERE n.stream >= first_new;
  END IF;

  IF array_position(kind_numbers, NULL) IS NOT NULL THEN
    INSERT INTO event_kinds (kind, category, type, version, publishes)
    SELECT (SELECT coalesce(max(k.kind), 0) FROM event_kinds AS k)
             + row_number() OVER (ORDER BY n.at), n.category, n.type, n.version, n.publishes
    FROM unnest(kind_categories, kind_types, kind_versions, kind_publishes) WITH ORDINALITY
         AS n(category, type, version, publishes, at)
    WHERE kind_numbers[n.at] IS NULL
      AND EXISTS (SELECT FROM unnest(event_indexes, event_appends) AS e(kind, append)
                  WHERE e.kind = n.at AND bases[e.append] >= 0);
    kind_numbers := numbers_of_kinds(kind_categories, kind_types, kind_versions, kind_publishes);
  END IF;

  WITH noted AS (INSERT INTO append_groups (group_id, is_void, first_sequence, last_sequence)
                 VALUES (the_group, false, before + 1, after))
  INSERT INTO events (sequence, stream, version, recorded_at, published_before, checksum, kind,
                      event_id, causation_id, correlation_id, metadata, payload)
  SELECT r.sequence, numbers[r.append], r.version, now, r.published_before,
         r.checksum # rotated(r.sequence, 7) # rotated(r.version, 31)
           # rotated(r.published_before, 53),
         kind_numbers[r.kind], r.id, append_causations[r.append], r.correlation,
         append_metadata[r.append], r.payload
  FROM (SELECT e.*, bases[e.append] + e.ordinal AS sequence,
               versions[e.append] + e.ordinal AS version,
               CASE WHEN e.previous > 0 THEN versions[e.append] + e.previous
                    ELSE published[e.append] END AS published_before
        -- In step, row by row: as functions in FROM each array would be copied first.
        FROM (SELECT unnest(event_appends) AS append, unnest(event_ordinals) AS ordinal,
                     unnest(event_previous) AS previous, unnest(event_indexes) AS kind,
                     unnest(event_ids) AS id, unnest(event_correlations) AS correlation,
                     unnest(event_checksums) AS checksum, unnest(event_payloads) AS payload) AS e
        WHERE bases[e.append] >= 0) AS r;
  -- Of the participant's module, whose tables these rows go into.
  IF cardinality(event_keys) > 0 THEN
    ignored := add_plain_rows(bases, numbers, event_appends, event_ordinals, event_keys);
  END IF;
  is_awaited := NOT pg_try_advisory_xact_lock(bell);
END $$;
