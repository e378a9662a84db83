-- Projections on PostgreSQL. Tables and columns have the names and meanings of SQLite's, which
-- docs/schema.md describes; but the tables of a build are in a schema of their own, "<schema of
-- these tables>/<name>@<build>", under their plain names.

-- Room on each page, so that a row that changes often stays on its own.
CREATE TABLE stela.projections (
  name            text COLLATE "C" NOT NULL,
  build           bigint NOT NULL CHECK (build >= 1),
  version         bigint NOT NULL CHECK (version >= 1),
  kind            text COLLATE "C" NOT NULL CHECK (kind IN ('async', 'inline', 'reaction')),
  state           text COLLATE "C" NOT NULL
                    CHECK (state IN ('building', 'living', 'retired', 'scratch')),
  position        bigint NOT NULL CHECK (position >= 0),
  epoch           bigint NOT NULL DEFAULT 0,
  owner           text COLLATE "C",
  lease_until     bigint NOT NULL DEFAULT 0,
  lease_ttl       bigint NOT NULL DEFAULT 0,
  presence        bigint,
  attempts        bigint NOT NULL DEFAULT 0,
  next_attempt_at bigint NOT NULL DEFAULT 0,
  failing         bigint NOT NULL DEFAULT 0,
  failing_since   bigint,
  error           text NOT NULL DEFAULT '',
  halted          smallint NOT NULL DEFAULT 0 CHECK (halted IN (0, 1)),
  stopped_at      bigint,
  filter          text NOT NULL DEFAULT '',
  upto            bigint NOT NULL DEFAULT 0,
  target          bigint NOT NULL DEFAULT 0,
  definitions     bigint NOT NULL DEFAULT 0,
  began_at        bigint NOT NULL,
  changed_at      bigint NOT NULL,
  PRIMARY KEY (name, build)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX one_living_build ON stela.projections (name) WHERE state = 'living';
CREATE UNIQUE INDEX one_build_at_a_time ON stela.projections (name) WHERE state = 'building';
CREATE UNIQUE INDEX one_replay_at_a_time ON stela.projections (name) WHERE state = 'scratch';

CREATE TABLE stela.projection_builds (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  last bigint NOT NULL
);

CREATE TABLE stela.projection_parked (
  name      text COLLATE "C" NOT NULL,
  build     bigint NOT NULL,
  sequence  bigint NOT NULL,
  state     text COLLATE "C" NOT NULL CHECK (state IN ('parked', 'retry', 'skipped')),
  parked_at bigint NOT NULL,
  attempts  bigint NOT NULL,
  error     text NOT NULL,
  instance  text COLLATE "C",
  PRIMARY KEY (name, build, sequence)
);
CREATE INDEX projection_parked_instances ON stela.projection_parked (name, build, instance)
  WHERE state <> 'skipped';

CREATE TABLE stela.projection_processes (
  name          text COLLATE "C" NOT NULL PRIMARY KEY,
  registered_at bigint NOT NULL,
  fired         bigint NOT NULL DEFAULT 0,
  failed        bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE stela.projection_timers (
  process        text COLLATE "C" NOT NULL,
  key            text COLLATE "C" NOT NULL,
  kind           text COLLATE "C" NOT NULL,
  version        bigint NOT NULL CHECK (version >= 1),
  generation     bigint NOT NULL,
  state          text COLLATE "C" NOT NULL DEFAULT 'pending'
                   CHECK (state IN ('pending', 'unknown', 'parked')),
  due_at         bigint NOT NULL,
  wake_at        bigint NOT NULL,
  attempts       bigint NOT NULL DEFAULT 0,
  error          text NOT NULL DEFAULT '',
  recurrence     text NOT NULL,
  set_at         bigint NOT NULL,
  correlation_id text NOT NULL,
  causation_id   text NOT NULL,
  metadata       text NOT NULL,
  payload        bytea NOT NULL,
  PRIMARY KEY (process, key, kind)
);
CREATE INDEX projection_timers_pending ON stela.projection_timers (process, wake_at, key, kind)
  WHERE state = 'pending';
-- Those that are tried again: whether they hold others is asked for each timer that is due.
CREATE INDEX projection_timers_retried ON stela.projection_timers (process, key, due_at, kind)
  WHERE state = 'pending' AND wake_at > due_at;
CREATE INDEX projection_timers_unknown ON stela.projection_timers (process, kind, version)
  WHERE state = 'unknown';
CREATE INDEX projection_timers_set_aside ON stela.projection_timers (process, due_at)
  WHERE state <> 'pending';

CREATE TABLE stela.projection_timer_holds (
  reason text COLLATE "C" NOT NULL PRIMARY KEY,
  since  bigint NOT NULL,
  ahead  bigint NOT NULL,
  detail text NOT NULL
);

-- Which cluster, database and schema the timers were set in. A copy has another place, and so has a
-- restored dump; a standby that is promoted has the same.
CREATE TABLE stela.projection_timer_place (
  one      boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  place    text NOT NULL,
  noted_at bigint NOT NULL
);
INSERT INTO stela.projection_timer_place (place, noted_at)
SELECT concat_ws('/', c.system_identifier, d.oid, t.relnamespace),
       extract(epoch FROM clock_timestamp()) * 1000000
FROM pg_control_system() AS c, pg_database AS d, pg_class AS t
WHERE d.datname = current_database() AND t.oid = 'stela.projection_timer_place'::regclass;

CREATE TABLE stela.projection_timer_actions (
  action bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     bigint NOT NULL,
  who    text NOT NULL,
  what   text NOT NULL,
  detail text NOT NULL
);

-- Whoever may read the table of projections may read a read model, and whoever may write to it may
-- write the model's rows: so do applications whose projectors another role has registered.
CREATE FUNCTION stela.share_read_model(the_schema text) RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  who text;
  writes boolean;
BEGIN
  FOR who, writes IN
    SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
           bool_or(a.privilege_type = 'INSERT')
    FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS a
    WHERE c.oid = 'projections'::regclass AND a.privilege_type IN ('SELECT', 'INSERT')
    GROUP BY a.grantee
  LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %s', the_schema, who);
    EXECUTE format('GRANT SELECT%s ON ALL TABLES IN SCHEMA %I TO %s',
                   CASE WHEN writes THEN ', INSERT, UPDATE, DELETE' ELSE '' END, the_schema, who);
    CONTINUE WHEN NOT writes;
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %s', the_schema, who);
  END LOOP;
END $$;

-- The same of a view, which is only read.
CREATE FUNCTION stela.share_view(the_name text) RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  who text;
BEGIN
  FOR who IN
    SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
    FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS a
    WHERE c.oid = 'projections'::regclass AND a.privilege_type = 'SELECT'
  LOOP
    EXECUTE format('GRANT SELECT ON %I.%I TO %s', current_schema(), the_name, who);
  END LOOP;
END $$;

-- Makes the view `the_name` show the table of that name in the schema of a build. Whoever could
-- read it before still can.
CREATE FUNCTION stela.show_read_model(the_schema text, the_name text, note text) RETURNS void
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  the_view CONSTANT text := format('%I.%I', current_schema(), the_name);
  wanted CONSTANT text :=
    format('VIEW %s AS SELECT * FROM %I.%I', the_view, the_schema, the_name);
  is_new CONSTANT boolean := to_regclass(the_view) IS NULL;
  grants text[];
  one text;
BEGIN
  EXECUTE 'CREATE OR REPLACE ' || wanted;
  EXECUTE format('COMMENT ON VIEW %s IS %L', the_view, note);
  IF is_new THEN PERFORM share_view(the_name); END IF;
EXCEPTION WHEN invalid_table_definition THEN
  -- It has other columns.
  SELECT array_agg(format('GRANT %s ON %s TO %s', a.privilege_type, the_view,
                          CASE a.grantee WHEN 0 THEN 'PUBLIC'
                          ELSE quote_ident(pg_get_userbyid(a.grantee)) END))
  INTO grants
  FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS a
  WHERE c.oid = the_view::regclass AND a.grantee <> c.relowner;
  EXECUTE 'DROP VIEW ' || the_view;
  EXECUTE 'CREATE ' || wanted;
  EXECUTE format('COMMENT ON VIEW %s IS %L', the_view, note);
  FOREACH one IN ARRAY coalesce(grants, '{}') LOOP
    EXECUTE one;
  END LOOP;
END $$;

-- SQL of the user's writes the tables of a build only where stela_sql.guard names their schema.
CREATE FUNCTION stela.guard_read_model(the_schema text) RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  the_table regclass;
BEGIN
  FOR the_table IN
    SELECT c.oid FROM pg_class AS c
    WHERE c.relnamespace = quote_ident(the_schema)::regnamespace AND c.relkind IN ('r', 'p')
    ORDER BY c.oid
  LOOP
    EXECUTE format('CREATE TRIGGER belongs_to_stela BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE '
                   'ON %s FOR EACH STATEMENT '
                   'WHEN (coalesce(current_setting(%L, true), %L) NOT IN (%L, %L, %L)) '
                   'EXECUTE FUNCTION refuse_users_change()',
                   the_table, 'stela_sql.guard', '', '', 'off', the_schema);
  END LOOP;
END $$;
