DELETE FROM inbox_dead_letters WHERE letter = ?1
