-- The tables of builds on PostgreSQL, in a schema for each build, and the views that show them.

-- name: tables_in
-- doing: listing the tables of a build
-- takes: schema text
-- gives: name text
SELECT c.relname::text AS name FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = to_regnamespace(quote_ident(:schema)) AND c.relkind IN ('r', 'p')
  AND NOT c.relispartition
ORDER BY 1;

-- name: note_on
-- The comment on the view; empty if it has none.
-- doing: looking for a view
-- takes: schema text, name text
-- gives: note text
SELECT coalesce(obj_description(c.oid, 'pg_class'), '') AS note FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = to_regnamespace(quote_ident(:schema)) AND c.relname = :name;

-- name: is_view_of
-- Whether the view reads the table of its name in the schema of a build.
-- doing: looking at a view
-- takes: schema text, name text, of text
SELECT FROM pg_catalog.pg_class AS v
JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = v.oid
JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
JOIN pg_catalog.pg_class AS t ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid
WHERE v.relnamespace = to_regnamespace(quote_ident(:schema)) AND v.relname = :name
  AND v.relkind = 'v' AND t.relnamespace = to_regnamespace(quote_ident(:of)) AND t.relname = :name
LIMIT 1;

-- name: definitions_in
-- Names and types, but no expressions, whose text depends on the server's version.
-- doing: reading how tables are defined
-- takes: schema text
-- gives: kind text, name text, columns text, triggers text, constraints text
SELECT c.relkind::text AS kind, c.relname::text AS name,
       coalesce((SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                   || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY a.attnum)
                 FROM pg_catalog.pg_attribute AS a
                 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '') AS columns,
       coalesce((SELECT string_agg(t.tgname::text, ', ' ORDER BY t.tgname)
                 FROM pg_catalog.pg_trigger AS t
                 WHERE t.tgrelid = c.oid AND NOT t.tgisinternal), '') AS triggers,
       coalesce((SELECT string_agg(k.conname || ' ' || k.contype::text, ', ' ORDER BY k.conname)
                 FROM pg_catalog.pg_constraint AS k
                 WHERE k.conrelid = c.oid AND k.contype <> 'n'), '') AS constraints
FROM pg_catalog.pg_class AS c WHERE c.relnamespace = to_regnamespace(quote_ident(:schema))
ORDER BY c.relname, c.relkind;

-- name: owner_of
-- The owner of the build's tables, or else of Stela's. No row if this role is the owner, or isn't a
-- member of it.
-- doing: looking for the tables' owner
-- takes: store text, schema text
-- gives: owner text
SELECT r.rolname::text AS owner FROM pg_catalog.pg_roles AS r WHERE r.oid = coalesce(
    (SELECT n.nspowner FROM pg_catalog.pg_namespace AS n WHERE n.nspname = :schema),
    (SELECT c.relowner FROM pg_catalog.pg_class AS c WHERE c.relname = 'projections'
       AND c.relnamespace = to_regnamespace(quote_ident(:store))))
  AND r.rolname <> current_user AND pg_has_role(r.oid, 'MEMBER');

-- name: foreign_owner
-- Finds a schema that this role may not drop.
-- doing: looking for the tables' owner
-- takes: schema text
SELECT FROM pg_catalog.pg_namespace AS n
WHERE n.nspname = :schema AND NOT pg_has_role(n.nspowner, 'MEMBER');

-- name: role
-- gives: role text
SELECT current_setting('role') AS role;

-- name: set_role
-- Lasts until the end of the transaction.
-- doing: acting as the tables' owner
-- takes: role text
SELECT set_config('role', :role, true);

-- name: deferred_constraint
-- doing: looking for deferred constraints
-- takes: schema text
-- gives: table_name text, name text
SELECT t.relname::text AS table_name, c.conname::text AS name FROM pg_catalog.pg_constraint AS c
JOIN pg_catalog.pg_class AS t ON t.oid = c.conrelid
WHERE t.relnamespace = to_regnamespace(quote_ident(:schema)) AND c.condeferred
ORDER BY 1, 2 LIMIT 1;

-- name: share_view
-- doing: sharing a view
-- takes: name text
SELECT stela.share_view(:name);

-- name: guard_read_model
-- doing: guarding a build's tables
-- takes: schema text
SELECT stela.guard_read_model(:schema);

-- name: share_read_model
-- doing: sharing a build's tables
-- takes: schema text
SELECT stela.share_read_model(:schema);

-- name: wait_hardly
-- Other sessions queue after one that waits for a reader of the view, so the wait is short.
SELECT set_config('lock_timeout', '20ms', true);

-- name: show_read_model
-- takes: schema text, name text, note text
SELECT stela.show_read_model(:schema, :name, :note);
