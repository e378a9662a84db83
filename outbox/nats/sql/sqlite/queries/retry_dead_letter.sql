UPDATE inbox_dead_letters SET retry = 1 WHERE letter = ?1
