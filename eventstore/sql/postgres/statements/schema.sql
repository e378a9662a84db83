-- Stela's tables, their owner, and the store's facts.

-- name: has_ledger
-- doing: looking for Stela's tables
-- takes: schema text
SELECT FROM pg_catalog.pg_tables WHERE schemaname = :schema AND tablename = 'stela_migrations';

-- name: schemas_with_ledger
-- doing: looking for stores
-- gives: name text
SELECT schemaname::text AS name FROM pg_catalog.pg_tables WHERE tablename = 'stela_migrations'
ORDER BY 1;

-- name: ledger
-- doing: reading the ledger of migrations
-- takes: module text
-- gives: number int, name text, checksum text, oldest_reader int, oldest_writer int
SELECT number, name, checksum, oldest_reader, oldest_writer FROM stela.stela_migrations
WHERE module = :module ORDER BY number;

-- name: oldest_writers
-- doing: reading the ledger of migrations
-- gives: module text, oldest_writer int
SELECT module, max(oldest_writer) AS oldest_writer FROM stela.stela_migrations GROUP BY module;

-- name: note_migration
-- doing: noting a migration
-- takes: module text, number int, name text, checksum text, oldest_reader int, oldest_writer int
INSERT INTO stela.stela_migrations (module, number, name, checksum, oldest_reader, oldest_writer)
VALUES (:module, :number, :name, :checksum, :oldest_reader, :oldest_writer);

-- name: first_object
-- The first object in the schema, NULL if it is empty; no row if the schema is missing.
-- doing: looking for the schema
-- takes: schema text
-- gives: name text?
SELECT (SELECT c.relname::text FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = n.oid ORDER BY c.relname LIMIT 1) AS name
FROM pg_catalog.pg_namespace AS n WHERE n.nspname = :schema;

-- name: object_in
-- Any object in the schema: a function counts, too. No row if there is none.
-- doing: looking into a schema
-- takes: schema text
-- gives: name text
SELECT pg_describe_object(d.classid, d.objid, d.objsubid) AS name
FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_namespace AS n ON n.oid = d.refobjid
WHERE d.refclassid = 'pg_namespace'::regclass AND n.nspname = :schema
ORDER BY name LIMIT 1;

-- name: owner
-- The owner of the tables in the schema, or else of the schema.
-- doing: looking for the owner of the tables
-- takes: schema text
-- gives: owner text, is_mine bool, may_be_acted_as bool, me text
SELECT r.rolname::text AS owner, r.rolname = current_user AS is_mine,
       pg_has_role(r.oid, 'MEMBER') AS may_be_acted_as, current_user::text AS me
FROM pg_catalog.pg_namespace AS n JOIN pg_catalog.pg_roles AS r ON r.oid = coalesce(
  (SELECT c.relowner FROM pg_catalog.pg_class AS c
   WHERE c.relnamespace = n.oid AND c.relname = 'stela_migrations' AND c.relkind = 'r'),
  CASE n.nspowner WHEN 'pg_database_owner'::regrole
  THEN (SELECT d.datdba FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
  ELSE n.nspowner END)
WHERE n.nspname = :schema;

-- name: act_as
-- Lasts until the end of the transaction.
-- doing: acting as the owner of the tables
-- takes: role text
SELECT set_config('role', :role, true);

-- name: sql_schema
-- doing: looking for the schema of the user's SQL
-- takes: schema text, store text
-- gives: is_there bool, may_make bool, me text, is_of_store bool, note text, may_drop bool
WITH given AS (SELECT to_regnamespace(quote_ident(:schema)) AS there,
                      'SQL beside the Stela store in schema ' || :store AS note)
SELECT there IS NOT NULL AS is_there,
       has_database_privilege(current_database(), 'CREATE') AS may_make, current_user::text AS me,
       coalesce(obj_description(there, 'pg_namespace') = note, false) AS is_of_store,
       format('COMMENT ON SCHEMA %I IS %L', :schema, note) AS note,
       NOT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace AS n
                   WHERE n.nspname IN (:schema, :store)
                     AND NOT pg_has_role(n.nspowner, 'USAGE')) AS may_drop
FROM given;

-- name: read_models
-- The schemas of the read models that belong to the store in a schema, which projections name.
-- doing: looking for read models
-- takes: store text
-- gives: name text, may_drop bool
SELECT n.nspname::text AS name, pg_has_role(n.nspowner, 'USAGE') AS may_drop
FROM pg_catalog.pg_namespace AS n
WHERE starts_with(n.nspname::text, :store || '/') OR starts_with(n.nspname::text, :store || '~');

-- name: system_identifier
-- A dump that was restored elsewhere has another one.
-- doing: looking at the server
-- gives: name text
SELECT system_identifier::text AS name FROM pg_control_system();

-- name: set_facts
-- Sets the facts that aren't set.
-- doing: setting the facts of the store
-- takes: store_id text, codec text, sql_schema text
INSERT INTO stela.stela_facts (name, value)
VALUES ('store_id', :store_id), ('codec', :codec), ('sql_schema', :sql_schema)
ON CONFLICT DO NOTHING;

-- name: facts
-- doing: reading the facts
-- gives: name text, value text
SELECT name, value FROM stela.stela_facts;
