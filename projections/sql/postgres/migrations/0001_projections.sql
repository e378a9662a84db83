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
  attempts        bigint NOT NULL DEFAULT 0,
  next_attempt_at bigint NOT NULL DEFAULT 0,
  failing         bigint NOT NULL DEFAULT 0,
  error           text NOT NULL DEFAULT '',
  halted          smallint NOT NULL DEFAULT 0 CHECK (halted IN (0, 1)),
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
  PRIMARY KEY (name, build, sequence)
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

-- For grants.sql: the same of all of them, which belong to `the_owner` from then on unless that is
-- NULL.
CREATE FUNCTION stela.share_read_models(the_owner text) RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  the_schema text;
  the_table text;
BEGIN
  FOR the_schema IN
    SELECT DISTINCT n.nspname FROM pg_trigger AS t
    JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE t.tgname = 'belongs_to_stela' AND t.tgfoid = 'refuse_users_change'::regproc
      AND n.nspname <> current_schema()
  LOOP
    IF the_owner IS NOT NULL THEN
      EXECUTE format('ALTER SCHEMA %I OWNER TO %I', the_schema, the_owner);
      FOR the_table IN
        SELECT c.oid::regclass FROM pg_class AS c
        WHERE c.relnamespace = quote_ident(the_schema)::regnamespace
          AND c.relkind IN ('r', 'p', 'v', 'm')
      LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO %I', the_table, the_owner);
      END LOOP;
    END IF;
    PERFORM share_read_model(the_schema);
  END LOOP;
  FOR the_table IN
    SELECT c.relname FROM pg_class AS c
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'v'
  LOOP
    IF the_owner IS NOT NULL THEN
      EXECUTE format('ALTER VIEW %I.%I OWNER TO %I', current_schema(), the_table, the_owner);
    END IF;
    PERFORM share_view(the_table);
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
