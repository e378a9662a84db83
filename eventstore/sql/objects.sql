-- Tables, indexes, triggers and views, as SQLite lists them.

-- name: inspect_schema
-- gives: type text, name text, table_name text, definition text
SELECT type, name, tbl_name AS table_name, coalesce(sql, '') AS definition
FROM sqlite_schema ORDER BY type, name;

-- name: has_table
-- takes: name text
-- gives: found int
SELECT 1 AS found FROM main.sqlite_schema
WHERE type IN ('table', 'view') AND name = :name COLLATE NOCASE;

-- name: temporary_objects
-- Names that begin with sqlite_ are SQLite's own tables, which each schema has for itself.
-- gives: type text, name text, table_name text
SELECT type, name, tbl_name AS table_name FROM sqlite_temp_schema
WHERE type <> 'index' AND substr(name, 1, 7) <> 'sqlite_';

-- name: table_of_index
-- takes: name text
-- gives: table_name text
SELECT tbl_name AS table_name FROM sqlite_schema WHERE type = 'index' AND name = :name;
