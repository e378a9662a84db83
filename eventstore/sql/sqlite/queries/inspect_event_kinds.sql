-- Each kind from the table, and what the index of keys says of it.
SELECT k.kind, k.category, k.type, k.version, k.publishes,
       (SELECT i.kind FROM event_kinds AS i INDEXED BY sqlite_autoindex_event_kinds_1
        WHERE i.category = k.category AND i.type = k.type AND i.version = k.version
          AND i.publishes = k.publishes)
FROM event_kinds AS k NOT INDEXED
ORDER BY k.kind
