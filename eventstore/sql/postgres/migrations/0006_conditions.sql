-- As before, but with a plan that is kept: a function in SQL is read and planned in each statement that
-- calls it.
CREATE OR REPLACE FUNCTION stela.event_matches(the_sequence bigint, types text[], tags text[])
RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = stela, pg_temp
AS $$
BEGIN
  RETURN (
    SELECT (types IS NULL OR k.type = ANY (types))
      AND (tags IS NULL OR tags <@ array_append(
        string_to_array(coalesce((SELECT string_agg(g.tags, ' ') FROM event_tags AS g
                                  WHERE g.sequence = e.sequence), ''), ' '), s.name))
    FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind JOIN streams AS s ON s.stream = e.stream
    WHERE e.sequence = the_sequence);
END $$;

-- What breaks a condition of the items from `first_item` to `last_item`, judged against all events up to
-- `before`: the item that matches and the first event that it does, NULL if there is none; 0 for
-- another tag epoch, and -1 for a position that isn't there, both with `before`. An epoch of 0 is any.
CREATE FUNCTION stela.broken_by(
  condition_after bigint, condition_epoch bigint, before bigint,
  item_types text[], item_tags text[], item_hashes bigint[], first_item integer, last_item integer,
  OUT item integer, OUT place bigint)
LANGUAGE plpgsql STABLE
SET search_path = stela, pg_temp
AS $$
DECLARE
  match bigint;
BEGIN
  IF condition_after > before THEN
    item := -1;
    place := before;
    RETURN;
  END IF;
  IF condition_epoch > 0
     AND condition_epoch <> (SELECT t.epoch FROM tag_epoch AS t WHERE t.one) THEN
    item := 0;
    place := before;
    RETURN;
  END IF;
  FOR i IN first_item .. last_item LOOP
    match := first_match(item_types[i], item_tags[i], item_hashes[i], condition_after);
    IF match IS NOT NULL AND (place IS NULL OR match < place) THEN
      item := i - first_item + 1;
      place := match;
    END IF;
  END LOOP;
END $$;

-- As before, but each member may have a condition. Programs of an older release call the function with
-- a condition of the first one.
CREATE FUNCTION stela.append_group(
  order_lock bigint, the_group uuid, for_epoch uuid, for_run uuid, now bigint,
  stream_names text[],
  kind_categories text[], kind_types text[], kind_versions integer[], kind_publishes boolean[],
  member_appends integer[], member_ids text[], member_id_checksums bigint[],
  member_causations uuid[], member_metadata text[],
  append_members integer[], append_streams integer[], append_expected bigint[],
  append_events integer[], append_published integer[],
  event_appends integer[], event_ordinals integer[], event_previous integer[],
  event_indexes integer[], event_ids uuid[], event_correlations text[], event_checksums bigint[],
  event_payloads bytea[],
  -- What the data participant made of each event, NULL if nothing; an empty array if there is none.
  event_keys bigint[],
  -- Of events with a context of their own: instead of their member's. Empty arrays: there are none.
  event_own boolean[], event_causations uuid[], event_metadata text[],
  -- The tags of each event that has any, and the hash of each tag. Empty arrays: there are none.
  tagged_events integer[], tagged_tags text[], tagged_checksums bigint[],
  hashed_events integer[], hashed_tags bigint[],
  -- What each member requires, by so many items; NULL: nothing. An epoch of 0 is any. Events of
  -- members before it aren't looked at: whoever calls knows that they match none of its items.
  condition_afters bigint[], condition_epochs bigint[], member_items integer[],
  item_types text[], item_tags text[], item_hashes bigint[],
  -- The epoch or the run is another one: nothing was written.
  OUT is_stale boolean,
  -- The last sequence before and after.
  OUT before bigint, OUT after bigint,
  -- For each member: 0 appended, 1 repeated, 2 in conflict, 3 its condition doesn't hold; the
  -- sequences that it got or had; the stored checksum of a repeated id; the append in conflict, and
  -- the version of its stream; or the item that matches, and where; 0 for another tag epoch, and -1
  -- for a position that isn't there, both with the last sequence.
  OUT outcomes integer[], OUT firsts bigint[], OUT lasts bigint[], OUT id_checksums bigint[],
  OUT conflicts integer[], OUT actual bigint[],
  -- For each append: what its stream was at before, and the last version that was to be published.
  OUT versions bigint[], OUT published bigint[],
  OUT kind_numbers integer[])
LANGUAGE plpgsql
SET search_path = stela, pg_temp
SET plan_cache_mode = force_generic_plan
-- A plan that was made while the tables were small must do when they are large.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
-- Forbidden plans look expensive enough to be compiled.
SET jit = off
AS $$
DECLARE
  numbers bigint[];
  heads bigint[];
  heads_published bigint[];
  bases bigint[];
  members CONSTANT integer := cardinality(member_appends);
  appends CONSTANT integer := cardinality(append_streams);
  known record;
  a integer := 0;
  s integer;
  ends integer;
  begins integer;
  start bigint;
  first_item integer;
  items integer := 0;
  has_ids boolean := false;
  broken record;
  row_sequences bigint[];
  row_streams bigint[];
  row_keys bigint[];
BEGIN
  -- Each statement after this one sees what was committed before the lock was given.
  IF order_lock IS NOT NULL THEN PERFORM pg_advisory_xact_lock(order_lock); END IF;
  is_stale := NOT EXISTS (SELECT FROM stela_configuration AS c, stela_runs AS r
                          WHERE c.one AND c.epoch = for_epoch
                            AND r.one AND r.run = for_run AND r.transaction = r.xmin);
  SELECT coalesce(max(e.sequence), 0) INTO before FROM events AS e;
  after := before;
  IF is_stale THEN RETURN; END IF;
  outcomes := array_fill(0, ARRAY[members]);
  conflicts := array_fill(0, ARRAY[members]);
  firsts := array_fill(0::bigint, ARRAY[members]);
  lasts := array_fill(0::bigint, ARRAY[members]);
  id_checksums := array_fill(0::bigint, ARRAY[members]);
  actual := array_fill(0::bigint, ARRAY[members]);
  versions := array_fill(0::bigint, ARRAY[appends]);
  published := array_fill(0::bigint, ARRAY[appends]);
  -- The sequence before an append's first event; below 0: it isn't carried out.
  bases := array_fill(-1::bigint, ARRAY[appends]);

  SELECT array_agg(t.stream ORDER BY n.at), array_agg(coalesce(h.version, 0) ORDER BY n.at),
         array_agg(coalesce(CASE WHEN k.publishes THEN h.version ELSE h.published_before END, 0)
                   ORDER BY n.at)
  INTO numbers, heads, heads_published
  FROM unnest(stream_names) WITH ORDINALITY AS n(name, at)
       LEFT JOIN streams AS t ON t.name = n.name
       LEFT JOIN LATERAL (SELECT e.version, e.published_before, e.kind FROM events AS e
                          WHERE e.stream = t.stream ORDER BY e.version DESC LIMIT 1) AS h ON true
       LEFT JOIN event_kinds AS k ON k.kind = h.kind;

  FOR m IN 1 .. members LOOP
    begins := a + 1;
    ends := a + member_appends[m];
    first_item := items + 1;
    items := items + member_items[m];
    IF member_ids[m] IS NOT NULL THEN
      SELECT i.first_sequence, i.last_sequence, i.checksum INTO known
      FROM append_ids AS i WHERE i.append_id = member_ids[m];
      IF FOUND THEN
        outcomes[m] := 1;
        firsts[m] := known.first_sequence;
        lasts[m] := known.last_sequence;
        id_checksums[m] := known.checksum;
        a := ends;
        CONTINUE;
      END IF;
    END IF;
    IF condition_afters[m] IS NOT NULL THEN
      broken := broken_by(condition_afters[m], condition_epochs[m], before, item_types, item_tags,
                          item_hashes, first_item, items);
      IF broken.item IS NOT NULL THEN
        outcomes[m] := 3;
        conflicts[m] := broken.item;
        actual[m] := broken.place;
        a := ends;
        CONTINUE;
      END IF;
    END IF;
    start := after;
    WHILE a < ends LOOP
      a := a + 1;
      s := append_streams[a];
      versions[a] := heads[s];
      IF append_expected[a] >= 0 AND append_expected[a] <> heads[s] THEN
        outcomes[m] := 2;
        conflicts[m] := a;
        actual[m] := heads[s];
        EXIT;
      END IF;
      published[a] := heads_published[s];
      bases[a] := after;
      after := after + append_events[a];
      heads[s] := heads[s] + append_events[a];
      IF append_published[a] > 0 THEN
        heads_published[s] := versions[a] + append_published[a];
      END IF;
    END LOOP;
    IF outcomes[m] = 2 THEN
      FOR b IN REVERSE a - 1 .. begins LOOP
        heads[append_streams[b]] := versions[b];
        heads_published[append_streams[b]] := published[b];
        bases[b] := -1;
      END LOOP;
      after := start;
      a := ends;
      CONTINUE;
    END IF;
    IF after > start THEN
      firsts[m] := start + 1;
      lasts[m] := after;
    END IF;
    IF member_ids[m] IS NOT NULL THEN
      INSERT INTO append_ids (append_id, first_sequence, last_sequence, checksum, used_at)
      VALUES (member_ids[m], firsts[m], lasts[m],
              member_id_checksums[m] # rotated(firsts[m], 7) # rotated(lasts[m], 31), now);
      has_ids := true;
    END IF;
  END LOOP;

  IF the_group IS NOT NULL AND (has_ids OR after > before) THEN
    INSERT INTO append_groups (group_id, is_void, first_sequence, last_sequence)
    VALUES (the_group, false, before + 1, after);
  END IF;
  IF after = before THEN RETURN; END IF;

  INSERT INTO streams (stream, name)
  SELECT (SELECT coalesce(max(t.stream), 0) FROM streams AS t) + row_number() OVER (ORDER BY n.at),
         n.name
  FROM unnest(stream_names) WITH ORDINALITY AS n(name, at)
  WHERE numbers[n.at] IS NULL AND heads[n.at] > 0;
  IF FOUND THEN
    SELECT array_agg(t.stream ORDER BY n.at) INTO numbers
    FROM unnest(stream_names) WITH ORDINALITY AS n(name, at)
         LEFT JOIN streams AS t ON t.name = n.name;
  END IF;

  kind_numbers := numbers_of_kinds(kind_categories, kind_types, kind_versions, kind_publishes);
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

  INSERT INTO events (sequence, stream, version, recorded_at, published_before, checksum, kind,
                      event_id, causation_id, correlation_id, metadata, payload)
  SELECT r.sequence, numbers[append_streams[r.append]], r.version, now, r.published_before,
         r.checksum # rotated(r.sequence, 7) # rotated(r.version, 31)
           # rotated(r.published_before, 53),
         kind_numbers[r.kind], r.id,
         CASE WHEN r.own THEN r.causation ELSE member_causations[append_members[r.append]] END,
         r.correlation,
         CASE WHEN r.own THEN r.metadata ELSE member_metadata[append_members[r.append]] END,
         r.payload
  FROM (SELECT e.*, bases[e.append] + e.ordinal AS sequence,
               versions[e.append] + e.ordinal AS version,
               CASE WHEN e.previous > 0 THEN versions[e.append] + e.previous
                    ELSE published[e.append] END AS published_before
        FROM unnest(event_appends, event_ordinals, event_previous, event_indexes, event_ids,
                    event_correlations, event_checksums, event_payloads, event_own,
                    event_causations, event_metadata)
             AS e(append, ordinal, previous, kind, id, correlation, checksum, payload, own,
                  causation, metadata)
        WHERE bases[e.append] >= 0) AS r;

  IF cardinality(tagged_events) > 0 THEN
    INSERT INTO event_tags (sequence, part, tags, checksum)
    SELECT r.sequence, 0, r.tags, r.checksum # rotated(r.sequence, 7)
    FROM (SELECT bases[event_appends[t.event]] + event_ordinals[t.event] AS sequence, t.tags,
                 t.checksum
          FROM unnest(tagged_events, tagged_tags, tagged_checksums) AS t(event, tags, checksum)
          WHERE bases[event_appends[t.event]] >= 0) AS r;
    INSERT INTO tag_index (tag, sequence, kind)
    SELECT t.tag, bases[event_appends[t.event]] + event_ordinals[t.event],
           kind_numbers[event_indexes[t.event]]
    FROM unnest(hashed_events, hashed_tags) AS t(event, tag)
    WHERE bases[event_appends[t.event]] >= 0
    ON CONFLICT DO NOTHING;
  END IF;

  IF cardinality(event_keys) > 0 THEN
    SELECT array_agg(bases[e.append] + e.ordinal), array_agg(numbers[append_streams[e.append]]),
           array_agg(e.key)
    INTO row_sequences, row_streams, row_keys
    FROM unnest(event_appends, event_ordinals, event_keys) AS e(append, ordinal, key)
    WHERE bases[e.append] >= 0 AND e.key IS NOT NULL;
    -- Of the participant's module, whose tables these rows go into.
    IF row_keys IS NOT NULL THEN
      PERFORM add_data_rows(row_sequences, row_streams, row_keys);
    END IF;
  END IF;
END $$;
