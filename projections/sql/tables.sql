-- Tables, indexes and views in SQLite's schema. PostgreSQL's are read in src/postgres.

-- name: tables
-- Tables, indexes and triggers of a build, by the prefix of their names.
-- takes: prefix text
-- gives: type text, name text, definition text
SELECT type, name, coalesce(sql, '') AS definition FROM sqlite_schema
WHERE substr(name, 1, length(:prefix)) = :prefix OR substr(tbl_name, 1, length(:prefix)) = :prefix
ORDER BY name, type;

-- name: find_object
-- takes: name text
-- gives: type text, definition text
SELECT type, coalesce(sql, '') AS definition FROM sqlite_schema WHERE name = :name COLLATE NOCASE;

-- name: hidden_columns
-- The columns that SELECT * omits from a virtual table.
-- takes: table_name text
-- gives: name text
SELECT x.name AS name FROM sqlite_schema AS s, pragma_table_xinfo(s.name) AS x
WHERE s.name = :table_name AND s.type = 'table' AND s.sql LIKE 'CREATE VIRTUAL%' AND x.hidden = 1
ORDER BY x.cid;
