-- The first events after `low`, up to `high`, that match an item, or the last ones: `most` or fewer,
-- in no order. Types and tags are separated by spaces, NULL for any; the hash is that of the first
-- tag. It looks at each event as `event_matches` does: to call that takes five times as long.
CREATE OR REPLACE FUNCTION stela.matching(item_types text, item_tags text, hash bigint, low bigint, high bigint,
                               is_backward boolean, most bigint)
RETURNS SETOF bigint
LANGUAGE plpgsql STABLE
SET search_path = stela, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  types CONSTANT text[] := string_to_array(item_types, ' ');
  tags CONSTANT text[] := string_to_array(item_tags, ' ');
  kinds CONSTANT integer[] := CASE WHEN types IS NOT NULL THEN ARRAY(
    SELECT k.kind FROM event_kinds AS k WHERE k.type = ANY (types)) END;
  the_stream bigint;
BEGIN
  IF cardinality(kinds) = 0 THEN RETURN; END IF;
  IF tags IS NULL AND is_backward THEN
    RETURN QUERY SELECT e.sequence FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
                 WHERE e.sequence > low AND e.sequence <= high
                   AND (types IS NULL OR k.type = ANY (types))
                 ORDER BY e.sequence DESC LIMIT most;
    RETURN;
  ELSIF tags IS NULL THEN
    RETURN QUERY SELECT e.sequence FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
                 WHERE e.sequence > low AND e.sequence <= high
                   AND (types IS NULL OR k.type = ANY (types))
                 ORDER BY e.sequence LIMIT most;
    RETURN;
  END IF;
  SELECT s.stream INTO the_stream FROM streams AS s WHERE s.name = tags[1];
  IF is_backward THEN
    RETURN QUERY SELECT t.sequence FROM tag_index AS t
                 WHERE t.tag = hash AND t.sequence > low AND t.sequence <= high
                   AND (kinds IS NULL OR t.kind = ANY (kinds))
                   AND tags <@ (
                     SELECT array_append(string_to_array(coalesce((
                       SELECT string_agg(g.tags, ' ') FROM event_tags AS g
                       WHERE g.sequence = t.sequence), ''), ' '), s.name)
                     FROM events AS e JOIN streams AS s ON s.stream = e.stream
                     WHERE e.sequence = t.sequence)
                 ORDER BY t.sequence DESC LIMIT most;
    RETURN QUERY SELECT e.sequence FROM events AS e
                 WHERE e.stream = the_stream AND e.sequence > low AND e.sequence <= high
                   AND (kinds IS NULL OR e.kind = ANY (kinds))
                   AND (cardinality(tags) = 1 OR tags <@ array_append(string_to_array(coalesce((
                     SELECT string_agg(g.tags, ' ') FROM event_tags AS g
                     WHERE g.sequence = e.sequence), ''), ' '), tags[1]))
                 ORDER BY e.version DESC LIMIT most;
  ELSE
    RETURN QUERY SELECT t.sequence FROM tag_index AS t
                 WHERE t.tag = hash AND t.sequence > low AND t.sequence <= high
                   AND (kinds IS NULL OR t.kind = ANY (kinds))
                   AND tags <@ (
                     SELECT array_append(string_to_array(coalesce((
                       SELECT string_agg(g.tags, ' ') FROM event_tags AS g
                       WHERE g.sequence = t.sequence), ''), ' '), s.name)
                     FROM events AS e JOIN streams AS s ON s.stream = e.stream
                     WHERE e.sequence = t.sequence)
                 ORDER BY t.sequence LIMIT most;
    RETURN QUERY SELECT e.sequence FROM events AS e
                 WHERE e.stream = the_stream AND e.sequence > low AND e.sequence <= high
                   AND (kinds IS NULL OR e.kind = ANY (kinds))
                   AND (cardinality(tags) = 1 OR tags <@ array_append(string_to_array(coalesce((
                     SELECT string_agg(g.tags, ' ') FROM event_tags AS g
                     WHERE g.sequence = e.sequence), ''), ' '), tags[1]))
                 ORDER BY e.version LIMIT most;
  END IF;
END $$;
