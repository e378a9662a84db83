SELECT count(*) FROM streams INDEXED BY sqlite_autoindex_streams_1 WHERE stream <= ?1
