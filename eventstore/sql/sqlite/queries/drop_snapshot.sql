DELETE FROM snapshots WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = ?1)
