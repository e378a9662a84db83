SELECT tbl_name FROM sqlite_schema WHERE type = 'index' AND name = ?1
