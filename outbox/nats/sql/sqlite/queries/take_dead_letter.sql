UPDATE inbox_dead_letters SET retry = 0, attempts = attempts + 1, error = ?2
WHERE letter = ?1 AND retry = 1
