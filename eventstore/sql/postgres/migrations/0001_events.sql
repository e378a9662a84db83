-- The event store on PostgreSQL. Tables and columns have the names and meanings of SQLite's, which
-- docs/schema.md describes; but numbers that the server gives out are folded into checksums, see
-- append_group.

-- What SQLite has and PostgreSQL spells otherwise, so that one text of a statement does for both.
CREATE FUNCTION stela.max(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN greatest(a, b);
CREATE FUNCTION stela.min(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN least(a, b);
CREATE FUNCTION stela.instr(whole text, part text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN strpos(whole, part);

CREATE TABLE stela.stela_facts (
  name  text COLLATE "C" NOT NULL PRIMARY KEY,
  value text NOT NULL
);

-- Who must take part in every append.
CREATE TABLE stela.stela_participants (
  name          text COLLATE "C" NOT NULL PRIMARY KEY,
  detail        text NOT NULL,
  registered_at bigint NOT NULL
);

-- Another epoch whenever the participants change: an append names the one that it was made for. No
-- number, as that could be given out again after a crash of the server.
CREATE TABLE stela.stela_configuration (
  one   boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  epoch uuid NOT NULL
);
INSERT INTO stela.stela_configuration (epoch) VALUES (gen_random_uuid());

-- The server's run. It empties an unlogged table when it recovers from a crash, and on a standby
-- that is promoted: as long as the row stands, nothing that was committed has been lost.
CREATE UNLOGGED TABLE stela.stela_runs (
  one boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  run uuid NOT NULL
);

-- A standby has no run, and shows what is on its disk only. Which one it is, the transaction says
-- that asks: a pooler may give each to another connection of the server's.
CREATE FUNCTION stela.server_run(OUT is_standby boolean, OUT run uuid) LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
BEGIN
  is_standby := pg_is_in_recovery();
  IF is_standby THEN RETURN; END IF;
  SELECT r.run INTO run FROM stela_runs AS r WHERE r.one;
END $$;

CREATE TABLE stela.streams (
  stream bigint NOT NULL PRIMARY KEY,
  name   text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE stela.event_kinds (
  kind      integer NOT NULL PRIMARY KEY,
  category  text COLLATE "C" NOT NULL,
  type      text COLLATE "C" NOT NULL,
  version   integer NOT NULL CHECK (version >= 1),
  publishes boolean NOT NULL,
  UNIQUE (category, type, version, publishes)
);

CREATE TABLE stela.events (
  sequence         bigint NOT NULL PRIMARY KEY CHECK (sequence >= 1),
  stream           bigint NOT NULL,
  version          bigint NOT NULL CHECK (version >= 1),
  recorded_at      bigint NOT NULL,
  published_before bigint NOT NULL,
  checksum         bigint NOT NULL,
  kind             integer NOT NULL,
  event_id         uuid NOT NULL,
  causation_id     uuid,
  correlation_id   text,
  metadata         text,
  payload          bytea NOT NULL,
  UNIQUE (stream, version)
);

-- Appends that came with an id of the caller's, so that they can be repeated.
CREATE TABLE stela.append_ids (
  append_id      text COLLATE "C" NOT NULL PRIMARY KEY,
  first_sequence bigint NOT NULL,
  last_sequence  bigint NOT NULL,
  checksum       bigint NOT NULL,
  used_at        bigint NOT NULL
);

-- A row for each commit of appends, so that a client that lost its answer can settle it: it finds
-- the row, or writes it as void, and the commit fails if it still comes.
CREATE TABLE stela.append_groups (
  group_id       uuid NOT NULL PRIMARY KEY,
  is_void        boolean NOT NULL,
  first_sequence bigint,
  last_sequence  bigint,
  written_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The newest snapshot of each stream that has one.
CREATE TABLE stela.snapshots (
  stream        bigint NOT NULL PRIMARY KEY,
  version       bigint NOT NULL,
  sequence      bigint NOT NULL,
  state_version integer NOT NULL,
  taken_at      bigint NOT NULL,
  checksum      bigint NOT NULL,
  payload       bytea NOT NULL
);

CREATE FUNCTION stela.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are append-only', replace(TG_TABLE_NAME, '_', ' ')
    USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER events_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON stela.events
  FOR EACH STATEMENT EXECUTE FUNCTION stela.refuse_change();
CREATE TRIGGER streams_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON stela.streams
  FOR EACH STATEMENT EXECUTE FUNCTION stela.refuse_change();
CREATE TRIGGER event_kinds_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON stela.event_kinds
  FOR EACH STATEMENT EXECUTE FUNCTION stela.refuse_change();

-- SQL of the user's runs with stela_sql.guard set, and only reads Stela's tables: whoever owns them
-- has all rights, so that rights can't say so.
CREATE FUNCTION stela.refuse_users_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'it writes ''%'', and that table is Stela''s', TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege';
END $$;

-- For each table that isn't guarded yet; after each migration.
CREATE FUNCTION stela.guard_tables() RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  the_table regclass;
BEGIN
  FOR the_table IN
    SELECT c.oid FROM pg_class AS c
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r'
      AND NOT EXISTS (SELECT FROM pg_trigger AS t
                      WHERE t.tgrelid = c.oid AND t.tgname = 'belongs_to_stela')
    ORDER BY c.oid
  LOOP
    EXECUTE 'CREATE TRIGGER belongs_to_stela BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON '
      || the_table || ' FOR EACH STATEMENT '
      'WHEN (coalesce(current_setting(''stela_sql.guard'', true), '''') NOT IN ('''', ''off'')) '
      'EXECUTE FUNCTION refuse_users_change()';
  END LOOP;
END $$;

-- What an event's checksum has of a number that only the server knows: rotated, so that no two of
-- them cancel each other. None is negative.
CREATE FUNCTION stela.rotated(number bigint, bits integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (number << bits) | (number >> (64 - bits));

-- Appends for all members of a group, under the order lock, which the caller takes in a statement
-- of its own before. A member has appends, an append has events of one stream; all are numbered
-- from 1.
-- A member that conflicts, or whose append id is known, writes nothing; the others aren't touched.
-- Streams and kinds occur once, append ids too. No group_id inside a transaction of the user's,
-- which has entered its group before.
CREATE FUNCTION stela.append_group(
  the_group uuid, for_epoch uuid, now bigint,
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
  -- The epoch is another one: nothing was written.
  OUT is_stale boolean,
  -- The last sequence before and after.
  OUT before bigint, OUT after bigint,
  -- For each member: 0 appended, 1 repeated, 2 in conflict; the sequences that it got or had; the
  -- stored checksum of a repeated id; the append in conflict, and the version of its stream.
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
  has_ids boolean := false;
  row_sequences bigint[];
  row_streams bigint[];
  row_keys bigint[];
BEGIN
  is_stale := for_epoch IS DISTINCT FROM (SELECT c.epoch FROM stela_configuration AS c WHERE c.one);
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
         kind_numbers[r.kind], r.id, member_causations[append_members[r.append]], r.correlation,
         member_metadata[append_members[r.append]], r.payload
  FROM (SELECT e.*, bases[e.append] + e.ordinal AS sequence,
               versions[e.append] + e.ordinal AS version,
               CASE WHEN e.previous > 0 THEN versions[e.append] + e.previous
                    ELSE published[e.append] END AS published_before
        FROM unnest(event_appends, event_ordinals, event_previous, event_indexes, event_ids,
                    event_correlations, event_checksums, event_payloads)
             AS e(append, ordinal, previous, kind, id, correlation, checksum, payload)
        WHERE bases[e.append] >= 0) AS r;

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

CREATE FUNCTION stela.numbers_of_kinds(categories text[], types text[], versions integer[],
                                       publishes boolean[]) RETURNS integer[]
LANGUAGE sql STABLE
SET search_path = stela, pg_temp
AS $$
  SELECT array_agg(k.kind ORDER BY n.at)
  FROM unnest(categories, types, versions, publishes) WITH ORDINALITY
         AS n(category, type, version, publishes, at)
       LEFT JOIN event_kinds AS k ON k.category = n.category AND k.type = n.type
                                 AND k.version = n.version AND k.publishes = n.publishes
$$;

-- For a transaction of the user's, once it has the order lock.
CREATE FUNCTION stela.enter_group(the_group uuid, OUT before bigint, OUT epoch uuid)
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
BEGIN
  INSERT INTO append_groups (group_id, is_void) VALUES (the_group, false);
  SELECT coalesce(max(e.sequence), 0) INTO before FROM events AS e;
  SELECT c.epoch INTO epoch FROM stela_configuration AS c WHERE c.one;
END $$;

-- Removes the oldest groups, which nobody asks for any more: nobody waits for a lock, or for the
-- answer to a commit, for a day. Their ids begin with the time. With the owner's rights: others may
-- remove no younger one.
CREATE FUNCTION stela.prune_groups(at_once integer) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = stela, pg_temp
AS $$
  DELETE FROM append_groups
  WHERE group_id IN (SELECT g.group_id FROM append_groups AS g ORDER BY g.group_id LIMIT at_once)
    AND written_at < clock_timestamp() - interval '2 days';
$$;

-- Whether the group is committed; if it isn't, it never will be. Under the order lock.
CREATE FUNCTION stela.settle_group(the_group uuid, OUT is_void boolean, OUT first bigint,
                                   OUT last bigint)
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
BEGIN
  INSERT INTO append_groups (group_id, is_void) VALUES (the_group, true)
  ON CONFLICT (group_id) DO NOTHING;
  SELECT g.is_void, g.first_sequence, g.last_sequence INTO is_void, first, last
  FROM append_groups AS g WHERE g.group_id = the_group;
END $$;
