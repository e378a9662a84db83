DELETE FROM inbox_dead_letters WHERE letter = ?1 AND retry = 1
