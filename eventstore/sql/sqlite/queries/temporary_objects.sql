-- Names that begin with sqlite_ are SQLite's own tables, which each schema has for itself.
SELECT type, name, tbl_name FROM sqlite_temp_schema
WHERE type <> 'index' AND substr(name, 1, 7) <> 'sqlite_'
