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
-- that is promoted: as long as the row stands, nothing that was committed has been lost. A dump
-- holds the row too, and a copy of the database: there it says another place, or another
-- transaction than the one that wrote it, and counts as none.
CREATE UNLOGGED TABLE stela.stela_runs (
  one         boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  run         uuid NOT NULL,
  place       text NOT NULL,
  transaction xid NOT NULL
);

CREATE FUNCTION stela.place_of_run() RETURNS text LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (SELECT concat_ws('/', c.system_identifier, d.oid)
          FROM pg_catalog.pg_control_system() AS c, pg_catalog.pg_database AS d
          WHERE d.datname = pg_catalog.current_database());
END $$;

-- For the first connection of a run; or another one is that, and faster. With the owner's rights:
-- others may change no row.
CREATE FUNCTION stela.note_run() RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = stela, pg_temp
AS $$
  INSERT INTO stela_runs AS r (run, place, transaction)
  VALUES (gen_random_uuid(), place_of_run(), pg_current_xact_id()::xid)
  ON CONFLICT (one) DO UPDATE
  SET run = excluded.run, place = excluded.place, transaction = excluded.transaction
  WHERE r.place <> excluded.place OR NOT (r.transaction = r.xmin)
$$;

-- A standby has no run, and shows what is on its disk only. Which one it is, the transaction says
-- that asks: a pooler may give each to another connection of the server's.
CREATE FUNCTION stela.server_run(OUT is_standby boolean, OUT run uuid) LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
BEGIN
  is_standby := pg_is_in_recovery();
  IF is_standby THEN RETURN; END IF;
  SELECT r.run INTO run FROM stela_runs AS r
  WHERE r.one AND r.place = place_of_run() AND r.transaction = r.xmin;
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

-- No checks: append_group gives out no number below 1, and verify finds one that somebody else did.
-- The server reads the text of a constraint again for each statement that inserts.
CREATE TABLE stela.events (
  sequence         bigint NOT NULL PRIMARY KEY,
  stream           bigint NOT NULL,
  version          bigint NOT NULL,
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

-- The tags of events beside those of their streams, separated by spaces. Part 0 came with the
-- event; later parts were added to history.
CREATE TABLE stela.event_tags (
  sequence bigint NOT NULL,
  part     integer NOT NULL CHECK (part >= 0),
  tags     text COLLATE "C" NOT NULL CHECK (tags <> ''),
  checksum bigint NOT NULL,
  PRIMARY KEY (sequence, part)
);

-- Where the events of a tag are, by the hash of the tag; the kind tells their types apart.
CREATE TABLE stela.tag_index (
  tag      bigint NOT NULL,
  sequence bigint NOT NULL,
  kind     integer NOT NULL,
  PRIMARY KEY (tag, sequence)
);

-- Which categories of tags the events of a type carry, and from which sequence on; 0: all of them.
CREATE TABLE stela.tag_types (
  type     text COLLATE "C" NOT NULL,
  category text COLLATE "C" NOT NULL,
  always   boolean NOT NULL,
  several  boolean NOT NULL,
  since    bigint NOT NULL CHECK (since >= 0),
  PRIMARY KEY (type, category)
);

-- Raised whenever history gets other tags: what was decided before is decided again.
CREATE TABLE stela.tag_epoch (
  one   boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  epoch bigint NOT NULL CHECK (epoch >= 1)
);
INSERT INTO stela.tag_epoch (epoch) VALUES (1);

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

-- Which events carry an id as their correlation or as their cause, by a key of that id; also events
-- whose own id isn't one of their time. Two ids may have one key: the event says which it is.
CREATE TABLE stela.event_links (
  link     bigint NOT NULL,
  sequence bigint NOT NULL,
  PRIMARY KEY (link, sequence)
);

-- The events up to this one have their links.
CREATE TABLE stela.event_links_through (
  one      boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  sequence bigint NOT NULL CHECK (sequence >= 0)
);
INSERT INTO stela.event_links_through (sequence) VALUES (0);

-- Keys of personal fields that were destroyed, or are about to be: no event is sealed with one any
-- more. `sequence` is that of the event that says so, or 0.
CREATE TABLE stela.stela_forgotten_keys (
  key_id       bytea NOT NULL PRIMARY KEY CHECK (length(key_id) = 16),
  sequence     bigint NOT NULL,
  forgotten_at bigint NOT NULL
);

-- The key store of this store's personal fields, and the number of the newest key that an event was
-- sealed with. What is destroyed there and what is forgotten here were the same when the key store
-- had the version `settled_as`. No row: there is none.
CREATE TABLE stela.stela_key_store (
  one        integer NOT NULL PRIMARY KEY CHECK (one = 1),
  key_store  bytea NOT NULL CHECK (length(key_store) = 16),
  newest_key bigint NOT NULL,
  settled_as bigint NOT NULL
);

-- Types of events of which a field was sealed: whoever doesn't know the type appends none of them.
CREATE TABLE stela.stela_personal_types (
  type text COLLATE "C" NOT NULL PRIMARY KEY
);

-- What operators see: what changed when, what is known already, and how things went.
CREATE TABLE stela.stela_changes (
  change  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      bigint NOT NULL,
  part    text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  what    text COLLATE "C" NOT NULL,
  who     text COLLATE "C" NOT NULL,
  detail  text COLLATE "C" NOT NULL
);

CREATE TABLE stela.stela_acknowledged (
  code     text COLLATE "C" NOT NULL,
  subject  text COLLATE "C" NOT NULL,
  severity text COLLATE "C" NOT NULL,
  amount   bigint NOT NULL,
  who      text COLLATE "C" NOT NULL,
  why      text COLLATE "C" NOT NULL,
  at       bigint NOT NULL,
  until    bigint NOT NULL,
  PRIMARY KEY (code, subject)
);

CREATE TABLE stela.stela_series (
  series bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name   text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE stela.stela_samples (
  series integer NOT NULL,
  minute integer NOT NULL,
  value  bigint NOT NULL,
  PRIMARY KEY (series, minute)
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
CREATE TRIGGER event_tags_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON stela.event_tags
  FOR EACH STATEMENT EXECUTE FUNCTION stela.refuse_change();
CREATE TRIGGER tag_index_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON stela.tag_index
  FOR EACH STATEMENT EXECUTE FUNCTION stela.refuse_change();

-- SQL of the user's runs with stela_sql.guard set, and only reads Stela's tables: whoever owns them
-- has all rights, so that rights can't say so.
CREATE FUNCTION stela.refuse_users_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'it writes ''%'', and that table is Stela''s', TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege';
END $$;

-- For each table that isn't guarded yet; after each migration. A guard of inserts costs each append
-- an eighth of its time, so `events` and `outbox_messages` have none: what SQL of the user's adds
-- to events is found at the end of its transaction, see refuse_foreign_events; a pointer to no
-- event that is to be published, `verify` finds.
CREATE FUNCTION stela.guard_tables() RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  the_table regclass;
  changes text;
BEGIN
  FOR the_table, changes IN
    SELECT c.oid, CASE WHEN c.relname IN ('events', 'outbox_messages') THEN '' ELSE 'INSERT OR ' END
    FROM pg_class AS c
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r'
      AND NOT EXISTS (SELECT FROM pg_trigger AS t
                      WHERE t.tgrelid = c.oid AND t.tgname = 'belongs_to_stela')
    ORDER BY c.oid
  LOOP
    EXECUTE 'CREATE TRIGGER belongs_to_stela BEFORE ' || changes
      || 'UPDATE OR DELETE OR TRUNCATE ON ' || the_table || ' FOR EACH STATEMENT '
      'WHEN (coalesce(current_setting(''stela_sql.guard'', true), '''') NOT IN ('''', ''off'')) '
      'EXECUTE FUNCTION refuse_users_change()';
  END LOOP;
END $$;

-- Whether this transaction, or a part of it behind a savepoint, wrote a row: one that it sees,
-- whose xmin is `writer`. Others' that it sees are committed.
CREATE FUNCTION stela.is_own_row(writer xid) RETURNS boolean LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  own CONSTANT bigint := pg_current_xact_id_if_assigned()::text::bigint;
  -- How many transactions later the writer is. An xid has 32 bits.
  later CONSTANT bigint := ((writer::text::bigint - own) & 4294967295 # 2147483648) - 2147483648;
BEGIN
  IF own IS NULL OR later < 0 THEN RETURN false; END IF;
  RETURN coalesce(pg_xact_status((own + later)::text::xid8) = 'in progress', false);
EXCEPTION WHEN invalid_parameter_value THEN
  -- No transaction has that number yet: the row is so old that its own came round again.
  RETURN false;
END $$;

-- At the end of a transaction in which SQL of the user's ran: fails if that added events. Whoever
-- appended under the order lock says which the last one is, NULL if the transaction appended
-- nothing and others may have meanwhile. Sequences are dense, so that a foreign row has no place
-- but below all of them, or above: and nobody appends past it before the transaction ends.
CREATE FUNCTION stela.refuse_foreign_events(last bigint) RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  top bigint;
  writer xid;
BEGIN
  SELECT e.sequence, e.xmin INTO top, writer FROM events AS e ORDER BY e.sequence DESC LIMIT 1;
  IF coalesce(top, 0) <> last OR (last IS NULL AND is_own_row(writer))
     OR EXISTS (SELECT FROM events AS e WHERE e.sequence < 1 AND is_own_row(e.xmin)) THEN
    RAISE EXCEPTION 'it writes ''events'', and that table is Stela''s'
      USING ERRCODE = 'restrict_violation';
  END IF;
END $$;

-- Whether an event is of one of the types, NULL for any, and has all of the tags. In PL/pgSQL,
-- whose plan is kept: a function in SQL is read and planned in each statement that calls it.
CREATE FUNCTION stela.event_matches(the_sequence bigint, types text[], tags text[])
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
    FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
         JOIN streams AS s ON s.stream = e.stream
    WHERE e.sequence = the_sequence);
END $$;

-- The first events after `low`, up to `high`, that match an item, or the last ones: `most` or
-- fewer, in no order. Types and tags are separated by spaces, NULL for any; the hash is that of the
-- first tag. It looks at each event as `event_matches` does: to call that takes five times as long.
CREATE FUNCTION stela.matching(item_types text, item_tags text, hash bigint, low bigint,
                               high bigint, is_backward boolean, most bigint)
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

-- The first event after `low` that matches an item; NULL if none does. The new events of a stream
-- are the last ones of its index.
CREATE FUNCTION stela.first_match(item_types text, item_tags text, hash bigint, low bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = stela, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  types CONSTANT text[] := string_to_array(item_types, ' ');
  tags CONSTANT text[] := string_to_array(item_tags, ' ');
  the_stream bigint;
  place bigint;
  first bigint;
BEGIN
  IF tags IS NULL THEN
    SELECT e.sequence INTO first FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
    WHERE e.sequence > low AND (types IS NULL OR k.type = ANY (types))
    ORDER BY e.sequence LIMIT 1;
    RETURN first;
  END IF;
  SELECT t.sequence INTO first FROM tag_index AS t
  WHERE t.tag = hash AND t.sequence > low AND event_matches(t.sequence, types, tags)
  ORDER BY t.sequence LIMIT 1;
  SELECT s.stream INTO the_stream FROM streams AS s WHERE s.name = tags[1];
  IF the_stream IS NULL THEN RETURN first; END IF;
  FOR place IN SELECT e.sequence FROM events AS e WHERE e.stream = the_stream
               ORDER BY e.version DESC LOOP
    EXIT WHEN place <= low;
    IF (first IS NULL OR place < first) AND event_matches(place, types, tags) THEN
      first := place;
    END IF;
  END LOOP;
  RETURN first;
END $$;

-- What breaks a condition of the items from `first_item` to `last_item`, judged against all events
-- up to `before`: the item that matches and the first event that it does, NULL if there is none; 0
-- for another tag epoch, and -1 for a position that isn't there, both with `before`. An epoch of 0
-- is any.
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

-- Whether events of the type came before their tags of the category; those in streams of it have
-- theirs, unless they may have several.
CREATE FUNCTION stela.lacks_tags(the_type text, the_category text, is_several boolean)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = stela, pg_temp
AS $$
  SELECT EXISTS (
    SELECT FROM event_kinds AS k CROSS JOIN LATERAL (
      SELECT e.sequence FROM events AS e WHERE e.kind = k.kind ORDER BY e.sequence LIMIT 1) AS f
    WHERE k.type = the_type AND (is_several OR k.category <> the_category)
      AND f.sequence < coalesce((SELECT t.since FROM tag_types AS t
                                 WHERE t.type = the_type AND t.category = the_category),
                                9223372036854775807))
$$;

-- The type carries a category from now on, unless it is known to. Under the order lock.
CREATE FUNCTION stela.declare_tag(the_type text, the_category text, is_always boolean,
                                  is_several boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
BEGIN
  INSERT INTO tag_types AS t (type, category, always, several, since)
  SELECT the_type, the_category, is_always, is_several,
         CASE WHEN EXISTS (SELECT FROM event_kinds AS k WHERE k.type = the_type)
              THEN (SELECT coalesce(max(e.sequence), 0) + 1 FROM events AS e) ELSE 0 END
  ON CONFLICT (type, category) DO UPDATE
  SET always = t.always AND excluded.always, several = t.several OR excluded.several,
      since = CASE WHEN excluded.several AND NOT t.several THEN excluded.since ELSE t.since END
  WHERE (t.always AND NOT excluded.always) OR (excluded.several AND NOT t.several);
  IF FOUND THEN UPDATE stela_configuration SET epoch = gen_random_uuid(); END IF;
END $$;

-- What an event's checksum has of a number that only the server knows: rotated, so that no two of
-- them cancel each other. None is negative.
CREATE FUNCTION stela.rotated(number bigint, bits integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (number << bits) | (number >> (64 - bits));

-- Appends for all members of a group, under the order lock. It takes the lock itself unless that is
-- NULL, as inside a transaction of the user's: when it is called the server has all of its data,
-- and waits for no slow client under the lock. A member has appends, an append has events of one
-- stream; all are numbered from 1. A member that conflicts, whose condition doesn't hold, or whose
-- append id is known, writes nothing; the others aren't touched. Streams and kinds occur once,
-- append ids too. No group_id inside a transaction of the user's, which has entered its group
-- before.
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

-- In PL/pgSQL, which plans it once in a session.
CREATE FUNCTION stela.numbers_of_kinds(categories text[], types text[], versions integer[],
                                       publishes boolean[]) RETURNS integer[]
LANGUAGE plpgsql STABLE
SET search_path = stela, pg_temp
AS $$
BEGIN
  RETURN (SELECT array_agg(k.kind ORDER BY n.at)
          FROM unnest(categories, types, versions, publishes) WITH ORDINALITY
                 AS n(category, type, version, publishes, at)
               LEFT JOIN event_kinds AS k
                 ON k.category = n.category AND k.type = n.type
                    AND k.version = n.version AND k.publishes = n.publishes);
END $$;

-- What append_group does, for the appends that come nearly always: each member of the group has one
-- append, to a stream of its own, without an append id, a condition, tags, or contexts of its
-- events' own. Its session has the planner's settings that append_group sets for itself, and its
-- commit isn't flushed.
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
  -- For each append: the sequence before its first event, or -1 if it is in conflict; what its
  -- stream was at before, and the last version that was to be published.
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

-- What append_group does, for one event without an append id: it comes most often, and without
-- arrays the server takes half the time, all of it under the order lock. Its answer begins as that
-- of append_group_plain does, and so do its session and its commit.
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

-- Goes before appends in their transaction, and takes the order lock for them: what forgets holds
-- it, too, so none of the keys can be forgotten between this and the append. NULL: the transaction
-- has it.
CREATE FUNCTION stela.guard_keys(order_lock bigint, keys bytea[], newest bigint) RETURNS void
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  ignored text;
BEGIN
  ignored := pg_advisory_xact_lock(order_lock);
  IF EXISTS (SELECT FROM stela_forgotten_keys AS f WHERE f.key_id = ANY (keys)) THEN
    RAISE EXCEPTION
      'a personal field is sealed with a key that was destroyed: its subject was forgotten'
      USING ERRCODE = 'STFOR';
  END IF;
  UPDATE stela_key_store AS k SET newest_key = newest WHERE k.newest_key < newest;
END $$;

-- For a transaction of the user's, once it has the order lock.
CREATE FUNCTION stela.enter_group(the_group uuid, OUT before bigint, OUT epoch uuid, OUT run uuid)
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
BEGIN
  INSERT INTO append_groups (group_id, is_void) VALUES (the_group, false);
  SELECT coalesce(max(e.sequence), 0) INTO before FROM events AS e;
  SELECT c.epoch INTO epoch FROM stela_configuration AS c WHERE c.one;
  SELECT r.run INTO run FROM stela_runs AS r WHERE r.one AND r.transaction = r.xmin;
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
