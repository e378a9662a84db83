-- What append_group does, for one event without an append id: it comes most often, and without arrays
-- the server takes half the time, all of it under the order lock. Its answer begins as that of
-- append_group_plain does, and so do its session and its commit.
CREATE FUNCTION stela.append_one(
  order_lock bigint, the_group uuid, for_epoch uuid, for_run uuid, now bigint,
  stream_name text,
  kind_category text, kind_type text, kind_version bigint, kind_publishes bigint,
  expected bigint, event_causation uuid, event_metadata text,
  the_event uuid, event_correlation text, event_checksum bigint, event_payload bytea,
  -- What the data participant made of the event, NULL if nothing.
  event_key bigint,
  -- As in append_group; NULL: none.
  tags text, tags_checksum bigint, tag_hashes bigint[],
  condition_after bigint, condition_epoch bigint,
  item_types text[], item_tags text[], item_hashes bigint[],
  bell bigint,
  OUT is_stale boolean, OUT before bigint, OUT after bigint,
  OUT bases bigint[], OUT versions bigint[], OUT published bigint[], OUT kind_numbers integer[],
  OUT is_awaited boolean,
  -- What breaks the condition.
  OUT broken_item integer, OUT broken_at bigint)
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  number bigint;
  head bigint := 0;
  head_published bigint := 0;
  the_kind integer;
  ignored text;
BEGIN
  -- Assignments, which are evaluated without a statement. Each statement after them sees what was
  -- committed before the lock was given.
  ignored := pg_advisory_xact_lock(order_lock);
  ignored := set_config('synchronous_commit', 'off', true);
  SELECT NOT EXISTS (SELECT FROM stela_configuration AS c, stela_runs AS r
                     WHERE c.one AND c.epoch = for_epoch
                       AND r.one AND r.run = for_run AND r.transaction = r.xmin),
         coalesce((SELECT max(e.sequence) FROM events AS e), 0),
         (SELECT k.kind FROM event_kinds AS k
          WHERE k.category = kind_category AND k.type = kind_type AND k.version = kind_version
            AND k.publishes = (kind_publishes <> 0)),
         (SELECT t.stream FROM streams AS t WHERE t.name = stream_name)
  INTO is_stale, before, the_kind, number;
  after := before;
  IF is_stale THEN RETURN; END IF;

  IF condition_after IS NOT NULL THEN
    SELECT b.item, b.place INTO broken_item, broken_at
    FROM broken_by(condition_after, condition_epoch, before, item_types, item_tags, item_hashes, 1,
                   cardinality(item_types)) AS b;
    IF broken_item IS NOT NULL THEN RETURN; END IF;
  END IF;

  IF number IS NOT NULL THEN
    SELECT e.version, CASE WHEN k.publishes THEN e.version ELSE e.published_before END
    INTO head, head_published
    FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
    WHERE e.stream = number ORDER BY e.version DESC LIMIT 1;
  END IF;
  versions := ARRAY[head];
  published := ARRAY[head_published];
  kind_numbers := ARRAY[the_kind];
  IF expected >= 0 AND expected <> head THEN
    bases := ARRAY[-1];
    RETURN;
  END IF;
  bases := ARRAY[before];
  after := before + 1;

  IF number IS NULL THEN
    INSERT INTO streams (stream, name)
    VALUES ((SELECT coalesce(max(t.stream), 0) + 1 FROM streams AS t), stream_name)
    RETURNING stream INTO number;
  END IF;
  IF the_kind IS NULL THEN
    INSERT INTO event_kinds (kind, category, type, version, publishes)
    VALUES ((SELECT coalesce(max(k.kind), 0) + 1 FROM event_kinds AS k), kind_category, kind_type,
            kind_version, kind_publishes <> 0)
    RETURNING kind INTO the_kind;
    kind_numbers := ARRAY[the_kind];
  END IF;
  INSERT INTO append_groups (group_id, is_void, first_sequence, last_sequence)
  VALUES (the_group, false, after, after);
  INSERT INTO events (sequence, stream, version, recorded_at, published_before, checksum, kind,
                      event_id, causation_id, correlation_id, metadata, payload)
  VALUES (after, number, head + 1, now, head_published,
          event_checksum # rotated(after, 7) # rotated(head + 1, 31) # rotated(head_published, 53),
          the_kind, the_event, event_causation, event_correlation, event_metadata, event_payload);
  IF tags IS NOT NULL THEN
    WITH noted AS (INSERT INTO event_tags (sequence, part, tags, checksum)
                   VALUES (after, 0, append_one.tags, tags_checksum # rotated(after, 7)))
    INSERT INTO tag_index (tag, sequence, kind)
    SELECT unnest(tag_hashes), after, the_kind ON CONFLICT DO NOTHING;
  END IF;
  -- Of the participant's module, whose table this row goes into.
  IF event_key IS NOT NULL THEN
    ignored := add_plain_row(after, number, event_key);
  END IF;
  is_awaited := NOT pg_try_advisory_xact_lock(bell);
END $$;
