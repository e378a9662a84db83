SELECT count(*) FROM event_kinds INDEXED BY sqlite_autoindex_event_kinds_1
