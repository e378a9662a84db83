-- Tables, indexes, triggers and views, as SQLite lists them.

-- name: inspect_schema
-- gives: type text, name text, table_name text, definition text
SELECT type, name, tbl_name AS table_name, coalesce(sql, '') AS definition
FROM sqlite_schema ORDER BY type, name;

-- name: table_of_index
-- takes: name text
-- gives: table_name text
SELECT tbl_name AS table_name FROM sqlite_schema WHERE type = 'index' AND name = :name;
