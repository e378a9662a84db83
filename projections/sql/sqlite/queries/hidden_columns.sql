-- What SELECT * leaves out of a virtual table.
SELECT x.name FROM sqlite_schema AS s, pragma_table_xinfo(s.name) AS x
WHERE s.name = ?1 AND s.type = 'table' AND s.sql LIKE 'CREATE VIRTUAL%' AND x.hidden = 1
ORDER BY x.cid
