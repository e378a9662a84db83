-- Grants rights to the three roles that use a store on PostgreSQL. Run it in psql, as a superuser
-- or as the owner, and again after each migration:
--
--     psql -v owner=shop_owner -v application=shop -v relay=shop_relay -f grants.sql shop
--
--   owner        creates and migrates the tables, including read models': for 'stela migrate' once
--                after an upgrade, and for processes that register or rebuild projectors
--   application  appends, reads and handles messages; drives projectors and processes, and writes
--                the rows of read models
--   relay        publishes: for relays, and for operations of the outbox
--
-- Missing roles are created without a login: let them log in, or grant them to roles that do. For
-- another schema than "stela": -v schema=NAME.
--
-- The application's own SQL has a schema beside it, "stela_app" or -v sql_schema=NAME, and creates
-- its tables there. The application may also write to tables that the owner creates there.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
\if :{?schema}
\else
\set schema stela
\endif
\if :{?sql_schema}
\else
\set sql_schema :schema _app
\endif

SELECT format('CREATE ROLE %I', r.name)
FROM unnest(ARRAY[:'owner', :'application', :'relay']) AS r(name)
WHERE NOT EXISTS (SELECT FROM pg_roles AS p WHERE p.rolname = r.name) \gexec
SELECT format('CREATE SCHEMA %I AUTHORIZATION %I', s.name, :'owner')
FROM unnest(ARRAY[:'schema', :'sql_schema']) AS s(name)
WHERE NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = s.name) \gexec
-- Each read model has a schema of its own.
SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), :'owner')
WHERE NOT has_database_privilege(:'owner', current_database(), 'CREATE') \gexec

BEGIN;
REVOKE ALL ON SCHEMA :"schema" FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema"
  FROM PUBLIC, :"application", :"relay";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC;
GRANT USAGE ON SCHEMA :"schema" TO :"application", :"relay";
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"application", :"relay";
-- An export contains the assigned numbers.
GRANT SELECT ON ALL SEQUENCES IN SCHEMA :"schema" TO :"application", :"relay";
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :"schema" TO :"application", :"relay";

-- Everything except the ledger of migrations, the facts of the store, and the run, which a function
-- records.
SELECT format('GRANT INSERT, UPDATE, DELETE ON %I.%I TO %I', :'schema', tablename, :'application')
FROM pg_tables
WHERE schemaname = :'schema'
  AND tablename NOT IN ('stela_migrations', 'stela_facts', 'stela_runs') \gexec
-- Append-only, in addition to the triggers.
SELECT format('REVOKE UPDATE, DELETE ON %I.%I FROM %I', :'schema', tablename, :'application')
FROM pg_tables
WHERE schemaname = :'schema'
  AND tablename IN ('events', 'event_tags', 'tag_index', 'streams', 'event_kinds', 'append_groups',
                    'stela_forgotten_keys', 'stela_personal_types') \gexec

-- The outbox's own tables, but no events.
SELECT format('GRANT INSERT, UPDATE, DELETE ON %I.%I TO %I', :'schema', tablename, :'relay')
FROM pg_tables
WHERE schemaname = :'schema'
  AND (tablename LIKE 'outbox\_%' OR tablename IN ('stela_changes', 'stela_series', 'stela_samples')) \gexec

GRANT USAGE, CREATE ON SCHEMA :"sql_schema" TO :"application";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"sql_schema"
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"application";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"sql_schema"
  GRANT USAGE ON SEQUENCES TO :"application";
COMMIT;

-- Read models get their rights when they are created; older ones get them here.
SELECT format('DO $do$ BEGIN PERFORM %I.%I(%L); END $do$', :'schema', s.share, s.name)
FROM (SELECT 'share_read_model' AS share, nspname AS name FROM pg_namespace
      WHERE starts_with(nspname, :'schema' || '/') AND pg_has_role(nspowner, 'USAGE')
      UNION ALL
      SELECT 'share_view', viewname FROM pg_views
      WHERE schemaname = :'schema' AND pg_has_role(viewowner, 'USAGE')) AS s
WHERE to_regprocedure(format('%I.share_view(text)', :'schema')) IS NOT NULL \gexec
