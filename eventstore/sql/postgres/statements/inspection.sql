-- The objects that the schema checks compare.

-- name: objects
-- The tables of a schema with their columns, constraints, indexes, triggers and functions, as text
-- without the schema's name.
-- doing: reading the objects of a schema
-- takes: schema text
-- gives: name text, definition text
WITH here AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = :schema), found AS (
  SELECT CASE c.relkind WHEN 'v' THEN 'view ' ELSE 'table ' END || c.relname AS name,
         c.relpersistence::text || ': ' || string_agg(concat_ws(' ', a.attname,
           format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
           (SELECT l.collname FROM pg_catalog.pg_collation AS l WHERE l.oid = a.attcollation),
           pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum) AS definition
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
    AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.relnamespace = (SELECT oid FROM here) AND c.relkind IN ('r', 'v')
  GROUP BY c.oid, c.relname, c.relkind, c.relpersistence
  UNION ALL
  SELECT 'view ' || c.relname || ', its query', pg_get_viewdef(c.oid)
  FROM pg_catalog.pg_class AS c
  WHERE c.relnamespace = (SELECT oid FROM here) AND c.relkind = 'v'
  UNION ALL
  SELECT 'constraint ' || k.conname, k.conrelid::regclass::text || ': ' ||
         pg_get_constraintdef(k.oid)
  FROM pg_catalog.pg_constraint AS k WHERE k.connamespace = (SELECT oid FROM here)
  UNION ALL
  SELECT 'index ' || c.relname, pg_get_indexdef(c.oid) ||
         CASE WHEN i.indisvalid THEN '' ELSE ' (invalid)' END
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_index AS i ON i.indexrelid = c.oid
  WHERE c.relnamespace = (SELECT oid FROM here) AND c.relkind = 'i'
  UNION ALL
  SELECT 'trigger ' || t.tgname || ' on ' || c.relname,
         pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
  FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
  WHERE c.relnamespace = (SELECT oid FROM here) AND NOT t.tgisinternal
  UNION ALL
  SELECT 'function ' || p.proname, string_agg(pg_get_functiondef(p.oid), ' ' ORDER BY p.oid)
  FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = (SELECT oid FROM here) GROUP BY p.proname)
SELECT name, replace(replace(definition, quote_ident(:schema) || '.', ''), quote_literal(:schema),
                     '''the schema''') AS definition FROM found;

-- name: foreign_objects
-- Foreign objects on the tables of a schema that change what is written to them or read from them.
-- doing: looking for what isn't Stela's on its tables
-- takes: schema text
-- gives: name text
WITH own AS (
  SELECT oid, relname, relrowsecurity, relforcerowsecurity FROM pg_catalog.pg_class
  WHERE relkind IN ('r', 'p')
    AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = :schema))
SELECT 'trigger ' || t.tgname || ' on ' || c.relname AS name
FROM pg_catalog.pg_trigger AS t JOIN own AS c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE NOT t.tgisinternal AND n.nspname <> :schema
UNION ALL
SELECT 'rule ' || r.rulename || ' on ' || c.relname
FROM pg_catalog.pg_rewrite AS r JOIN own AS c ON c.oid = r.ev_class
UNION ALL
SELECT 'row level security of ' || relname FROM own WHERE relrowsecurity OR relforcerowsecurity
UNION ALL
SELECT 'table ' || i.inhrelid::regclass::text || ', which inherits ' || c.relname
FROM pg_catalog.pg_inherits AS i JOIN own AS c ON c.oid = i.inhparent
ORDER BY name;

-- name: fact
-- doing: reading the facts
-- takes: name text
-- gives: value text
SELECT value FROM stela.stela_facts WHERE name = :name;

-- name: find_index_check
-- The function of the extension amcheck, if it exists.
-- doing: looking for amcheck
-- gives: function text
SELECT quote_ident(n.nspname) || '.bt_index_check' AS function
FROM pg_catalog.pg_extension AS e JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'amcheck';

-- name: indexes
-- doing: listing indexes
-- takes: schema text
-- gives: index text
SELECT c.oid::regclass::text AS index
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_am AS a ON a.oid = c.relam AND a.amname = 'btree'
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = :schema)
  AND c.relkind = 'i' AND c.relpersistence = 'p'
ORDER BY c.relname;
