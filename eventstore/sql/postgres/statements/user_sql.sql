-- Statements that surround the user's SQL.

-- name: set_user_settings
-- Sets where the SQL finds its tables, and whether guards stop it from writing to Stela's.
-- doing: changing settings
-- takes: path text, guard text
SELECT set_config('search_path', :path, true), set_config('stela_sql.guard', :guard, true);

-- name: refuse_foreign_events
-- `last` is the sequence of the last event, of whoever has the order lock; NULL: the transaction
-- has appended nothing.
-- takes: last int?
SELECT stela.refuse_foreign_events(:last);

-- name: schemas_of_stores
-- doing: looking for the schemas of stores
-- gives: name text
SELECT n.nspname::text AS name FROM pg_catalog.pg_namespace AS n
WHERE EXISTS (SELECT FROM pg_catalog.pg_class AS c
              WHERE c.relnamespace = n.oid AND c.relname = 'stela_migrations');

-- name: may_use_sql_schema
-- doing: looking for the schema of the user's SQL
-- takes: schema text
-- gives: may_use bool, me text
SELECT coalesce(has_schema_privilege(to_regnamespace(quote_ident(:schema)), 'USAGE'), false)
         AS may_use, current_user::text AS me;
