-- Tables, indexes and triggers of a build, by the prefix of their names.
SELECT type, name, coalesce(sql, '') FROM sqlite_schema
WHERE substr(name, 1, length(?1)) = ?1 OR substr(tbl_name, 1, length(?1)) = ?1
ORDER BY name, type
